"""What judging found: for one sequence, for one requirement, for a whole run.

A sequence's rows go through the judge and give a `SequenceJudgement`; a `Tally` adds these up, in memory that
does not grow with their number, and gives the verdict of each requirement and the `RunResult` that all
reports are made from. Live runs, offline checking and Spark add up with the same functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from model.registry import Requirement
from model.verdict import Failure, Shape, Verdict, worst


@dataclass(frozen=True, slots=True)
class SequenceJudgement:
    """The outcome of one sequence of commands on one target.

    `requirement` is the one that the sequence was written for (None for searches), `exercised` counts for
    each requirement how often it made a difference, `reason` explains a verdict that is neither pass nor
    fail, and `frames` is how many frames were judged.
    """

    sequence: str
    target: str
    dialect: str
    requirement: str | None
    verdict: Verdict
    failures: tuple[Failure, ...]
    exercised: Mapping[str, int]
    reason: str | None
    frames: int


@dataclass(frozen=True, slots=True)
class TargetDescription:
    """The broker as the reports name it: never with credentials."""

    label: str
    product: str
    version: str
    dialect: str


@dataclass(frozen=True, slots=True)
class RequirementVerdict:
    """The verdict of one requirement over all sequences; `reason` for inconclusive and not applicable."""

    id: str
    verdict: Verdict
    exercised: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """A distinct failure as it is reported.

    `commands` is the shortest sequence known to show it, one line each; `reproducer` is what a person pastes in a
    shell to see it again; `sequences` counts the sequences that showed it. `known` is the reason that the deviation
    file gives (None: it is not listed; a departure that the model knows is no excuse), `rate` is (failed, tried) when
    the shrunk sequence was run again, so that what does not always repeat is reported as flaky.
    """

    failure: Failure
    sequence: str
    commands: tuple[str, ...] = ()
    reproducer: str = ""
    sequences: int = 1
    known: str | None = None
    rate: tuple[int, int] | None = None

    @property
    def flaky(self) -> bool:
        """Whether running the same commands again did not always fail."""
        return self.rate is not None and self.rate[0] < self.rate[1]


@dataclass(frozen=True, slots=True)
class RunResult:
    """All that a report says about a run. `undecided` holds (sequence, reason) of inconclusive sequences."""

    tool: str
    tool_version: str
    target: TargetDescription
    seed: int | None
    mode: str
    requirements: tuple[RequirementVerdict, ...]
    failures: tuple[FoundFailure, ...]
    sequences: int
    frames: int
    undecided: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    #: why the run ended before its end; None if it did not
    lost: str | None = None

    @property
    def summary(self) -> dict[str, int]:
        """How many requirements ended in each verdict; all five verdicts are keys."""
        counts = Counter(requirement.verdict for requirement in self.requirements)
        return {str(verdict): counts[verdict] for verdict in Verdict}

    @property
    def exit_code(self) -> int:
        """3 if the target was lost, else 1 if something deviates that is not known, else 4 if something could not be
        decided, else 0.
        """
        if self.lost is not None:
            return 3
        if any(found.known is None for found in self.failures):
            return 1
        undecided = any(requirement.verdict is Verdict.INCONCLUSIVE for requirement in self.requirements)
        return 4 if undecided or self.undecided else 0


def requirement_verdicts(judgement: SequenceJudgement) -> dict[str, tuple[Verdict, int]]:
    """What one sequence says about each requirement it concerns: verdict, and times exercised.

    A requirement that a failure blames failed. The one that the sequence was written for shares the
    sequence's fate when that is inconclusive or not applicable. The others that made a difference passed. An
    inconclusive search is for no requirement; it is filed under "" so that no table loses it.
    """
    verdicts = {id: (Verdict.PASS, count) for id, count in judgement.exercised.items() if count > 0}
    aim = judgement.requirement
    if judgement.verdict is Verdict.INCONCLUSIVE:
        verdicts[aim or ""] = (Verdict.INCONCLUSIVE, judgement.exercised.get(aim or "", 0))
    elif aim is not None and aim not in verdicts:
        absent = judgement.verdict is Verdict.NOT_APPLICABLE
        verdicts[aim] = (Verdict.NOT_APPLICABLE if absent else Verdict.NOT_EXERCISED, 0)
    for failure in judgement.failures:
        verdicts[failure.requirement] = (Verdict.FAIL, judgement.exercised.get(failure.requirement, 0))
    return verdicts


#: How many inconclusive sequences a tally lists by name; all are counted.
MAX_UNDECIDED = 1000


@dataclass(slots=True)
class Tally:
    """Adds up judgements. Memory depends on the number of requirements and of distinct failures only."""

    sequences: int = 0
    frames: int = 0
    #: (requirement, verdict) -> sequences
    counts: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    #: requirement -> times exercised
    exercised: Counter[str] = field(default_factory=Counter)
    #: requirement -> the first reason given for not passing it ("" for searches)
    reasons: dict[str, str] = field(default_factory=dict)
    #: identity -> the first example, with the number of sequences that showed it
    found: dict[str, FoundFailure] = field(default_factory=dict)
    undecided: list[tuple[str, str]] = field(default_factory=list)

    def add(self, judgement: SequenceJudgement) -> None:
        """Takes one sequence into account."""
        self.sequences += 1
        self.frames += judgement.frames
        for id, (verdict, exercised) in requirement_verdicts(judgement).items():
            self.counts[id, verdict] += 1
            self.exercised[id] += exercised
        if judgement.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE):
            reason = judgement.reason or "no reason was recorded"
            self.reasons.setdefault(judgement.requirement or "", reason)
            if judgement.verdict is Verdict.INCONCLUSIVE and len(self.undecided) < MAX_UNDECIDED:
                self.undecided.append((judgement.sequence, reason))
        distinct = {failure.identity: failure for failure in reversed(judgement.failures)}
        for identity, failure in distinct.items():
            known = self.found.get(identity)
            if known is None:
                self.found[identity] = FoundFailure(failure, judgement.sequence)
            else:
                self.found[identity] = replace(known, sequences=known.sequences + 1)

    def verdict(self, id: str) -> Verdict | None:
        """The verdict of a requirement over the sequences so far; None if no sequence concerned it.

        Fail, then inconclusive, then pass outrank the rest, in this order.
        """
        seen = [verdict for verdict in Verdict if self.counts[id, verdict]]
        return worst(seen) if seen else None

    def requirements(
        self,
        registry: Iterable[Requirement],
        dialect: str,
        not_applicable: Mapping[str, str] | None = None,
    ) -> tuple[RequirementVerdict, ...]:
        """One verdict for each entry of `registry`, in its order, then for blamed ids that it lacks.

        `not_applicable` gives reasons known before the run (an absent capability), by id. They and the
        dialect decide only where no sequence did: a rule that was seen broken is never hidden by them.
        """
        absent = not_applicable or {}
        verdicts: dict[str, RequirementVerdict] = {}
        for entry in registry:
            id = entry.id
            verdict = self.verdict(id)
            reason = self.reasons.get(id)
            if verdict in (None, Verdict.NOT_EXERCISED):
                if id in absent:
                    verdict, reason = Verdict.NOT_APPLICABLE, absent[id]
                elif dialect not in entry.dialects:
                    verdict, reason = Verdict.NOT_APPLICABLE, f"the dialect {dialect} has no such rule"
            verdicts[id] = self._stated(id, verdict or Verdict.NOT_EXERCISED, reason)
        for id in sorted({id for id, _ in self.counts} - verdicts.keys() - {""}):
            verdicts[id] = self._stated(id, self.verdict(id) or Verdict.NOT_EXERCISED, self.reasons.get(id))
        return tuple(verdicts.values())

    def _stated(self, id: str, verdict: Verdict, reason: str | None) -> RequirementVerdict:
        explained = verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)
        return RequirementVerdict(id, verdict, self.exercised[id], reason if explained else None)


def failure_to_json(failure: Failure) -> dict[str, Any]:
    """A failure as the object that traces and bulk results hold."""
    return {
        "requirement": failure.requirement,
        "shape": str(failure.shape),
        "detail": failure.detail,
        "command": failure.command,
        "observed": failure.observed,
        "allowed": list(failure.allowed),
        "state": list(failure.state),
        "departure": failure.departure,
    }


def failure_from_json(written: Mapping[str, Any]) -> Failure:
    """The inverse of `failure_to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    texts = {key: str(written[key]) for key in ("requirement", "detail", "command", "observed")}
    return Failure(
        shape=Shape(written["shape"]),
        allowed=tuple(map(str, written["allowed"])),
        state=tuple(map(str, written["state"])),
        departure=str(written.get("departure", "")),
        **texts,
    )
