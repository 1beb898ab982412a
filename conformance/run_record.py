"""What a run has found by now: each sequence is counted here once, and the result of the run is made of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from amqpspec.conformance.failures.findings import AT_ONCE, Findings, RunAgain
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.losses import Losses
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import not_applicable
from amqpspec.conformance.scenarios.scenario_files import is_scenario
from amqpspec.conformance.session.cleanup import Made
from amqpspec.conformance.session.command_sequence import CarriedOut
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.under_way import UnderWay
from amqpspec.conformance.verdicts.broken_rules import BrokenRules, Learned
from amqpspec.conformance.verdicts.causes import Causes
from amqpspec.conformance.verdicts.events import Listener, SequenceFinished, tell
from amqpspec.conformance.verdicts.habits import habits
from amqpspec.conformance.verdicts.judgement import SERVES_ON, Extent, RunResult, SequenceJudgement, SuiteError, erred
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.version import tool_version
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.suite_error import line_of


class RunRecord:
    """`run_again`: carries out a sequence, or some of its commands, for shrinking."""

    def __init__(
        self,
        target: TargetUnderTest,
        options: RunOptions,
        listeners: Iterable[Listener],
        run_again: RunAgain,
    ) -> None:
        self.tally = RunTally()
        self.losses = Losses()
        self.under_way = UnderWay()
        self.findings = Findings(
            dialect_named(target.description.dialect), options.shrinking_time, run_again, listeners,
            target.description.judged_version, options.accepted,
            1 if isinstance(target.clock, FastForwardClock) else AT_ONCE,
        )  # fmt: skip
        #: what no cleaning up could delete, and what is wrong with the target at the end
        self.left_behind: list[Made] = []
        self.not_whole: tuple[str, ...] = ()
        #: connections that the broker has open at the end, and had not before
        self.connections_left = 0
        #: of this suite
        self.errors: list[SuiteError] = []
        self._options = options
        self._listeners = tuple(listeners)
        self._causes = Causes()
        self._broken = BrokenRules()
        #: for scenarios (True) and the search: why sequences were not judged to their end; None: they were
        self._ended_by: dict[bool, Counter[str | None]] = {True: Counter(), False: Counter()}
        #: and by what was not reported before
        self._ended_anew: Counter[bool] = Counter()
        #: names of scenarios
        self._decided: set[str] = set()
        #: by requirement: `RunResult.seconds_of`
        self._seconds_of: defaultdict[str, float] = defaultdict(float)

    # ------------------------------------------------------------------------------------ what is known by now

    def is_enough(self) -> bool:
        """Has the run found what it was to look for?"""
        enough = self._options.enough
        return enough is not None and any(enough(found.failure) for found in self.findings.found.values())

    def learned(self) -> Learned:
        """What the search had better leave out."""
        never = self._causes.never_answered.union(self.losses.avoided)
        return Learned(self._causes.refused, frozenset(self._broken.avoided), never)

    def blocking(self, commands: Iterable[Command]) -> str | None:
        """The identity of a failure for which a sequence of these commands is left out; None: there is none."""
        commands = tuple(commands)
        return self.losses.blocking(commands) or self._causes.blocking(commands)

    def is_to_be_deleted(self, made: Made) -> bool:
        """Does the target know how to delete it?"""
        return f"{made[0]}.delete" not in self._causes.never_answered

    # --------------------------------------------------------------------------------------------- counting

    def count(self, outcome: CarriedOut) -> None:
        """Count a sequence that was carried out, and remember what is new in it. Where that comes to an error of this
        suite, the sequence is undecided, unless it is counted already.
        """
        self.left_behind += outcome.left_behind
        commands = tuple(map(str, outcome.sequence.commands))
        if (what := outcome.judgement.suite_error) is not None:
            self.errors.append(SuiteError(outcome.sequence.name, what, commands))
        try:
            self._count(outcome)
        except Exception as error:  # noqa: BLE001 - whatever it is, others are counted
            self.errors.append(SuiteError(outcome.sequence.name, line_of(error), commands))
            if not self.under_way.is_over(outcome.sequence.name):
                self.count_judged(erred(outcome.judgement, line_of(error)))

    def _count(self, outcome: CarriedOut) -> None:
        judgement = self._causes.judged(outcome.judgement, outcome.answered)
        self.count_judged(judgement)
        self._note_time(judgement, outcome.seconds)
        for failure in judgement.failures:
            self.findings.note(failure, outcome.sequence.name, outcome.commands_until(failure.identity))

    def count_judged(self, judgement: SequenceJudgement) -> None:
        """Count one of which no more is known than that."""
        self.under_way.end(judgement.sequence)
        of_scenario = is_scenario(judgement.sequence)
        self._ended_by[of_scenario][judgement.ended_by] += 1
        new = {each.identity for each in judgement.failures}.difference(self.findings.found)
        self._ended_anew[of_scenario] += judgement.ended_by in new
        self._broken.note(judgement, of_scenario)
        self.tally.add(judgement)
        if judgement.requirement is not None and judgement.verdict in (Verdict.PASS, Verdict.FAIL):
            self._decided.add(judgement.sequence)
        tell(self._listeners, SequenceFinished(judgement))

    def _note_time(self, judgement: SequenceJudgement, seconds: float) -> None:
        """A sequence of the search is about many requirements: each has an equal part of its time."""
        exercised = [id for id, times in judgement.exercised.items() if times]
        about = exercised if judgement.requirement is None else [judgement.requirement]
        for id in about:
            self._seconds_of[id] += seconds / len(about)

    # -------------------------------------------------------------------------------------------- result

    def result(
        self,
        target: TargetUnderTest,
        seconds: float,
        lost: str | None,
        left_alone: frozenset[str],
        is_cut_short: bool = False,
    ) -> RunResult:
        """What the run says at its end. `seconds`: since it began. `left_alone`: rules that the search left alone.
        `is_cut_short`: its time was up.
        """
        dialect = target.description.dialect
        searched = _extent(self._ended_by[False], self._ended_anew[False])
        if is_cut_short:
            searched = replace(searched, not_begun=max(self._options.sequences - searched.sequences, 0))
        failures = [
            replace(self.findings.found.get(identity, counted), sequences=counted.sequences)
            for identity, counted in self.tally.found.items()
        ] + self.losses.failures()
        said = self.tally.requirements(requirements().values(), dialect, not_applicable(target))
        return RunResult(
            tool="amqpspec",
            tool_version=tool_version(),
            target=target.description,
            seed=self._options.seed,
            mode=self._options.pace().mode,
            requirements=tuple(self.losses.verdict() if each.id == SERVES_ON else each for each in said),
            failures=tuple(sorted(failures, key=lambda found: found.order)),
            sequences=self.tally.sequences,
            frames=self.tally.frames,
            undecided=tuple(self.tally.undecided),
            undecided_of=self.tally.undecided_of,
            seconds=seconds,
            lost=lost,
            defects=self.tally.defects(dialect, target.description.judged_version),
            measurements=tuple(self.tally.measurements),
            left_behind=tuple(f"{kind} {name}" for kind, name in self.left_behind),
            not_whole=self.not_whole,
            connections_left=self.connections_left,
            compatibility=target.compatibility,
            causes=self._causes.causes + habits(failures),
            left_alone=tuple((rule, why) for rule, why in self._broken.avoided.items() if rule in left_alone),
            scenarios_extent=_extent(self._ended_by[True], self._ended_anew[True]),
            search_extent=searched,
            seconds_of=dict(self._seconds_of),
            decided=frozenset(self._decided),
            errors=(*self.errors, *self.findings.errors),
        )


def _extent(ended_by: Counter[str | None], by_something_new: int) -> Extent:
    reasons = tuple((reason, times) for reason, times in ended_by.most_common() if reason is not None)
    return Extent(ended_by.total(), ended_by[None], reasons, by_something_new)
