"""What the engine tells while it works, in order. Displays and reports only listen.

A run is `RunStarted`, then any number of sequences, then a `FailureShrunk` for each failure, then `RunFinished`.
Sequences may overlap; each has one `SequenceStarted` (one more each time that a lost target was started again before it
was over) and one `SequenceFinished`. A sequence of the search has both when its result is taken, a scenario the first
when it is handed to a worker. A single session (`amqpspec replay`) tells of commands and frames as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, SequenceJudgement, TargetDescription
from amqpspec.model.protocol.methods import TraceEvent


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The target answered and its dialect is known. `planned` is the number of sequences, if it is fixed."""

    target: TargetDescription
    seed: int | None
    mode: str
    planned: int | None = None


@dataclass(frozen=True, slots=True)
class SequenceStarted:
    """A sequence begins; `requirement` is the one that it was written for."""

    sequence: str
    requirement: str | None = None


@dataclass(frozen=True, slots=True)
class CommandIssued:
    """A command, in its canonical text, is about to be carried out."""

    sequence: str
    text: str


@dataclass(frozen=True, slots=True)
class EventObserved:
    """A frame was sent or received; it is in the trace already."""

    sequence: str
    event: TraceEvent


@dataclass(frozen=True, slots=True)
class SequenceFinished:
    """A sequence was judged."""

    judgement: SequenceJudgement


@dataclass(frozen=True, slots=True)
class ShrinkingStarted:
    """The shortest commands that show a failure are looked for: it is the `number`th of so many (`of`), from 1.

    `seconds`: all that are left take so long at the most.
    """

    requirement: str
    number: int
    of: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FailureShrunk:
    """The shortest commands that still show a failure are known."""

    found: FoundFailure


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every run, also of an interrupted one."""

    result: RunResult


Event = (
    RunStarted
    | SequenceStarted
    | CommandIssued
    | EventObserved
    | SequenceFinished
    | ShrinkingStarted
    | FailureShrunk
    | RunFinished
)
Listener = Callable[[Event], None]


def tell(listeners: Iterable[Listener], event: Event) -> None:
    """Passes `event` to every listener, in their order."""
    for listener in listeners:
        listener(event)
