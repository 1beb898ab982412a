"""Who carries out the sequences of a run: the process itself, or several that share the target and the trace.

Work is begun in the order in which it is given, and what comes of it is given back in that order, so a run tells the
same story however many carry it out.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Event
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import absent_methods, needs_operator
from amqpspec.conformance.search.actions import Limits
from amqpspec.conformance.search.machine import Made
from amqpspec.conformance.search.round import ROUND, make_round
from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence, Place
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.causes import Argument
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.clock import FastForwardClock

#: Pieces of work for each worker that are begun ahead of what was given back last.
AHEAD = 16


@dataclass(frozen=True, slots=True)
class Round:
    """A round of the search, made where it is carried out. `most`: only so many of its sequences."""

    number: int
    most: int
    #: when (of `time.monotonic`) no sequence is begun any more
    until: float | None = None
    #: what the target is known to refuse
    refused: frozenset[Argument] = frozenset()


Work = CommandSequence | Round
#: What a piece of work comes to. Sequences of a round that wait are given back as they were made.
Outcome = CarriedOut | CommandSequence


class Workers(Protocol):
    """Use as a context manager."""

    def carried_out(self, work: Iterable[Work]) -> Iterator[Outcome]:
        """What comes of each, in order. Raises `TargetError` when the target is lost."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def workers_for(place: Place, options: RunOptions, is_enough: Callable[[], bool]) -> Workers:
    """As many as the options say. Who shares a clock with the broker shares its process.

    `is_enough`: is nothing more to be begun? A daemonic process of `multiprocessing` cannot have any others.
    """
    can_share = not isinstance(place.target.clock, FastForwardClock) and not multiprocessing.current_process().daemon
    if options.jobs > 1 and can_share:
        return SeveralProcesses(place, options, is_enough)
    return ThisProcess(place, options, is_enough)


def _outcomes(place: Place, options: RunOptions, work: Work) -> Iterator[Outcome]:
    if isinstance(work, CommandSequence):
        yield place.carry_out(work)
        return
    for sequence, waits in _made_in(work, options, place.target):
        if place.is_stopped() or is_over(work.until):
            return
        yield sequence if waits else place.carry_out(sequence)


def is_over(until: float | None) -> bool:
    return until is not None and time.monotonic() > until


def _made_in(work: Round, options: RunOptions, target: TargetUnderTest) -> Iterator[tuple[CommandSequence, bool]]:
    """The sequences of a round, each with whether it spends its time waiting."""
    made: list[Made] = make_round(
        dialect_named(target.description.dialect),
        options.seed,
        work.number,
        options.steps,
        options.themes,
        absent_methods(target),
        limits=Limits(target.channel_max, target.frame_max),
        refused=work.refused,
    )
    for number, each in enumerate(made[: work.most], start=work.number * ROUND + 1):
        yield CommandSequence(f"search {number}", each.commands), each.waits


class ThisProcess:
    """One after another, each when it is asked for."""

    def __init__(self, place: Place, options: RunOptions, is_enough: Callable[[], bool]) -> None:
        self._place = place
        self._options = options
        self._is_enough = is_enough

    def carried_out(self, work: Iterable[Work]) -> Iterator[Outcome]:
        for each in work:
            for outcome in _outcomes(self._place, self._options, each):
                yield outcome
                if self._is_enough():
                    return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class SeveralProcesses:
    """Side by side. What the operator takes part in stays in this process, which is where the operator is."""

    def __init__(self, place: Place, options: RunOptions, is_enough: Callable[[], bool]) -> None:
        self._place = place
        self._options = options
        self._is_enough = is_enough
        self._ahead = AHEAD * options.jobs
        start = _context()
        self._stop: Event = start.Event()
        target = replace(place.target, operator=None)
        self._pool = ProcessPoolExecutor(
            options.jobs, start, _begin, (target, place.trace.path, replace(options, enough=None), self._stop)
        )
        self._here = ThreadPoolExecutor(1, thread_name_prefix="operated")

    def carried_out(self, work: Iterable[Work]) -> Iterator[Outcome]:
        begun: deque[Future[list[Outcome]]] = deque()
        for each in work:
            if self._is_enough():
                break
            begun.append(self._submit(each))
            while begun and (begun[0].done() or len(begun) > self._ahead):
                yield from self._result(begun.popleft())
        while begun:
            yield from self._result(begun.popleft())

    def _submit(self, work: Work) -> Future[list[Outcome]]:
        if isinstance(work, CommandSequence) and needs_operator(work.commands):
            return self._here.submit(lambda: list(_outcomes(self._place, self._options, work)))
        return self._pool.submit(_carry_out, work)

    @staticmethod
    def _result(future: Future[list[Outcome]]) -> list[Outcome]:
        try:
            return future.result()
        except BrokenProcessPool:
            raise WorkerLost("a process of this run was ended from outside; its sequences were not judged") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What has begun is ended in good order, and deletes what it has made."""
        if kind is not None:
            self._stop.set()
        self._here.shutdown(wait=True, cancel_futures=True)
        self._pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Processes that are made from one which has loaded what they need, where the system has such."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


class WorkerLost(Exception):
    """A process that carries out sequences is gone; one line."""


# ------------------------------------------------------------------------------------ in a process of its own

_of_this_process: list[tuple[Place, RunOptions]] = []


def _begin(target: TargetUnderTest, trace: Path, options: RunOptions, stop: Event) -> None:
    # what is interrupted at the terminal is the run, which ends its workers in good order, by `stop`
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    place = Place(
        target, TraceWriter(trace, append=True), options.seed, options.pace, stop.is_set, Patience(target.deadline)
    )
    _of_this_process.append((place, options))


def _end_with_the_run() -> None:
    run = multiprocessing.parent_process()
    if run is not None:
        run.join()
        os._exit(1)


def _carry_out(work: Work) -> list[Outcome]:
    place, options = _of_this_process[0]
    return list(_outcomes(place, options, work))
