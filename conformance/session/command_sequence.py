"""Whole sequences: what is to be carried out, what came of it, and the place where that is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.faults import breaks_broker
from amqpspec.conformance.language.names import plain_failure
from amqpspec.conformance.session.cleanup import Cleaner
from amqpspec.conformance.session.pacing import Lockstep, Pace
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.session.through_library import not_expressible
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, erred
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import line_of


@dataclass(frozen=True, slots=True)
class CommandSequence:
    """Commands to be carried out under that name."""

    name: str
    commands: tuple[Command, ...]
    #: the one that it was written for
    requirement: str | None = None
    #: the name of the sequence that it is a repetition or a shorter form of
    repeats: str | None = None
    #: seconds that an owed frame may take, if not as many as with the target
    deadline: float | None = None
    #: what it asks for may take a sound broker long: an owed frame may take as long as was said at first, however many
    #: others were waited for in vain
    slow: bool = False
    #: a command is left out if one of these rules would apply to it: its maker did not know the state of the target
    avoided: frozenset[str] = frozenset()
    #: an error of this suite that came up when it was made, in one line
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """A finished sequence, with the commands that were not left out."""

    sequence: CommandSequence
    judgement: SequenceJudgement
    #: how often a deadline passed without what was owed
    overdue: int
    #: how many of the commands had been carried out when a failure showed, by its identity
    shown_by: Mapping[str, int] = field(default_factory=dict)
    #: what it made, and the broker did not delete: (kind, name)
    left_behind: tuple[tuple[str, str], ...] = ()
    #: methods that the broker has answered in it
    answered: frozenset[str] = frozenset()
    #: how long it took
    seconds: float = 0.0

    def commands_until(self, identity: str) -> tuple[Command, ...]:
        """The commands as far as they showed that failure."""
        return self.sequence.commands[: self.shown_by.get(identity)]


def not_judged(sequence: CommandSequence, target: TargetUnderTest, reason: str, ended_by: str) -> SequenceJudgement:
    """What is said of a sequence of which nothing was seen, or nothing that counts."""
    described = target.description
    return SequenceJudgement(
        sequence=sequence.name,
        target=described.label,
        dialect=described.dialect,
        requirement=sequence.requirement,
        verdict=Verdict.INCONCLUSIVE,
        failures=(),
        exercised={},
        reason=reason,
        frames=0,
        repeats=sequence.repeats,
        version=described.judged_version,
        product=described.product,
        ended_by=ended_by,
    )


def erring(sequence: CommandSequence, target: TargetUnderTest, line: str) -> CarriedOut:
    """What came of a sequence where nothing is known but that error of this suite."""
    return CarriedOut(sequence, not_judged(sequence, target, line, line), overdue=0)


def _never() -> bool:
    return False


def _ignored(command: Command | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Place:
    """Where sequences are carried out. `is_stopped`: is nothing more to be carried out, as the run is ended?"""

    target: TargetUnderTest
    trace: TraceWriter
    seed: int | None = None
    pace: Pace = Lockstep
    is_stopped: Callable[[], bool] = _never
    #: what it has learned of the target; None: nothing, each sequence begins with all the patience that there is
    patience: Patience | None = None
    #: deletes what its sequences made; None: each sequence connects for that by itself
    cleaner: Cleaner | None = None

    def carry_out(self, sequence: CommandSequence, begun: Callable[[Command | None], None] = _ignored) -> CarriedOut:
        """`begun` is called with each command before it is sent, and with None before connections are closed and what
        was made is deleted. Raises `TargetError` when the target is lost, and `TraceError` when nothing can be
        recorded. Whatever else is raised is an error of this suite, and costs this sequence only.
        """
        try:
            outcome = self._carry_out(sequence, begun)
        except (TargetError, TraceError):
            raise
        except Exception as error:  # noqa: BLE001 - as is said above
            return erring(sequence, self.target, line_of(error))
        if sequence.error is None:
            return outcome
        return replace(outcome, judgement=erred(outcome.judgement, sequence.error))

    def _carry_out(self, sequence: CommandSequence, begun: Callable[[Command | None], None]) -> CarriedOut:
        """On a broker of its own, where the sequence breaks it and there can be one."""
        own_broker = self.target.own_broker
        if own_broker is None or not breaks_broker(sequence.commands):
            return self._carry_out_here(sequence, begun)
        with own_broker() as broker:
            target = replace(
                self.target,
                address=broker.address,
                operator=broker.operator() if self.target.operator is not None else None,
                faults=broker.faults(),
                clock=broker.clock,
                own_broker=None,
            )
            return replace(self, target=target, cleaner=None)._carry_out_here(sequence, begun)

    def _carry_out_here(self, sequence: CommandSequence, begun: Callable[[Command | None], None]) -> CarriedOut:
        began = time.monotonic()
        target, patience = self.target, self.patience
        if sequence.deadline is not None:
            target, patience = replace(target, deadline=min(target.deadline, sequence.deadline)), None
        elif sequence.slow:
            patience = None
        session = Session(
            target,
            self.trace,
            sequence.name,
            requirement=sequence.requirement,
            seed=self.seed,
            repeats=sequence.repeats,
            planned=sequence.commands,
            pace=self.pace,
            patience=patience,
            cleaner=self.cleaner,
        )
        shown_by: dict[str, int] = {}
        left: list[Command] = []
        with session:
            for command in sequence.commands:
                if self.is_stopped():
                    session.finish(complete=False)
                    break
                if not_expressible(command, target) is not None:
                    continue  # of a search: what follows is judged by what was sent
                if sequence.avoided and session.would_come_under(command, sequence.avoided):
                    continue
                left.append(command)
                if not session.over:
                    begun(command)
                session.run(command)
                for failure in session.judge.failures:
                    shown_by.setdefault(plain_failure(failure).identity, len(left))
            session.finish()
            begun(None)
        if sequence.avoided or target.library is not None:
            sequence = replace(sequence, commands=tuple(left))
        judgement = session.finish()
        took = time.monotonic() - began
        answered = session.answered
        return CarriedOut(sequence, judgement, session.overdue, shown_by, session.left_behind, answered, took)
