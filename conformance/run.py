"""The main job: scenarios, then stateful search, on one target. Everything it finds is told as events.

The engine knows no display and no report; they listen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from hypothesis.errors import Flaky

from amqpspec.conformance.failures.findings import Findings
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import absent_methods, applicable, not_applicable
from amqpspec.conformance.scenarios.scenario_files import selected, sequence_name
from amqpspec.conformance.search.machine import CommandSearch, Deviation, themes_for
from amqpspec.conformance.search.round import run_round
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.side_by_side import OneAtATime, SetAside, under_way
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.events import (
    Listener,
    RunFinished,
    RunStarted,
    SequenceFinished,
    SequenceStarted,
    tell,
)
from amqpspec.conformance.verdicts.judgement import RunResult, SequenceJudgement
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.version import tool_version
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.errors import TargetError

#: Seconds that an owed frame may take while a failure is shrunk.
SHRINKING_DEADLINE = 0.5
#: After so many deadlines that passed in vain, this target gets less time for each frame.
PATIENCE = 3
IMPATIENT_DEADLINE = 2.5


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


class Runner:
    """One run. A target that is lost ends it early: the result says so, and has what was found till then."""

    def __init__(
        self, target: TargetUnderTest, trace: TraceWriter, options: RunOptions, listeners: Iterable[Listener] = ()
    ) -> None:
        self.target = target
        self.trace = trace
        self.options = options
        self.listeners: tuple[Listener, ...] = (OneAtATime(listeners),)
        self.tally = RunTally()
        dialect = dialect_named(target.description.dialect)
        self.findings = Findings(dialect, options.shrinking_time, self._run_again, self.listeners)
        self.overdue = 0
        self._began = time.monotonic()
        self._serial = 0

    def run(self) -> RunResult:
        """Run everything; the result is also the last event, which comes after an interruption as well."""
        scenarios: Sequence[CommandFile] = ()
        if not self.options.search_only:
            scenarios = applicable(selected(self.options.only, self.target.description.dialect), self.target)
        planned = len(scenarios) + self.options.sequences
        tell(self.listeners, RunStarted(self.target.description, self.options.seed, self.options.pace().mode, planned))
        lost: str | None = None
        try:
            self._run_scenarios(scenarios)
            if self.options.sequences and not self._enough:
                self._search()
        except TargetError as error:
            lost = f"the target was lost after {self.tally.sequences} sequences: {error}"
        finally:
            result = self._result(lost)
            tell(self.listeners, RunFinished(result))
        return result

    @property
    def _enough(self) -> bool:
        enough = self.options.enough
        return enough is not None and any(enough(found.failure) for found in self.findings.found.values())

    # ----------------------------------------------------------------------------------------- scenarios

    def _run_scenarios(self, scenarios: Sequence[CommandFile]) -> None:
        """Those that wait beside all others, rough ones behind the gentle, those that want to be alone at the end."""
        clock = self.target.clock
        with under_way([each for each in scenarios if each.waits], self._begin, clock) as waiting:
            for scenario in sorted(scenarios, key=lambda each: each.rough):
                if not scenario.waits and not scenario.alone and not self._enough:
                    self._conclude(scenario, self._begin(scenario))
            for scenario, session in waiting:
                self._conclude(scenario, session)
        for scenario in scenarios:
            if scenario.alone and not self._enough:
                self._conclude(scenario, self._begin(scenario))

    def _begin(self, scenario: CommandFile) -> Session:
        """Carry out a scenario; gives its finished session."""
        name = sequence_name(scenario)
        tell(self.listeners, SequenceStarted(name, scenario.requirement))
        return self._carry_out(name, scenario.commands, self._target(), scenario.requirement)

    def _conclude(self, scenario: CommandFile, session: Session) -> None:
        self._take(sequence_name(scenario), scenario.commands, session)

    def _take(self, name: str, commands: Sequence[Command], session: Session) -> None:
        """Count a finished session, and shrink what is new in it."""
        judgement = session.finish()
        self._count(judgement)
        new = [failure for failure in judgement.failures if failure.identity not in self.findings.found]
        for failure in new:
            self.findings.remember(failure, name, commands)
        self._heed(session)
        for failure in new:
            self.findings.shrink_and_tell(failure, name, commands)

    def _carry_out(
        self,
        name: str,
        commands: Sequence[Command],
        target: TargetUnderTest,
        requirement: str | None = None,
        repeats: str | None = None,
    ) -> Session:
        """Run the commands as one sequence; gives the session, which is finished."""
        session = self._session(target, name, requirement, repeats)
        with session:
            for command in commands:
                session.run(command)
        return session

    def _session(
        self, target: TargetUnderTest, name: str, requirement: str | None = None, repeats: str | None = None
    ) -> Session:
        options = self.options
        return Session(
            target, self.trace, name, requirement=requirement, seed=options.seed, repeats=repeats, pace=options.pace
        )

    def _run_again(self, name: str, repeats: str, commands: Sequence[Command]) -> SequenceJudgement:
        """Run commands of the sequence `repeats`, or some of them, that belong to no count, with little patience."""
        quick = replace(self.target, deadline=min(self.target.deadline, SHRINKING_DEADLINE))
        session = self._carry_out(name, commands, quick, repeats=repeats)
        self._heed(session)
        return session.finish()

    def _heed(self, session: Session) -> None:
        """A target that let a deadline pass may be gone for good: then nothing that follows would say anything."""
        self.overdue += session.overdue
        if session.overdue:
            check_alive(self.target.address)

    def _target(self) -> TargetUnderTest:
        """The target, with less patience once it has let several deadlines pass."""
        if self.overdue < PATIENCE:
            return self.target
        return replace(self.target, deadline=min(self.target.deadline, IMPATIENT_DEADLINE))

    def _count(self, judgement: SequenceJudgement) -> None:
        self.tally.add(judgement)
        tell(self.listeners, SequenceFinished(judgement))

    # -------------------------------------------------------------------------------------------- search

    def _search(self) -> None:
        """Search until the number of sequences is reached; a new failure is shrunk, then the search goes on."""
        if not themes_for(dialect_named(self.target.description.dialect), self.options.themes):
            return
        deadline = None
        if self.options.time_budget is not None:
            deadline = time.monotonic() + self.options.time_budget
        done = 0
        rounds = 0
        with SetAside(self._begin_set_aside, self.target.clock) as waiting:
            while done < self.options.sequences and not _is_over(deadline) and not self._enough:
                before = self._serial
                machine = self._machine(deadline, self.options.sequences - done, waiting)
                failure = self._search_once(machine, rounds)
                done += self._serial - before
                rounds += 1
                if failure is not None:
                    self.findings.shrink_and_tell(failure, machine.failing_sequence, machine.failing)
                for name, commands, session in waiting.taken():
                    self._take(name, commands, session)
            for name, commands, session in waiting.taken(but=0):
                if not self._enough:
                    self._take(name, commands, session)

    def _begin_set_aside(self, name: str, commands: Sequence[Command]) -> Session:
        """Carry out a sequence of the search that waits; gives its finished session."""
        tell(self.listeners, SequenceStarted(name))
        # with all the patience that there is: what keeps one waiting keeps up nobody else
        return self._carry_out(name, commands, self.target)

    def _search_once(self, machine: type[CommandSearch], number: int) -> Failure | None:
        try:
            run_round(machine, self.options.seed, number, self.options.steps)
        except (Deviation, Flaky):
            # flaky: it did not show when Hypothesis ran the same commands again; the repeats will tell how often
            return machine.failure
        finally:
            if machine.lost is not None:
                raise machine.lost
        return None

    def _machine(self, deadline: float | None, most: int, waiting: SetAside) -> type[CommandSearch]:
        runner = self

        class Search(CommandSearch):
            dialect = dialect_named(runner.target.description.dialect)
            absent = absent_methods(runner.target)
            chosen_themes = runner.options.themes
            known: ClassVar[set[str]] = set(runner.findings.found)
            failing: ClassVar[tuple[Command, ...]] = ()
            failing_sequence = ""
            failure = None
            left = most
            let_pass = False

            @classmethod
            def open_session(cls) -> Session | None:
                if cls.left <= 0 or _is_over(deadline):
                    return None
                cls.left -= 1
                if cls.let_pass:
                    try:
                        check_alive(runner.target.address)
                    except TargetError as error:
                        cls.lost = error
                        return None
                name = runner._next_name()
                tell(runner.listeners, SequenceStarted(name))
                return runner._session(runner._target(), name)

            @classmethod
            def set_aside(cls, commands: list[Command]) -> None:
                if cls.left > 0 and not _is_over(deadline):
                    cls.left -= 1
                    waiting.begin(runner._next_name(), commands)

            @classmethod
            def finished(cls, session: Session, commands: list[Command]) -> None:
                judgement = session.finish()
                runner._count(judgement)
                runner.overdue += session.overdue
                cls.let_pass = session.overdue > 0
                new = [failure for failure in judgement.failures if failure.identity not in cls.known]
                if new and cls.failure is None:
                    cls.failing, cls.failing_sequence, cls.failure = tuple(commands), session.sequence, new[0]

        return Search

    def _next_name(self) -> str:
        self._serial += 1
        return f"search {self._serial}"

    # -------------------------------------------------------------------------------------------- result

    def _result(self, lost: str | None) -> RunResult:
        dialect = self.target.description.dialect
        failures = [
            replace(self.findings.found.get(identity, counted), sequences=counted.sequences)
            for identity, counted in self.tally.found.items()
        ]
        return RunResult(
            tool="amqpspec",
            tool_version=tool_version(),
            target=self.target.description,
            seed=self.options.seed,
            mode=self.options.pace().mode,
            requirements=self.tally.requirements(requirements().values(), dialect, not_applicable(self.target)),
            failures=tuple(failures),
            sequences=self.tally.sequences,
            frames=self.tally.frames,
            undecided=tuple(self.tally.undecided),
            seconds=time.monotonic() - self._began,
            lost=lost,
            defects=self.tally.defects(dialect),
            measurements=tuple(self.tally.measurements),
        )
