"""What judging found: for one sequence, for one requirement, for a whole run.

A sequence's rows go through the judge and give a `SequenceJudgement`; a `Tally` (`conformance.verdicts.tally`) adds
these up and gives the verdicts of each requirement, for the `RunResult` that all reports are made from. Live runs,
offline checking and Spark go by the same `requirement_verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from amqpspec.conformance.traces.trace import TraceRow, TraceWriter
from amqpspec.conformance.verdicts.ended_by import failure_behind
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome
from amqpspec.conformance.verdicts.minor import is_harmless
from amqpspec.conformance.verdicts.rung import Rung
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.defects.known_defects import is_as_known, strength_of
from amqpspec.model.promises.recommended import recommendation
from amqpspec.model.promises.severity import rank
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.promises.versions import Version, judged_version
from amqpspec.targets.suite_error import suite_error_in

#: The requirement that a target breaks which is lost in the middle of a run.
SERVES_ON = "SERVER-001"
#: Methods without which nothing is left to look at.
INDISPENSABLE = frozenset(
    {"connection.open", "channel.open", "queue.declare", "basic.publish", "basic.consume", "basic.get", "basic.ack"}
)
#: Stands between the label of a target and the client library through which it was asked.
THROUGH = " through "
#: What a cause has for an answer where the broker ends the TCP stream, and where it ends in one way what it has to end
#: in another.
STREAM_ENDS = "socket.closed"
ENDS = ("channel.close", "connection.close", STREAM_ENDS)
#: The same where it takes what it has to refuse, and where what it tells is wrong.
IS_TAKEN, IS_WRONG = "is taken", "is wrong"
#: One undecided sequence in so many, rounded, leaves a run decided.
SEQUENCES_OF_ONE_UNDECIDED = 100


def leaves_decided(undecided: int, sequences: int) -> bool:
    """May so many sequences of a run stay undecided? One may from fifty on, or a short run would be so by chance."""
    return undecided * SEQUENCES_OF_ONE_UNDECIDED <= sequences + SEQUENCES_OF_ONE_UNDECIDED // 2


@dataclass(frozen=True, slots=True)
class SequenceJudgement:
    """The outcome of one sequence of commands on one target.

    `requirement` is the one that the sequence was written for (None for searches), `exercised` counts for
    each requirement how often it made a difference, `reason` explains a verdict that is neither pass nor
    fail, `frames` is how many frames were judged, and `refuted` names the known defects that would have shown and
    did not.
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
    refuted: tuple[str, ...] = ()
    #: known defects that may have spoiled something in it (`model.judging.windows`), by their names
    windows: tuple[str, ...] = ()
    #: how late the broker was with what it did by itself
    measurements: tuple[Measurement, ...] = ()
    #: the sequence that this one repeats or shortens, to learn more of a failure: it belongs to no count
    repeats: str | None = None
    #: whose known defects count (`model.promises.versions.judged_version`)
    version: Version | None = None
    #: what the broker calls itself; "": the trace does not say
    product: str = ""
    #: why judging ended before the sequence was over: the identity of a failure, or a reason; None: it did not
    ended_by: str | None = None
    #: in the open world: requirement -> why this recording does not tell whether it was kept
    undecided: Mapping[str, str] = field(default_factory=dict)

    @property
    def suite_error(self) -> str | None:
        """The error of this suite that it came to, in one line (`targets.suite_error`)."""
        return suite_error_in(self.reason)


def erred(judgement: SequenceJudgement, line: str) -> SequenceJudgement:
    """The same sequence, which came to an error of this suite: what failed before has failed, all else is undecided."""
    verdict = Verdict.FAIL if judgement.verdict is Verdict.FAIL else Verdict.INCONCLUSIVE
    return replace(judgement, verdict=verdict, reason=line, ended_by=line)


def undecided(start: TraceRow, reason: str, frames: int = 0) -> SequenceJudgement:
    """What is said of the sequence that a start row begins, where nothing else can be."""
    return SequenceJudgement(
        sequence=start["sequence"],
        target=start["target"],
        dialect=start["dialect"],
        requirement=start.get("requirement"),
        verdict=Verdict.INCONCLUSIVE,
        failures=(),
        exercised={},
        reason=reason,
        frames=frames,
        repeats=start.get("repeats"),
        version=judged_version(start.get("product") or "", start.get("version") or "", start["dialect"]),
        product=start.get("product") or "",
        ended_by=reason,
    )


@dataclass(frozen=True, slots=True)
class TargetDescription:
    """The broker as the reports name it: never with credentials."""

    label: str
    product: str
    version: str
    dialect: str

    @property
    def judged_version(self) -> Version | None:
        """Whose known defects count."""
        return judged_version(self.product, self.version, self.dialect)


@dataclass(frozen=True, slots=True)
class SeenWay:
    """A way of RabbitMQ's own that is no part of a feature, and whether a product that is not RabbitMQ has it. It
    decides nothing (`conformance.profile.ways`).
    """

    name: str
    about: str
    #: RabbitMQ's newest dialect has nothing against what came
    is_same: bool
    #: what RabbitMQ does there, and what came instead, where it is not the same
    rabbitmq: str = ""
    observed: str = ""


@dataclass(frozen=True, slots=True)
class RequirementVerdict:
    """The verdicts of one requirement over all sequences; `reason` for inconclusive and not applicable, and for not
    exercised where it was kept without any ground (`conformance.verdicts.grounds`).

    `verdict` is the one against the promise. `differing` is the one against the broker as it is known, where that is
    another: every failure is a known defect of the target's version (of its dialect, where the version is not known).
    """

    id: str
    verdict: Verdict
    exercised: int
    reason: str | None = None
    differing: Verdict | None = None
    #: what ended its own scenario before that was over, such as the identity of another failure; None: nothing did
    cut_short_by: str | None = None

    @property
    def as_known(self) -> Verdict:
        """The verdict against the broker as it is known."""
        return self.verdict if self.differing is None else self.differing


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """A distinct failure as it is reported.

    `commands` is the shortest sequence known to show it, one line each; `reproducer` is what a person pastes in a
    shell to see it again; `sequences` counts the sequences that showed it. `known` is why deviation file or gate accept
    it (None: they do not), `rate` is (failed, tried) when the shrunk sequence was run again, so that what does not
    always repeat is reported as flaky. `cut_short`: there was no time to see whether fewer commands show it as well.
    """

    failure: Failure
    sequence: str
    commands: tuple[str, ...] = ()
    reproducer: str = ""
    sequences: int = 1
    known: str | None = None
    rate: tuple[int, int] | None = None
    cut_short: bool = False
    #: the frames that show it, where the trace was looked at (`conformance.failures.ladder`)
    ladder: tuple[Rung, ...] = ()

    @property
    def flaky(self) -> bool:
        """Whether running the same commands again did not always fail."""
        return self.rate is not None and self.rate[0] < self.rate[1]

    @property
    def not_seen_again(self) -> bool:
        """Whether no repetition of its commands showed it."""
        return self.rate is not None and not self.rate[0]

    @property
    def order(self) -> tuple[bool, bool, int, bool]:
        """By which failures are listed: the gravest first, of these the end of the broker; behind all others what was
        not seen again, and behind that what is accepted.
        """
        is_end = self.failure.requirement == SERVES_ON
        return self.known is not None, self.not_seen_again, rank(self.failure), not is_end


@dataclass(frozen=True, slots=True)
class SuiteError:
    """An error of this suite in one line, and the commands of the sequence that it was raised in; "": in none."""

    sequence: str
    what: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """What the broker refuses again and again in the same way, or never answers: then `answer` is empty
    (`conformance.verdicts.causes`). Where `answer` is one of `ENDS`, `what` is owed, and that comes in place of it;
    where it is `IS_TAKEN` or `IS_WRONG`, that is said of `what` (`conformance.verdicts.habits`).

    `failure` is the identity that it is reported under, `under` are others that come from it. `blocked`: sequences
    that were ended by it and say no more.
    """

    failure: str
    what: str
    answer: str
    blocked: int
    under: tuple[str, ...] = ()

    @property
    def is_habit(self) -> bool:
        """Does the broker do so wherever it comes up, and end no sequence by it (`conformance.verdicts.habits`)?"""
        return self.answer in (*ENDS, IS_TAKEN, IS_WRONG)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a part of a run was judged to its end; `ended_by`: (identity or reason, how many), most first.

    `by_something_new` of the others were ended by a failure that was not reported before in the run. `not_begun`: how
    many there would have been besides, had the time not been up.
    """

    sequences: int = 0
    to_the_end: int = 0
    ended_by: tuple[tuple[str, int], ...] = ()
    by_something_new: int = 0
    not_begun: int = 0


@dataclass(frozen=True, slots=True)
class RunResult:
    """All that a report says about a run. `undecided` lists (sequence, reason) of inconclusive sequences, not more than
    some number of them; `undecided_of` counts all, by the identity of the failure that is the reason, None where it is
    none. Empty: all are listed.
    """

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
    undecided_of: Mapping[str | None, int] = field(default_factory=dict)
    seconds: float = 0.0
    #: why the run ended before its end; None if it did not
    lost: str | None = None
    #: what became of the known defects of the target's version (of its dialect, where the version is not known)
    defects: tuple[DefectOutcome, ...] = ()
    #: how late the broker was with what it did by itself: (sequence, measurement)
    measurements: tuple[tuple[str, Measurement], ...] = ()
    #: what sequences made, and the broker did not delete: "queue NAME", "exchange NAME"
    left_behind: tuple[str, ...] = ()
    #: connections that the broker still has open when the run is over, where an operator can count them
    connections_left: int = 0
    #: what is wrong with the broker when the run is over: it is not as whole as it was before
    not_whole: tuple[str, ...] = ()
    #: what the broker refuses, and what is not known for that
    causes: tuple[Cause, ...] = ()
    #: rules that the search left alone, each with the identity of the failure that is the reason
    left_alone: tuple[tuple[str, str], ...] = ()
    scenarios_extent: Extent = Extent()
    search_extent: Extent = Extent()
    #: by requirement: how long its scenarios took, and its part of each sequence of the search; empty: not known
    seconds_of: Mapping[str, float] = field(default_factory=dict)
    #: names of the scenarios that were carried out and decided
    decided: frozenset[str] = frozenset()
    #: of a product that is not RabbitMQ, where its choices were looked at: what it does as RabbitMQ, and otherwise
    compatibility: tuple[SeenWay, ...] = ()
    #: what is wrong with the deviation file
    problems: tuple[str, ...] = ()
    #: errors of this suite, which cost no more than the sequences that they were raised in
    errors: tuple[SuiteError, ...] = ()

    @property
    def summary(self) -> dict[str, int]:
        """How many requirements ended in each verdict; all five verdicts are keys."""
        return _counted(requirement.verdict for requirement in self.requirements)

    @property
    def summary_as_known(self) -> dict[str, int]:
        """The same, against the broker as it is known."""
        return _counted(requirement.as_known for requirement in self.requirements)

    @property
    def fails(self) -> bool:
        """Does anything deviate that the deviation file does not list, and that is more than arguable?"""
        return any(map(fails_a_run, self.failures))

    @property
    def is_empty(self) -> bool:
        """Was nothing carried out, as no scenario that was chosen is applicable, and nothing was searched?"""
        return not self.sequences

    def is_as_known(self, found: FoundFailure) -> bool:
        """Is the failure a known defect of the target's version (of its dialect, where the version is not known)?"""
        return is_as_known(found.failure, self.target.dialect, self.target.judged_version)

    @property
    def exit_code(self) -> int:
        """3 if the target was lost, else 1 if something deviates that neither deviation file nor gate accepts, or if
        something is wrong with that file or, at the end, with the broker as a whole, else 4 if nothing was carried out,
        if a requirement could not be decided, or more sequences than `leaves_decided` allows, or if an error of this
        suite cost more than a sequence, else 0. What is undecided by an accepted failure, such as a crash, is accepted
        with it, and so is what an accepted failure cut short. What is only arguable (`model.promises.strength`) is
        reported, and fails no run.
        """
        if self.lost is not None:
            return 3
        if self.fails or self.problems or self.not_whole:
            return 1
        if self.is_empty or any(not each.sequence for each in self.errors):
            return 4
        accepted = {None if found.known is None else found.failure.identity for found in self.failures} - {None}
        open = sum(many for identity, many in self._undecided_of.items() if identity not in accepted)
        undecided = any(
            each.verdict is Verdict.INCONCLUSIVE and accepted.isdisjoint((each.reason, failure_behind(each.reason)))
            for each in self.requirements
        )
        return 4 if undecided or not leaves_decided(open, self.sequences) else 0

    @property
    def _undecided_of(self) -> Mapping[str | None, int]:
        return self.undecided_of or Counter(failure_behind(reason) for _, reason in self.undecided)

    @property
    def undecided_count(self) -> int:
        """How many sequences are inconclusive, listed or not."""
        return sum(self._undecided_of.values())


def fails_a_run(found: FoundFailure) -> bool:
    """Does the failure fail a run? Not if the deviation file lists it, or if it is only arguable."""
    return found.known is None and strength_of(found.failure) is not Strength.ARGUABLE


def _counted(verdicts: Iterable[Verdict]) -> dict[str, int]:
    counts = Counter(verdicts)
    return {str(verdict): counts[verdict] for verdict in Verdict}


def is_harmless_only(judgement: SequenceJudgement) -> bool:
    """Did the sequence fail, and only in what is arguable or minor?"""
    return judgement.verdict is Verdict.FAIL and all(
        is_harmless(failure, judgement.product, judgement.dialect) for failure in judgement.failures
    )


class Said(NamedTuple):
    """What one sequence says about a requirement: both verdicts, and times exercised."""

    verdict: Verdict
    as_known: Verdict
    exercised: int


def cut_short_by(judgement: SequenceJudgement) -> str | None:
    """What ended a scenario before it was over, though its own requirement was kept till then; None: nothing did. What
    the scenario was still to show was not seen. A known defect is not meant, whose scenarios were made beside it.
    """
    aim = judgement.requirement
    if aim is None or judgement.verdict is not Verdict.FAIL or not judgement.exercised.get(aim):
        return None
    is_own = any(each.requirement == aim for each in judgement.failures)
    is_known = any(each.defect and each.identity == judgement.ended_by for each in judgement.failures)
    return None if is_own or is_known else judgement.ended_by


def requirement_verdicts(judgement: SequenceJudgement) -> dict[str, Said]:
    """What one sequence says about each requirement it concerns.

    A requirement that a failure blames failed; where it breaks only what the text recommends, it passed. The one that
    the sequence was written for shares the sequence's fate when that is inconclusive or not applicable; where another
    failure cut it short, it is not exercised. The others that made a difference passed. An undecided search is for no
    requirement; it is filed under "" so that no table loses it. What a recording does not tell is inconclusive. Against
    the broker as it is known, a requirement passed all of whose failures are known defects.
    """
    verdicts = {id: (Verdict.PASS, count) for id, count in judgement.exercised.items() if count > 0}
    aim = judgement.requirement
    blamed: set[str] = set()
    if judgement.verdict is Verdict.INCONCLUSIVE:
        verdicts[aim or ""] = (Verdict.INCONCLUSIVE, judgement.exercised.get(aim or "", 0))
    elif aim is not None and aim not in verdicts:
        absent = judgement.verdict is Verdict.NOT_APPLICABLE
        verdicts[aim] = (Verdict.NOT_APPLICABLE if absent else Verdict.NOT_EXERCISED, 0)
    elif aim is not None and cut_short_by(judgement) is not None:
        verdicts[aim] = (Verdict.NOT_EXERCISED, 0)
    for id in judgement.undecided:
        verdicts[id] = (Verdict.INCONCLUSIVE, judgement.exercised.get(id, 0))
    said = {id: Said(verdict, verdict, exercised) for id, (verdict, exercised) in verdicts.items()}
    for failure in judgement.failures:
        id = failure.requirement
        if recommendation(failure, judgement.dialect) is not None:
            if id not in said or said[id].verdict is Verdict.NOT_EXERCISED:
                said[id] = Said(Verdict.PASS, Verdict.PASS, max(judgement.exercised.get(id, 0), 1))
            continue
        is_known = is_as_known(failure, judgement.dialect, judgement.version)
        explained = is_known and (id not in blamed or said[id].as_known is Verdict.PASS)
        said[id] = Said(Verdict.FAIL, Verdict.PASS if explained else Verdict.FAIL, judgement.exercised.get(id, 0))
        blamed.add(id)
    return said


def write_end(trace: TraceWriter, judgement: SequenceJudgement) -> TraceRow:
    """Close the sequence in the trace with what was found in it; gives the last row."""
    return trace.end(
        judgement.sequence,
        judgement.verdict,
        judgement.failures,
        judgement.exercised,
        reason=judgement.reason,
        measurements=judgement.measurements,
    )
