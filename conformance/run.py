"""The main job: scenarios, then stateful search, on one target. Everything it finds is told as events.

The engine knows no display and no report; they listen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from dataclasses import replace

from amqpspec.conformance.failures.shrinking_time import MOST_SHRINKING_TIME, WHOLE_RUN
from amqpspec.conformance.interruption import raise_if_interrupted, undisturbed
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.faults import breaks_broker, is_left_broken
from amqpspec.conformance.losses import ENOUGH, Restarts, blocked, given_up
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.run_record import RunRecord
from amqpspec.conformance.scenarios.applicability import applicable, needs_operator
from amqpspec.conformance.scenarios.configured_alike import broken_alike, configured_alike
from amqpspec.conformance.scenarios.scenario_files import selected, sequence_name, sequence_of
from amqpspec.conformance.search_of_run import SearchOfRun
from amqpspec.conformance.session.cleanup import LAST_TIME_LIMIT, NO_ANSWER, Cleaner
from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence
from amqpspec.conformance.session.side_by_side import OneAtATime, longest_first, under_way
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.target_in_use import TargetInUse
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.verdicts.events import Listener, RunFinished, RunStarted, SequenceStarted, tell
from amqpspec.conformance.verdicts.judgement import RunResult, SuiteError
from amqpspec.conformance.workers import WorkerLost, Workers, workers_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.targets.brokers.health import is_alive, not_served
from amqpspec.targets.brokers.shared_configuration import SharedConfiguration
from amqpspec.targets.brokers.shared_faults import SharedFaults
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.errors import OperatorError, ServesNoMore, TargetError, TargetUnreachable
from amqpspec.targets.suite_error import line_of

#: Seconds that an owed frame may take while a failure is shrunk.
SHRINKING_DEADLINE = 0.5


def _is_in_order(outcome: CarriedOut) -> bool:
    """Was it carried out to its end, by a broker that was well, so that nobody has to look at it again?"""
    is_decided = outcome.judgement.verdict is not Verdict.INCONCLUSIVE  # one that is stopped in the middle is not
    is_closed = any("socket." in each.detail for each in outcome.judgement.failures)
    return is_decided and not outcome.overdue and not is_closed


class Runner:
    """One run. A target that is lost ends it early, unless somebody starts it again (`conformance.losses`): the result
    says so, and has what was found till then.
    """

    def __init__(
        self,
        target: TargetUnderTest,
        trace: TraceWriter,
        options: RunOptions,
        listeners: Iterable[Listener] = (),
        restarts: Restarts | None = None,
    ) -> None:
        self.options = options
        self.listeners: tuple[Listener, ...] = (OneAtATime(listeners, self._display_erred),)
        self._in_use = TargetInUse(target, trace, options, restarts)
        self._began = time.monotonic()
        #: what came of those that were carried out beside the workers: what was taken of it, and what was not yet
        self._carried_out_here: list[CarriedOut] = []
        self._record = RunRecord(target, options, self.listeners, self._run_again)
        self._search = SearchOfRun(
            dialect_named(target.description.dialect), options, self.listeners, self._record.under_way, self._take,
            self._is_blocked, self._record.is_enough, self._record.learned,
        )  # fmt: skip

    @property
    def target(self) -> TargetUnderTest:
        return self._in_use.target

    def run(self) -> RunResult:
        """Run everything; the result is also the last event, which comes after an interruption as well."""
        scenarios: Sequence[CommandFile] = ()
        if not self.options.search_only:
            scenarios = applicable(selected(self.options.only, self.target.description.dialect), self.target)
        planned = len(scenarios) + self.options.sequences
        tell(self.listeners, RunStarted(self.target.description, self.options.seed, self.options.pace().mode, planned))
        lost: str | None = None
        try:
            with suppress(TargetError):  # the sequences find out what it is that does not work
                self._check_alive("the start")
            self._as_far_as_it_goes(lambda: self._through_losses(lambda: self._run_all(scenarios)))
            raise_if_interrupted()
            self._as_far_as_it_goes(self._shrink_all)
            raise_if_interrupted()
            self._as_far_as_it_goes(self._ask_whether_whole)
        except TargetError as error:
            lost = f"the target was lost after {self._record.tally.sequences} sequences: {error}"
        except WorkerLost as error:
            lost = f"the run ended after {self._record.tally.sequences} sequences: {error}"
        except KeyboardInterrupt:
            lost = f"interrupted after {self._record.tally.sequences} sequences"
            raise
        finally:
            self._in_use.cleaner.close()
            seconds = time.monotonic() - self._began
            search = self._search
            result = self._record.result(self.target, seconds, lost, search.left_alone, search.is_cut_short)
            tell(self.listeners, RunFinished(result))
        return result

    def _as_far_as_it_goes(self, part: Callable[[], None]) -> None:
        """Do a part of the run. An error of this suite that costs more than a sequence ends it, and others follow."""
        try:
            part()
        except (TargetError, TraceError, WorkerLost):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, what was found is told
            self._erred(error)

    def _erred(self, error: Exception) -> None:
        self._record.errors.append(SuiteError("", line_of(error)))

    def _display_erred(self, error: Exception) -> None:
        self._record.errors.append(SuiteError("the display", line_of(error)))

    def _run_all(self, scenarios: Sequence[CommandFile]) -> None:
        """All that is not over yet."""
        left = [each for each in scenarios if not self._is_over(each)]
        if self.options.breaks:
            self._work_by(replace(self.options, breaks=False), lambda workers: self._run_scenarios(left, workers))
            self._on_one_that_is_broken(lambda: self._work_by(self.options, self._search_on))
            return

        def run_all(workers: Workers) -> None:
            self._run_scenarios(left, workers)
            self._search_on(workers)

        self._work_by(self.options, run_all)

    def _search_on(self, workers: Workers) -> None:
        if self.options.sequences and not self._record.is_enough():
            self._search.go_on(workers, self._carry_out, self.target.clock, self._gives_up_at())

    def _work_by(self, options: RunOptions, work: Callable[[Workers], None]) -> None:
        """Raises `TargetError` when the target is lost."""
        workers = workers_for(self._in_use.place, options, self._record.is_enough)
        self._carried_out_here.clear()
        try:
            with workers:
                work(workers)
        except TargetError:
            for outcome in (*workers.finished, *self._carried_out_here):
                if not self._record.under_way.is_over(outcome.sequence.name) and _is_in_order(outcome):
                    self._record.count(outcome)
            raise
        finally:
            self._record.under_way.forget(workers.not_begun)

    def _gives_up_at(self) -> float | None:
        """When a run whose target was lost begins nothing more of the search (of `time.monotonic`). None: never."""
        if not self.options.gives_up or not self._record.losses.found:
            return None
        return self._began - self.options.before + WHOLE_RUN - MOST_SHRINKING_TIME

    def _took(self) -> float:
        """Seconds that the run has taken till now."""
        return time.monotonic() - self._began + self.options.before

    def _is_over(self, scenario: CommandFile) -> bool:
        """Is nothing left to do of the scenario? Not carried out is what would end the target again."""
        if self._record.under_way.is_over(sequence_name(scenario)):
            return True
        return self._is_blocked(sequence_of(scenario))

    def _is_blocked(self, sequence: CommandSequence) -> bool:
        """Would the sequence end the target again, by what has done so before, or wait for what never comes? Then that
        is all that is said of it.
        """
        identity = self._record.blocking(sequence.commands)
        if identity is not None:
            self._record.count_judged(blocked(sequence, identity, self.target))
        return identity is not None

    # -------------------------------------------------------------------------------------- a target that is lost

    def _through_losses(self, work: Callable[[], None]) -> None:
        """Do it, again each time that the target is lost and started again. Raises `TargetError` where it is not."""
        while True:
            try:
                work()
                return
            except TargetError as error:
                raise_if_interrupted()
                with self._record.losses.timed():
                    log = self._start_again(error)
                    self._one_by_one(error, log)

    def _shrink_all(self) -> None:
        """A target that is lost again and again in it is started again, and what is left stays as long as it is: all
        that was to be seen has been seen.
        """
        for _ in range(ENOUGH):
            try:
                self._record.findings.shrink_all(self._took())
                return
            except TargetError as error:
                raise_if_interrupted()
                log = self._start_again(error)
                self._record.losses.note(str(error), log, None)
        self._record.findings.leave_the_rest()

    def _start_again(self, error: TargetError) -> tuple[str, ...]:
        """Gives the last that the target had written, on which nothing is left any more. Where nobody can start it
        again the run ends, and says that it was lost.
        """
        try:
            log = self._in_use.start_again(error)
        except TargetError as final:
            if not isinstance(final, OperatorError):
                busy = [each.name for each in self._record.under_way.busy]
                self._record.losses.note(str(error), (), None, under_way=busy, is_tried=False)
            raise
        self._record.left_behind.clear()
        return log

    def _one_by_one(self, error: TargetError, log: Sequence[str]) -> None:
        """Find the sequence that ends the target: carry out those that were under way one by one, until it is lost.

        Sequences that wait take too long for this; they are carried out with all others. If none ends it, and only a
        part of the target is gone, those that were over before the loss was noticed are carried out again as well.
        """
        over_before = self._record.under_way.unproven if isinstance(error, ServesNoMore) else []
        suspects = [suspect for suspect in self._record.under_way.busy if not self._is_blocked(suspect)]
        for suspect in suspects:
            outcome = self._carry_out_asking(suspect)
            if outcome is None:
                return
            self._record.count(outcome)
            self._stop_if_too_long()
        for suspect in over_before:
            if self._record.blocking(suspect.commands) is None:
                again = self._carry_out_asking(suspect)
                if again is None:
                    return
                self._record.left_behind += again.left_behind
        under_way = [*(each.name for each in suspects), *self._record.under_way.names]
        over = self._record.tally.sequences
        failure = self._record.losses.note(str(error), log, None, under_way=under_way, over=over)
        self._stop_if_enough(failure, error)
        self._stop_if_too_long()

    def _carry_out_asking(self, suspect: CommandSequence) -> CarriedOut | None:
        """Carry it out, and after each command ask whether the broker still answers.

        None: it does not, so that nothing is said of the suspect but that it ends the target, which is started again.
        """
        begun: list[Command | None] = []
        watch = self._in_use.watch(self._record.losses)

        def next_one(command: Command | None) -> None:
            if is_left_broken(each for each in begun if each is not None):
                pass  # that nobody answers is what was wanted
            elif begun and command is not None:
                watch.ask()
            elif begun:
                self._check_alive(suspect.name)
            begun.append(command)

        try:
            with watch:
                outcome = self._in_use.place.carry_out(suspect, next_one)
            self._check_alive(suspect.name)
        except TargetError as again:
            raise_if_interrupted()
            log = self._start_again(again)
            commands = [each for each in begun if each is not None]
            is_ended, over = None in begun, self._record.tally.sequences
            failure = self._record.losses.note(str(again), log, suspect, commands, is_ended=is_ended, over=over)
            if not self._record.under_way.is_over(suspect.name):
                self._record.count_judged(given_up(suspect, failure, self.target))
            self._stop_if_enough(failure, again)
            self._stop_if_too_long()
            return None
        return outcome

    def _stop_if_enough(self, failure: Failure, error: TargetError) -> None:
        if self._record.losses.is_enough(failure):
            raise TargetUnreachable(f"started again, and lost by the same cause as before: {error}")

    def _stop_if_too_long(self) -> None:
        self._record.losses.raise_if_too_long(self._took())

    # ----------------------------------------------------------------------------------------- scenarios

    def _run_scenarios(self, scenarios: Sequence[CommandFile], workers: Workers) -> None:
        """Scenarios that wait, and those that need the operator, run beside the others. Rough ones come after gentle
        ones, and those that want to be alone come last. While these wait, the first rounds of the search are made.
        """
        broken = [each for each in scenarios if self._is_broken_for_all(each.commands)]
        scenarios = [each for each in scenarios if each not in broken]
        together = [each for each in scenarios if not each.alone]
        waiting = [each for each in together if each.waits or (needs_operator(each.commands) and not each.rough)]
        others = [each for each in together if each not in waiting]
        others.sort(key=lambda each: (each.rough, not needs_operator(each.commands)))
        with under_way(longest_first(waiting), self._begin, self.target.clock) as waited:
            for outcome in workers.carried_out(map(self._sequence, others)):
                self._take(outcome)
            for outcome in waited:
                self._take(outcome)
        if self.options.sequences and not self._record.is_enough() and not self.options.breaks:
            self._search.prepare(workers)
        for group in configured_alike(each for each in scenarios if each.alone):
            if not self._record.is_enough():
                self._run_configured_alike(group)
        if broken and not self._record.is_enough():
            self._on_one_that_is_broken(lambda: self._run_broken(broken))

    def _on_one_that_is_broken(self, work: Callable[[], None]) -> None:
        before = list(self._record.left_behind)
        with self._in_use.bearing_faults():
            self._through_losses(work)
        if self.target.faults_elsewhere:
            self._record.left_behind[:] = before  # what is left on another broker goes with that

    def _is_broken_for_all(self, commands: Sequence[Command]) -> bool:
        """Do they break a broker that others use?"""
        return breaks_broker(commands) and self.target.own_broker is None

    def _run_broken(self, scenarios: Sequence[CommandFile]) -> None:
        """Scenarios in which the broker is stopped, killed or paused. Those to which the same is done run beside each
        other, and it is done once for all of them.
        """
        for group in broken_alike(each for each in scenarios if not self._is_over(each)):
            if not self._record.is_enough():
                self._run_broken_alike(group)

    def _run_broken_alike(self, group: Sequence[CommandFile]) -> None:
        injector = self.target.faults
        if injector is None or len(group) == 1 or isinstance(self.target.clock, FastForwardClock):
            for scenario in group:
                self._take(self._begin(scenario))
            return
        place = self._in_use.place
        shared = SharedFaults(injector, len(group), place.is_stopped)

        def carry_out(scenario: CommandFile) -> CarriedOut:
            with shared.member() as faults:
                sharing = replace(place, target=replace(place.target, faults=faults))
                return sharing.carry_out(self._sequence(scenario))

        with ThreadPoolExecutor(len(group), thread_name_prefix="broken") as pool:
            with undisturbed():  # they wait for each other, so all of them have to begin
                begun = [pool.submit(carry_out, scenario) for scenario in group]
            # while one of them goes on, the broker may be down
            wait(begun)
        lost = next((each.exception() for each in begun if each.exception() is not None), None)
        for each in begun:
            if lost is None:
                self._take(each.result())
            elif each.exception() is None and _is_in_order(each.result()):
                self._record.count(each.result())
        if lost is not None:
            raise lost

    def _run_configured_alike(self, group: Sequence[CommandFile]) -> None:
        """Scenarios for which the broker is configured in one way: they run beside each other, and beside no others."""
        operator = self.target.operator
        if len(group) == 1 or operator is None:
            for scenario in group:
                self._take(self._begin(scenario))
            return
        with SharedConfiguration(operator) as shared:
            place = replace(self._in_use.place, target=replace(self.target, operator=shared))
            with under_way(group, lambda each: place.carry_out(self._sequence(each)), self.target.clock) as finished:
                for outcome in finished:
                    self._take(outcome)

    def _sequence(self, scenario: CommandFile) -> CommandSequence:
        """The sequence of a scenario, which is about to be carried out."""
        sequence = sequence_of(scenario)
        tell(self.listeners, SequenceStarted(sequence.name, sequence.requirement))
        return self._record.under_way.begin(sequence, waits=scenario.waits)

    def _begin(self, scenario: CommandFile) -> CarriedOut:
        return self._carry_out(self._sequence(scenario))

    def _carry_out(self, sequence: CommandSequence) -> CarriedOut:
        """In this process, beside the workers."""
        outcome = self._in_use.place.carry_out(sequence)
        self._carried_out_here.append(outcome)
        return outcome

    # ------------------------------------------------------------------------------------ what comes of them

    def _take(self, outcome: CarriedOut) -> None:
        """Count a finished sequence, and remember what is new in it (`RunRecord.count`).

        One in which the target was lost is neither: what it found may be no more than that end.
        """
        raise_if_interrupted()
        if outcome.judgement.verdict is Verdict.FAIL or outcome.overdue:
            self._check_alive(outcome.sequence.name)
        self._record.count(outcome)

    def _run_again(self, name: str, repeats: str, commands: Sequence[Command]) -> Sequence[Failure]:
        """Run commands of the sequence `repeats`, or some of them, that belong to no count, with little patience."""
        again = CommandSequence(name, tuple(commands), repeats=repeats, deadline=SHRINKING_DEADLINE)
        try:
            with self._in_use.bearing_faults() if self._is_broken_for_all(commands) else nullcontext():
                outcome = self._in_use.place.carry_out(again)
        except OperatorError:
            if not is_alive(self.target.present_address):
                raise
            return ()  # what the operator was to act upon is not there in some of the commands
        raise_if_interrupted()
        if not (self.target.faults_elsewhere and self._is_broken_for_all(commands)):
            self._record.left_behind += outcome.left_behind
        if outcome.overdue:
            self._check_alive(name)
        return outcome.judgement.failures

    def _check_alive(self, sequence: str) -> None:
        """Raises `TargetUnreachable` where the target is gone, or a part of it."""
        self._in_use.check_alive(self._record.losses, sequence)
        self._record.under_way.proven()

    def _ask_whether_whole(self) -> None:
        """Now that all connections of the run are over: does the broker serve a fresh one, and delete what is left?"""
        self._in_use.cleaner.close()
        gets = dialect_named(self.target.description.dialect).text.get_is_known
        refusal = not_served(self.target.present_address, gets)
        self._record.losses.served += refusal is None
        address, record = self.target.present_address, self._record
        wrong = [refusal] if refusal is not None else []
        with Cleaner() as cleaner:
            left = cleaner.clean_up(address, record.left_behind, self._in_use.patience)
            never = [each for each in left if not record.is_to_be_deleted(each)]
            left = cleaner.clean_up(address, [each for each in left if each not in never], time_limit=LAST_TIME_LIMIT)
            if left:
                count, reason = len(left), cleaner.reasons.get(left[0], NO_ANSWER)
                wrong.append(f"{count} of the queues and exchanges that this run made cannot be deleted: {reason}")
        record.left_behind = never + left
        record.not_whole = tuple(wrong)
