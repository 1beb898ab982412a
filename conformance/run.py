"""The main job: scenarios, then stateful search, on one target. Everything it finds is told as events.

The engine knows no display and no report; they listen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from amqpspec.conformance.failures.findings import Findings
from amqpspec.conformance.interruption import raise_if_interrupted, was_interrupted
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import applicable, not_applicable
from amqpspec.conformance.scenarios.configured_alike import configured_alike
from amqpspec.conformance.scenarios.scenario_files import is_scenario, selected, sequence_name
from amqpspec.conformance.search.machine import themes_for
from amqpspec.conformance.search.round import ROUND
from amqpspec.conformance.session.cleanup import Cleaner, Made, clean_up
from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence, Place
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.side_by_side import MOST_SET_ASIDE, OneAtATime, SetAside, under_way
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.broken_rules import BrokenRules
from amqpspec.conformance.verdicts.causes import Argument, Causes
from amqpspec.conformance.verdicts.events import (
    Listener,
    RunFinished,
    RunStarted,
    SequenceFinished,
    SequenceStarted,
    tell,
)
from amqpspec.conformance.verdicts.judgement import Extent, RunResult, SequenceJudgement
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.version import tool_version
from amqpspec.conformance.workers import MadeRound, Round, WorkerLost, Workers, is_over, workers_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.severity import rank
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.health import check_alive, not_served
from amqpspec.targets.brokers.shared_configuration import SharedConfiguration
from amqpspec.targets.errors import TargetError, TargetUnreachable

#: Seconds that an owed frame may take while a failure is shrunk.
SHRINKING_DEADLINE = 0.5


#: Rounds of the search behind which it is looked at what the target refuses and breaks: for the first time, and from
#: then on.
FIRST_ROUNDS, LATER_ROUNDS = 2, 8


def _extent(ended_by: Counter[str | None], by_something_new: int) -> Extent:
    reasons = tuple((reason, times) for reason, times in ended_by.most_common() if reason is not None)
    return Extent(ended_by.total(), ended_by[None], reasons, by_something_new)


class Runner:
    """One run. A target that is lost ends it early: the result says so, and has what was found till then."""

    def __init__(
        self, target: TargetUnderTest, trace: TraceWriter, options: RunOptions, listeners: Iterable[Listener] = ()
    ) -> None:
        self.target = target
        self.options = options
        self.listeners: tuple[Listener, ...] = (OneAtATime(listeners),)
        self.tally = RunTally()
        self._dialect = dialect_named(target.description.dialect)
        self._cleaner = Cleaner()
        self._place = Place(
            target, trace, options.seed, options.pace, was_interrupted, Patience(target.deadline), self._cleaner
        )
        self._findings = Findings(
            self._dialect, options.shrinking_time, self._run_again, self.listeners, target.description.judged_version
        )
        self._left_behind: list[Made] = []
        self._not_whole: tuple[str, ...] = ()
        self._causes = Causes()
        self._broken = BrokenRules()
        #: for scenarios (True) and the search: why sequences were not judged to their end; None: they were
        self._ended_by: dict[bool, Counter[str | None]] = {True: Counter(), False: Counter()}
        #: and by what was not reported before
        self._ended_anew: Counter[bool] = Counter()
        #: names of scenarios
        self._decided: set[str] = set()
        self._began = time.monotonic()

    def run(self) -> RunResult:
        """Run everything; the result is also the last event, which comes after an interruption as well."""
        scenarios: Sequence[CommandFile] = ()
        if not self.options.search_only:
            scenarios = applicable(selected(self.options.only, self.target.description.dialect), self.target)
        planned = len(scenarios) + self.options.sequences
        tell(self.listeners, RunStarted(self.target.description, self.options.seed, self.options.pace().mode, planned))
        lost: str | None = None
        try:
            with workers_for(self._place, self.options, self._is_enough) as workers:
                self._run_scenarios(scenarios, workers)
                if self.options.sequences and not self._is_enough():
                    self._search(workers)
            raise_if_interrupted()
            self._findings.shrink_all(time.monotonic() - self._began)
            raise_if_interrupted()
            self._ask_whether_whole()
        except (TargetError, WorkerLost) as error:
            lost = f"the target was lost after {self.tally.sequences} sequences: {error}"
        except KeyboardInterrupt:
            lost = f"interrupted after {self.tally.sequences} sequences"
            raise
        finally:
            self._cleaner.close()
            result = self._result(lost)
            tell(self.listeners, RunFinished(result))
        return result

    def _is_enough(self) -> bool:
        enough = self.options.enough
        return enough is not None and any(enough(found.failure) for found in self._findings.found.values())

    # ----------------------------------------------------------------------------------------- scenarios

    def _run_scenarios(self, scenarios: Sequence[CommandFile], workers: Workers) -> None:
        """Those that wait beside all others, rough ones behind the gentle, those that want to be alone at the end."""
        side_by_side = [each for each in scenarios if not each.waits and not each.alone]
        with under_way([each for each in scenarios if each.waits], self._begin, self.target.clock) as waiting:
            for is_rough in (False, True):
                chosen = (self._sequence(each) for each in side_by_side if each.rough is is_rough)
                for outcome in workers.carried_out(chosen):
                    self._take(outcome)
            for waited in waiting:
                self._take(waited)
        for group in configured_alike(each for each in scenarios if each.alone):
            if not self._is_enough():
                self._run_configured_alike(group)

    def _run_configured_alike(self, group: Sequence[CommandFile]) -> None:
        """Scenarios for which the broker is configured in one way: they run beside each other, and beside no others."""
        operator = self.target.operator
        if len(group) == 1 or operator is None:
            for scenario in group:
                self._take(self._begin(scenario))
            return
        with SharedConfiguration(operator) as shared:
            place = replace(self._place, target=replace(self.target, operator=shared))
            with under_way(group, lambda each: place.carry_out(self._sequence(each)), self.target.clock) as finished:
                for outcome in finished:
                    self._take(outcome)

    def _sequence(self, scenario: CommandFile) -> CommandSequence:
        """The sequence of a scenario, which is about to be carried out."""
        name = sequence_name(scenario)
        tell(self.listeners, SequenceStarted(name, scenario.requirement))
        return CommandSequence(name, scenario.commands, scenario.requirement)

    def _begin(self, scenario: CommandFile) -> CarriedOut:
        return self._place.carry_out(self._sequence(scenario))

    # -------------------------------------------------------------------------------------------- search

    def _search(self, workers: Workers) -> None:
        """Search until the number of sequences is reached."""
        if not themes_for(self._dialect, self.options.themes):
            return
        until = None
        if self.options.time_budget is not None:
            until = time.monotonic() + self.options.time_budget
        with SetAside(self._place.carry_out, self.target.clock) as waiting:
            for rounds in self._rounds(until):
                for made in workers.made(rounds):
                    self._carry_out(made, workers, waiting, until)
            for each in waiting.taken(but=0):
                if not self._is_enough():
                    self._take(each)

    def _carry_out(self, rounds: Sequence[MadeRound], workers: Workers, waiting: SetAside, until: float | None) -> None:
        """What waits is begun at once. Of that as many are taken behind each round as if it had been made by then."""
        round_of: dict[str, int] = {}
        chosen: list[CommandSequence] = []
        still_to_come = [0] * len(rounds)
        for number, made in enumerate(rounds):
            for sequence, waits in made:
                if waits:
                    tell(self.listeners, SequenceStarted(sequence.name))
                    waiting.begin(sequence)
                    still_to_come[:number] = (1 + many for many in still_to_come[:number])
                else:
                    round_of[sequence.name] = number
                    chosen.append(sequence)
        outcomes = workers.carried_out(chosen, until)
        outcome = next(outcomes, None)
        for number in range(len(rounds)):
            while outcome is not None and round_of[outcome.sequence.name] == number:
                tell(self.listeners, SequenceStarted(outcome.sequence.name))
                self._take(outcome)
                outcome = next(outcomes, None)
            for each in waiting.taken(but=MOST_SET_ASIDE + still_to_come[number]):
                self._take(each)

    def _rounds(self, until: float | None) -> Iterator[Iterator[Round]]:
        """Some at a time: what was learned of the target by then is heeded by the next ones."""
        first, many = 0, FIRST_ROUNDS
        while first * ROUND < self.options.sequences and not is_over(until) and not self._is_enough():
            learned = (self._causes.refused, frozenset(self._broken.avoided)) if self.options.learns else ()
            yield self._some_rounds(range(first, first + many), until, *learned)
            # where there is something to learn, more is to be expected
            first, many = first + many, FIRST_ROUNDS if any(map(bool, learned)) else LATER_ROUNDS

    def _some_rounds(
        self,
        numbers: Iterable[int],
        until: float | None,
        refused: frozenset[Argument] = frozenset(),
        avoided: frozenset[str] = frozenset(),
    ) -> Iterator[Round]:
        for number in numbers:
            left = self.options.sequences - number * ROUND
            if left <= 0 or is_over(until) or self._is_enough():
                return
            yield Round(number, min(left, ROUND), refused, avoided)

    # ------------------------------------------------------------------------------------ what comes of them

    def _take(self, outcome: CarriedOut) -> None:
        """Count a finished sequence, and remember what is new in it.

        One in which the target was lost is neither: what it found may be no more than that end.
        """
        raise_if_interrupted()
        self._left_behind += outcome.left_behind
        if outcome.judgement.verdict is Verdict.FAIL or outcome.overdue:
            self._check_alive(outcome.sequence.name)
        judgement = self._causes.judged(outcome.judgement)
        self._note_end(judgement)
        self._broken.note(judgement, is_scenario(judgement.sequence))
        self.tally.add(judgement)
        if judgement.requirement is not None and judgement.verdict in (Verdict.PASS, Verdict.FAIL):
            self._decided.add(judgement.sequence)
        tell(self.listeners, SequenceFinished(judgement))
        for failure in judgement.failures:
            self._findings.note(failure, outcome.sequence.name, outcome.commands_until(failure.identity))

    def _note_end(self, judgement: SequenceJudgement) -> None:
        kind = is_scenario(judgement.sequence)
        self._ended_by[kind][judgement.ended_by] += 1
        new = {each.identity for each in judgement.failures}.difference(self._findings.found)
        self._ended_anew[kind] += judgement.ended_by in new

    def _run_again(self, name: str, repeats: str, commands: Sequence[Command]) -> SequenceJudgement:
        """Run commands of the sequence `repeats`, or some of them, that belong to no count, with little patience."""
        again = CommandSequence(name, tuple(commands), repeats=repeats, deadline=SHRINKING_DEADLINE)
        outcome = self._place.carry_out(again)
        self._left_behind += outcome.left_behind
        if outcome.overdue:
            self._check_alive(name)
        return outcome.judgement

    def _check_alive(self, sequence: str) -> None:
        """A target that let a deadline pass, or ended connections, may be gone for good."""
        try:
            check_alive(self.target.address)
        except TargetError as error:
            raise TargetUnreachable(f"behind {sequence}: {error}") from error

    def _ask_whether_whole(self) -> None:
        """Now that all connections of the run are over: does the broker serve a fresh one, and delete what is left?"""
        self._cleaner.close()
        wrong = [not_served(self.target.address)]
        self._left_behind = clean_up(self.target.address, self._left_behind)
        if count := len(self._left_behind):
            wrong.append(f"{count} of the queues and exchanges that this run made cannot be deleted")
        self._not_whole = tuple(filter(None, wrong))

    # -------------------------------------------------------------------------------------------- result

    def _result(self, lost: str | None) -> RunResult:
        dialect = self.target.description.dialect
        failures = [
            replace(self._findings.found.get(identity, counted), sequences=counted.sequences)
            for identity, counted in self.tally.found.items()
        ]
        return RunResult(
            tool="amqpspec",
            tool_version=tool_version(),
            target=self.target.description,
            seed=self.options.seed,
            mode=self.options.pace().mode,
            requirements=self.tally.requirements(requirements().values(), dialect, not_applicable(self.target)),
            failures=tuple(sorted(failures, key=lambda found: rank(found.failure))),
            sequences=self.tally.sequences,
            frames=self.tally.frames,
            undecided=tuple(self.tally.undecided),
            seconds=time.monotonic() - self._began,
            lost=lost,
            defects=self.tally.defects(dialect, self.target.description.judged_version),
            measurements=tuple(self.tally.measurements),
            left_behind=tuple(f"{kind} {name}" for kind, name in self._left_behind),
            not_whole=self._not_whole,
            causes=self._causes.causes,
            left_alone=tuple(self._broken.avoided.items()) if self.options.learns else (),
            scenarios_extent=_extent(self._ended_by[True], self._ended_anew[True]),
            search_extent=_extent(self._ended_by[False], self._ended_anew[False]),
            decided=frozenset(self._decided),
        )
