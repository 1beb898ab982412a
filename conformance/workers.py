"""The workers that carry out the sequences of a run: this process, or several that share the target and the trace.

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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import BaseContext, ForkServerContext
from multiprocessing.synchronize import Event
from multiprocessing.util import Finalize
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from amqpspec.conformance.interruption import undisturbed
from amqpspec.conformance.language.faults import breaks_broker
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import left_out_of_search, needs_operator
from amqpspec.conformance.search.actions import Limits
from amqpspec.conformance.search.machine import Made
from amqpspec.conformance.search.round import ROUND, make_round
from amqpspec.conformance.session.cleanup import Cleaner
from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence, Place, erring
from amqpspec.conformance.session.patience import NUMBERS, Memory, Patience
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.verdicts.causes import Argument
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import ErredElsewhere, line_of

Result = TypeVar("Result")

#: Sequences for each worker that are handed out ahead of what was given back last, which may be one that waits for
#: several deadlines.
AHEAD = 64


@dataclass(frozen=True, slots=True)
class Round:
    """A round of the search that is to be made. `most`: only so many of its sequences."""

    number: int
    most: int
    #: what the target is known to refuse
    refused: frozenset[Argument] = frozenset()
    #: rules that it breaks again and again
    avoided: frozenset[str] = frozenset()
    #: methods that end it
    ends_it: frozenset[str] = frozenset()


#: The sequences of a round, each with whether it spends its time waiting.
MadeRound = list[tuple[CommandSequence, bool]]


class Workers(Protocol):
    """Use as a context manager."""

    def made(self, rounds: Iterable[Round]) -> Iterator[list[MadeRound]]:
        """The rounds, in order: as many at a time as are made side by side, which begins at once."""
        ...

    def carried_out(self, sequences: Iterable[CommandSequence], until: float | None = None) -> Iterator[CarriedOut]:
        """What comes of each, in order. Raises `TargetError` when the target is lost.

        `until`: when (of `time.monotonic`) no sequence is begun any more; None: there is no such time.
        """
        ...

    @property
    def finished(self) -> list[CarriedOut]:
        """After the end of the context: what came of those that were asked for, given back or not."""
        ...

    @property
    def not_begun(self) -> list[str]:
        """After the end of the context: names of sequences that were asked for, and that nobody has carried out."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def begin_loading() -> None:
    """Have what worker processes are made from load what they need, while something else is waited for. Nothing where
    there can be no workers.
    """
    if isinstance(_context(), ForkServerContext) and _can_have_processes():
        resource_tracker.ensure_running()  # which unblocks signals, so it comes first
        # what is interrupted at the terminal is the run; a process that dies of it while it loads shows a traceback
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def workers_for(place: Place, options: RunOptions, is_enough: Callable[[], bool]) -> Workers:
    """As many as the options say. A run that shares a clock with the broker uses this process alone; so does a search
    that breaks a broker.

    `is_enough`: is nothing more to be begun?
    """
    can_share = not options.breaks and not isinstance(place.target.clock, FastForwardClock) and _can_have_processes()
    if options.jobs > 1 and can_share:
        return SeveralProcesses(place, options, is_enough)
    return ThisProcess(place, options, is_enough)


def _can_have_processes() -> bool:
    """A daemonic process of `multiprocessing` cannot have any others."""
    return not multiprocessing.current_process().daemon


def is_over(until: float | None) -> bool:
    return until is not None and time.monotonic() > until


def _made_in(work: Round, options: RunOptions, target: TargetUnderTest) -> MadeRound:
    """An error of this suite costs the round: in place of its sequences there is one that says so."""
    try:
        return _sequences_of(work, options, target)
    except Exception as error:  # noqa: BLE001 - whatever it is, other rounds are made
        return [(CommandSequence(f"search {work.number * ROUND + 1}", (), error=line_of(error)), False)]


def _sequences_of(work: Round, options: RunOptions, target: TargetUnderTest) -> MadeRound:
    made: list[Made] = make_round(
        dialect_named(target.description.dialect),
        options.seed,
        work.number,
        options.steps,
        options.themes,
        left_out_of_search(target, breaks=options.breaks) | work.ends_it,
        limits=Limits(target.channel_max, target.frame_max),
        refused=work.refused,
        avoided=work.avoided,
    )
    numbered = enumerate(made[: work.most], start=work.number * ROUND + 1)
    return [
        (CommandSequence(f"search {number}", each.commands, avoided=work.avoided, error=each.error), each.waits)
        for number, each in numbered
    ]


class ThisProcess:
    """One after another, each when it is asked for."""

    def __init__(self, place: Place, options: RunOptions, is_enough: Callable[[], bool]) -> None:
        self._place = place
        self._options = options
        self._is_enough = is_enough

    def made(self, rounds: Iterable[Round]) -> Iterator[list[MadeRound]]:
        for each in rounds:
            yield [_made_in(each, self._options, self._place.target)]

    def carried_out(self, sequences: Iterable[CommandSequence], until: float | None = None) -> Iterator[CarriedOut]:
        for each in sequences:
            if self._is_enough() or self._place.is_stopped() or is_over(until):
                return
            yield self._place.carry_out(each)

    @property
    def finished(self) -> list[CarriedOut]:
        return []

    @property
    def not_begun(self) -> list[str]:
        return []  # each is asked for when its turn has come

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
        target = replace(place.target, operator=None, faults=None)
        seen: Memory = start.RawArray("d", NUMBERS)
        if place.patience is not None:
            place.patience.share(seen, options.jobs + 1)
        asked = replace(options, enough=None, accepted=None)
        self._pool = ProcessPoolExecutor(
            options.jobs, start, _begin, (target, place.trace.path, asked, self._stop, seen)
        )  # fmt: skip
        self._here = ThreadPoolExecutor(1, thread_name_prefix="operated")
        self._handed_out: dict[str, Future[CarriedOut | None]] = {}

    def made(self, rounds: Iterable[Round]) -> Iterator[list[MadeRound]]:
        with undisturbed(), _told_if_lost():
            begun = [self._pool.submit(_make, each) for each in rounds]
        return _together(begun)

    def carried_out(self, sequences: Iterable[CommandSequence], until: float | None = None) -> Iterator[CarriedOut]:
        begun: deque[tuple[CommandSequence, Future[CarriedOut | None]]] = deque()
        for each in sequences:
            if self._is_enough():
                break
            begun.append((each, self._submit(each, until)))
            self._handed_out[each.name] = begun[-1][1]
            while begun and (begun[0][1].done() or len(begun) > self._ahead):
                yield from self._outcome(*begun.popleft())
        while begun:
            while self._is_enough() and begun and begun[-1][1].cancel():
                begun.pop()
            if begun:
                yield from self._outcome(*begun.popleft())

    def _outcome(self, sequence: CommandSequence, future: Future[CarriedOut | None]) -> Iterator[CarriedOut]:
        try:
            outcome = _result(future)
        except (TargetError, TraceError, WorkerLost):
            raise
        except Exception as error:  # noqa: BLE001 - what the other process could not catch, such as what is sent back
            outcome = erring(sequence, self._place.target, line_of(error))
        if outcome is not None:
            yield outcome

    def _submit(self, sequence: CommandSequence, until: float | None) -> Future[CarriedOut | None]:
        own_broker = self._place.target.own_broker is not None and breaks_broker(sequence.commands)
        if needs_operator(sequence.commands) and not own_broker:
            return self._here.submit(_carried_out_at, self._place, sequence, until)
        with undisturbed(), _told_if_lost():  # a process that is half begun would never end
            return self._pool.submit(_carry_out, sequence, until)

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

    @property
    def finished(self) -> list[CarriedOut]:
        outcomes = (each.result() for each in self._handed_out.values() if each.done() and not _has_failed(each))
        return [outcome for outcome in outcomes if outcome is not None]

    @property
    def not_begun(self) -> list[str]:
        return [name for name, outcome in self._handed_out.items() if _has_not_begun(outcome)]


def _has_failed(future: Future[CarriedOut | None]) -> bool:
    return future.cancelled() or future.exception() is not None


def _has_not_begun(future: Future[CarriedOut | None]) -> bool:
    return future.cancelled() or (future.done() and not _has_failed(future) and future.result() is None)


@contextmanager
def _told_if_lost() -> Iterator[None]:
    """Raises `WorkerLost` where a process of the run is gone."""
    try:
        yield
    except BrokenProcessPool:
        raise WorkerLost("a process of this run was ended from outside; its sequences were not judged") from None


def _result(future: Future[Result]) -> Result:
    with _told_if_lost():
        return future.result()


def _together(futures: list[Future[Result]]) -> Iterator[list[Result]]:
    if futures:
        yield list(map(_result, futures))


def _carried_out_at(place: Place, sequence: CommandSequence, until: float | None) -> CarriedOut | None:
    """None: it was not begun, as the run is ended or its time is over."""
    return None if place.is_stopped() or is_over(until) else place.carry_out(sequence)


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
#: why this process can do nothing
_broken: list[Exception] = []


def _begin(target: TargetUnderTest, trace: Path, options: RunOptions, stop: Event, seen: Memory) -> None:
    """Raises nothing, as the pool would be told of no more than that this process has ended."""
    try:
        _begin_to_work(target, trace, options, stop, seen)
    except Exception as error:  # noqa: BLE001 - it is raised by what this process is asked for
        _broken.append(error if isinstance(error, TraceError) else ErredElsewhere(line_of(error)))


def _begin_to_work(target: TargetUnderTest, trace: Path, options: RunOptions, stop: Event, seen: Memory) -> None:
    # what is interrupted at the terminal is the run, which ends its workers in good order, by `stop`
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    cleaner, patience = Cleaner(), Patience(target.deadline, target.login_time)
    patience.share(seen, options.jobs + 1)
    rows = TraceWriter(trace, append=True, goes_on=True)
    place = Place(target, rows, options.seed, options.pace, stop.is_set, patience, cleaner)
    Finalize(None, cleaner.close, exitpriority=0)
    _of_this_process.append((place, options))


def _end_with_the_run() -> None:
    run = multiprocessing.parent_process()
    if run is not None:
        run.join()
        os._exit(1)


def _work() -> tuple[Place, RunOptions]:
    for each in _broken:
        raise each
    return _of_this_process[0]


def _make(work: Round) -> MadeRound:
    place, options = _work()
    return _made_in(work, options, place.target)


def _carry_out(sequence: CommandSequence, until: float | None) -> CarriedOut | None:
    return _carried_out_at(_work()[0], sequence, until)
