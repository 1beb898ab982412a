"""A run's result beside the requirement registry: what reports show, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from amqpspec.conformance.verdicts.gate import is_as_rabbitmq, is_minor, is_warning
from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, RunResult, fails_a_run
from amqpspec.conformance.verdicts.library import TITLES as LIBRARY_TITLES
from amqpspec.model.defects.known_defects import is_as_known, known_defects, strength_of
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.recommended import recommendation
from amqpspec.model.promises.registry import AS_STATED, Requirement, requirements
from amqpspec.model.promises.severity import ORDER, severity_of
from amqpspec.model.promises.text_titles import source_in, title_in
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import Version
from amqpspec.reports.text import plural

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

#: Of a failure that is a warning, and of one that fails no run.
WARNING_SIGN, ACCEPTED_SIGN = "!", "≈"
#: Of a requirement that passes, and whose own scenario was cut short by another failure.
CUT_SIGN = "~"

#: Names of what is left behind, beyond which only their number is told.
MOST_NAMES = 8

NOTHING = "nothing was carried out: there was no time, or no scenario that was chosen is applicable to this target"

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
    #: known defects from it that are known of the target's version (of its dialect, where the version is not known),
    #: seen in this run or not
    defects: tuple[KnownDefect, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Against the promise."""
        return self.outcome.verdict

    @property
    def as_known(self) -> Verdict:
        """Against the broker as it is known."""
        return self.outcome.as_known

    @property
    def seen_defects(self) -> frozenset[str]:
        """Names of the known defects that explain its failures."""
        return frozenset(found.failure.defect for found in self.failures).intersection(
            defect.name for defect in self.defects
        )

    @property
    def differs(self) -> bool:
        """Whether the two verdicts are not the same."""
        return self.as_known is not self.verdict

    @property
    def is_warning(self) -> bool:
        """Whether all that is wrong is what the text only recommends."""
        return bool(self.failures) and all(map(is_warning, self.failures))

    @property
    def is_cut_short(self) -> bool:
        """Whether it passes by what others showed, as its own scenario was ended by another failure."""
        return self.verdict is Verdict.PASS and self.outcome.cut_short_by is not None

    @property
    def is_excused(self) -> bool:
        """Whether all its failures are known deviations, or only arguable."""
        return bool(self.failures) and not any(map(fails_a_run, self.failures))

    @property
    def is_accepted(self) -> bool:
        """Whether it fails, and fails no run: so it must not look like one that does."""
        return self.verdict is Verdict.FAIL and self.is_excused

    @property
    def sign(self) -> str:
        """What it is, without colour."""
        if self.is_accepted:
            return ACCEPTED_SIGN
        if self.is_cut_short:
            return CUT_SIGN
        return WARNING_SIGN if self.is_warning else SIGNS[self.verdict]

    @property
    def outcome_words(self) -> str:
        """The verdict against the promise, and whether it fails no run."""
        if self.is_accepted:
            return "accepted"
        if self.is_cut_short:
            return f"{self.verdict}, scenario cut short"
        return f"{self.verdict}, warning" if self.is_warning else str(self.verdict)


@dataclass(frozen=True, slots=True)
class Area:
    """The entries of one area; `counts` has all verdicts as keys."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def counts(self) -> dict[Verdict, int]:
        counted = Counter(entry.verdict for entry in self.entries)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    @property
    def accepted(self) -> int:
        """How many fail, and fail no run."""
        return sum(entry.is_accepted for entry in self.entries)

    @property
    def is_absent(self) -> bool:
        """Is none of it applicable?"""
        return self.counts[Verdict.NOT_APPLICABLE] == len(self.entries)

    @property
    def failing_as_known(self) -> int:
        """How many fail against the promise, and do not against the broker as it is known."""
        return sum(entry.verdict is Verdict.FAIL and entry.differs for entry in self.entries)


def entries(result: RunResult, registry: Mapping[str, Requirement] | None = None) -> tuple[Entry, ...]:
    """One entry for each requirement of the result, in its order."""
    known = requirements() if registry is None else registry
    return tuple(_entry(result, outcome, known.get(outcome.id)) for outcome in result.requirements)


def _known(result: RunResult) -> tuple[KnownDefect, ...]:
    return known_defects(result.target.dialect, result.target.judged_version)


def _entry(result: RunResult, outcome: RequirementVerdict, requirement: Requirement | None) -> Entry:
    failures = tuple(found for found in result.failures if found.failure.requirement == outcome.id)
    defects = tuple(each for each in _known(result) if each.requirement == outcome.id)
    if requirement is None:
        return Entry(outcome.id, *area_and_title(outcome.id), "", "", "", outcome, failures, defects)
    dialect = result.target.dialect
    return Entry(
        outcome.id,
        requirement.area,
        title_in(outcome.id, requirement.title, dialect),
        rule_in(requirement, dialect),
        requirement.level,
        source_in(requirement.source, dialect),
        outcome,
        failures,
        defects,
    )


def area_and_title(id: str) -> tuple[str, str]:
    """Of a rule that is not registered: those of client libraries, or one that is not known."""
    title = LIBRARY_TITLES.get(id, "")
    return ("client libraries" if title else UNREGISTERED), title


def rule_in(requirement: Requirement, dialect: str) -> str:
    """What the requirement says in the dialect; where that is another thing, first that."""
    here = requirement.note_in(dialect) or AS_STATED
    if here == AS_STATED:
        return requirement.statement
    said = f"In {base_of(dialect)}: {here}."
    if here.startswith(AS_STATED):
        return f"{requirement.statement} {said}"
    return f"{said} RabbitMQ: {requirement.statement}"


def sign_of(found: FoundFailure) -> str:
    """The sign of one failure: only what fails the run has that of a failure."""
    if is_warning(found):
        return WARNING_SIGN
    return SIGNS[Verdict.FAIL] if fails_a_run(found) else ACCEPTED_SIGN


def severity_line(result: RunResult) -> str | None:
    """What the failures that fail the run do to an application, and how many do it; None where there are none."""
    failing = [found for found in result.failures if fails_a_run(found)]
    counts = Counter(severity_of(found.failure) for found in failing if not found.not_seen_again)
    said = [f"{severity} {counts[severity]}" for severity in ORDER if counts[severity]]
    if unseen := sum(found.not_seen_again for found in failing):
        said.append(f"not seen again {unseen}")
    return f"What the failures do to an application: {', '.join(said)}" if said else None


def areas(listed: tuple[Entry, ...]) -> tuple[Area, ...]:
    """The entries by area, in the order in which the areas first appear."""
    order = {entry.area: position for position, entry in reversed(list(enumerate(listed)))}
    by_area = groupby(sorted(listed, key=lambda entry: order[entry.area]), key=lambda entry: entry.area)
    return tuple(Area(name, tuple(group)) for name, group in by_area)


def headline(result: RunResult) -> str:
    """How the broker stands against the promise, in a sentence, and whether that fails the run. Known defects count
    there like any failure, but are told apart.

    What is only arguable is counted apart, whether it is known or new.
    """
    failing = [found for found in result.failures if fails_a_run(found)]
    defective = sum(map(result.is_as_known, failing))
    unseen = sum(found.not_seen_again and not result.is_as_known(found) for found in failing)
    minor = sum(map(is_minor, result.failures))
    warnings = sum(map(is_warning, result.failures))
    as_rabbitmq = sum(map(is_as_rabbitmq, result.failures))
    listed = [found for found in result.failures if found.known is not None and not is_minor(found)]
    accepted = sum(map(result.is_as_known, listed))
    known = len(listed) - accepted
    arguable = len(result.failures) - len(failing) - len(listed) - minor
    counts = {
        "new failure": len(failing) - defective - unseen,
        "known defect": defective,
        "arguable failure": arguable,
        "minor failure": minor - warnings - as_rabbitmq,
        "warning": warnings,
        "accepted known defect": accepted,
        "accepted deviation": known,
    }
    said = [plural(number, noun) for noun, number in counts.items() if number]
    if as_rabbitmq:
        said.append(f"{as_rabbitmq} against the text as RabbitMQ does")
    if unseen:
        said.insert(counts["new failure"] > 0, f"{plural(unseen, 'failure')} not seen again")
    if result.lost is not None:
        return f"Incomplete, with {_listed(said or ['no failure'])}: {result.lost}"
    if result.not_whole:
        said.append("a broker that failed the check at the end")
    if failing or result.not_whole:
        return f"Deviates from the promise: {_listed(said)}"
    if result.problems:
        besides = f"; besides {_listed(said)}" if said else ""
        return f"The deviation file is out of date: {plural(len(result.problems), 'problem')}{besides}"
    if result.is_empty:
        return f"Inconclusive: {NOTHING}"
    if result.exit_code == 4:
        return f"Inconclusive: {_listed(['not everything could be decided', *said])}"
    if accepted or known:
        return f"Deviates from the promise only as accepted: {_listed(said)}"
    if arguable or minor:
        return f"Conforms, but for {_listed(said)}"
    return "Conforms, in all that was exercised"


def whole_lines(result: RunResult) -> list[str]:
    """What is wrong with the deviation file, with the broker when the run is over, and what it has not deleted."""
    lines = [f"The deviation file is out of date: {each}" for each in result.problems]
    lines += [f"The broker failed the check at the end of the run: {each}" for each in result.not_whole]
    if result.connections_left:
        number = plural(result.connections_left, "connection")
        lines.append(f"Ended by this run, and still open on the broker's side: {number}")
    if result.left_behind:
        lines.append(f"Made by this run, and not deleted by the broker: {', '.join(_cut(result.left_behind))}")
    return lines


def _cut(names: tuple[str, ...]) -> list[str]:
    more = len(names) - MOST_NAMES
    return [*names[:MOST_NAMES], f"{more} more"] if more > 1 else list(names)


def _listed(parts: list[str]) -> str:
    return ", and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def notes(found: FoundFailure, dialect: str, version: Version | None = None) -> tuple[str, ...]:
    """What is worth knowing about a failure beside what happened: what it does to an application, its shape, how strong
    the promise is that it breaks, whether it is known, flaky, as short as it can be, how often.

    Known is what the deviation file lists, and what is a known defect of that version (of the dialect, where the
    version is not known). The rest is new, if it fails a run.
    """
    said = [str(severity_of(found.failure)), str(found.failure.shape), str(strength_of(found.failure))]
    as_known = is_as_known(found.failure, dialect, version)
    if found.known is not None:
        said.append(_accepted(found, dialect))
    elif not as_known and fails_a_run(found):
        said.append("not seen again" if found.not_seen_again else "new")
    if found.failure.defect:
        said.append(f"{'known defect' if as_known else 'known defect of others:'} {found.failure.defect}")
    if found.flaky and found.rate is not None:
        by_itself = "" if found.rate[0] else ": it did not show again, so what other clients did may be the cause"
        said.append(f"flaky: {found.rate[0]} of {found.rate[1]} repetitions{by_itself}")
    if found.cut_short:
        said.append("shrinking cut short")
    said.append(plural(found.sequences, "sequence"))
    return tuple(said)


def _accepted(found: FoundFailure, dialect: str) -> str:
    """Why the failure fails nothing; of a warning the sentence that is not followed."""
    if is_warning(found) and (sentence := recommendation(found.failure, dialect)):
        return f"warning: {sentence}"
    if is_as_rabbitmq(found):
        return f"{found.known} ({found.failure.like})"
    return f"{'minor' if is_minor(found) else 'known'}: {found.known}"


def again(found: FoundFailure) -> str:
    """What to paste to see a failure again; its commands where the run made no reproducer."""
    return found.reproducer or "\n".join(found.commands)
