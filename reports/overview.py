"""A run's result beside the requirement registry: what reports show, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from conformance.judgement import FoundFailure, RequirementVerdict, RunResult
from model.registry import AS_STATED, Requirement, requirements
from model.verdict import Verdict
from reports.text import plural

#: The order in which verdicts are listed.
VERDICTS = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE)

#: A sign for each verdict, so that none depends on colour alone.
SIGNS: Mapping[Verdict, str] = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_EXERCISED: "·",
    Verdict.NOT_APPLICABLE: "–",
}

UNREGISTERED = "not registered"


@dataclass(frozen=True, slots=True)
class Entry:
    """One requirement of a report: what it says, how it ended, what broke it."""

    id: str
    area: str
    title: str
    statement: str
    level: str
    source: str
    outcome: RequirementVerdict
    failures: tuple[FoundFailure, ...]

    @property
    def verdict(self) -> Verdict:
        return self.outcome.verdict

    @property
    def only_known(self) -> bool:
        """Whether all its failures are known deviations."""
        return bool(self.failures) and all(found.known is not None for found in self.failures)


@dataclass(frozen=True, slots=True)
class Area:
    """The entries of one area; `counts` has all verdicts as keys."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def counts(self) -> dict[Verdict, int]:
        counted = Counter(entry.verdict for entry in self.entries)
        return {verdict: counted[verdict] for verdict in VERDICTS}


def entries(result: RunResult, registry: Mapping[str, Requirement] | None = None) -> tuple[Entry, ...]:
    """One entry for each requirement of the result, in its order."""
    known = requirements() if registry is None else registry
    return tuple(_entry(result, outcome, known.get(outcome.id)) for outcome in result.requirements)


def _entry(result: RunResult, outcome: RequirementVerdict, requirement: Requirement | None) -> Entry:
    failures = tuple(found for found in result.failures if found.failure.requirement == outcome.id)
    if requirement is None:
        return Entry(outcome.id, UNREGISTERED, "", "", "", "", outcome, failures)
    statement = requirement.statement
    here = requirement.dialects.get(result.target.dialect, AS_STATED)
    if here != AS_STATED:
        statement = f"{statement} In {result.target.dialect}: {here}."
    return Entry(
        outcome.id,
        requirement.area,
        requirement.title,
        statement,
        requirement.level,
        requirement.source,
        outcome,
        failures,
    )


def areas(listed: tuple[Entry, ...]) -> tuple[Area, ...]:
    """The entries by area, in the order in which the areas first appear."""
    order = {entry.area: position for position, entry in reversed(list(enumerate(listed)))}
    by_area = groupby(sorted(listed, key=lambda entry: order[entry.area]), key=lambda entry: entry.area)
    return tuple(Area(name, tuple(group)) for name, group in by_area)


def headline(result: RunResult) -> str:
    """The result in a sentence."""
    new = sum(found.known is None for found in result.failures)
    known = len(result.failures) - new
    also_known = f", and {plural(known, 'known deviation')}" if known else ""
    if result.lost is not None:
        return f"Incomplete, with {plural(new, 'new failure')}{also_known}: {result.lost}"
    if new:
        return f"Deviates: {plural(new, 'new failure')}{also_known}"
    if result.exit_code == 4:
        return f"Inconclusive: not everything could be decided{also_known}"
    if known:
        return f"Conforms, except for {plural(known, 'known deviation')}"
    return "Conforms, in all that was exercised"


def notes(found: FoundFailure) -> tuple[str, ...]:
    """What is worth knowing about a failure beside what happened: its shape, known, flaky, how often."""
    said = [str(found.failure.shape)]
    said.append(f"known: {found.known}" if found.known is not None else "new")
    if found.failure.departure:
        said.append(f"departure {found.failure.departure}")
    if found.flaky and found.rate is not None:
        said.append(f"flaky: {found.rate[0]} of {found.rate[1]} repetitions")
    said.append(plural(found.sequences, "sequence"))
    return tuple(said)


def again(found: FoundFailure) -> str:
    """What to paste to see a failure again; its commands where the run made no reproducer."""
    return found.reproducer or "\n".join(found.commands)
