"""Sequences that spend their time waiting run beside the others, each on connections of its own.

What they need of the machine is next to nothing; what they wait for (a broker's delay before it hangs up, heartbeats,
times to live, timeouts) takes seconds. Results are taken in order, so a run tells the same story each time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.session.command_sequence import CarriedOut, CommandSequence
from amqpspec.conformance.verdicts.events import Event, Listener
from amqpspec.model.protocol.methods import CLOCK_WAIT
from amqpspec.targets.clock import Clock, FastForwardClock

#: Scenarios that wait at one time.
MOST_AT_ONCE = 16
#: The same for sequences of the search, which do more than to wait.
MOST_SET_ASIDE = 8

class _OneAfterAnother(Executor):
    """Does each task when it is submitted: a task that puts the clock forward does so for all that go on then."""

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(task(*arguments, **named))
        return done


def _waiting(clock: Clock, most: int) -> Executor:
    if isinstance(clock, FastForwardClock):
        return _OneAfterAnother()
    return ThreadPoolExecutor(most, thread_name_prefix="waiting")


class OneAtATime:
    """Listeners that are told of one event at a time, whichever thread tells it. One that raises something is told of
    no more; `erred` is told what it was.
    """

    def __init__(self, listeners: Iterable[Listener], erred: Callable[[Exception], None]) -> None:
        self._listeners = list(listeners)
        self._erred = erred
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            for listener in self._listeners.copy():
                try:
                    listener(event)
                except Exception as error:  # noqa: BLE001 - a display costs no verdict
                    self._listeners.remove(listener)
                    self._erred(error)


def longest_first(scenarios: Iterable[CommandFile]) -> list[CommandFile]:
    """In an order in which none that takes long is the last to begin.

    Those that say nothing of time wait for delays of the broker's own, which are the longest; but those that do not
    wait at all come last.
    """

    def waits_for(scenario: CommandFile) -> float:
        if not scenario.waits:
            return 0.0
        said = sum(each.arguments.get("milliseconds", 0) for each in scenario.commands if each.method == CLOCK_WAIT)
        return said or float("inf")

    return sorted(scenarios, key=waits_for, reverse=True)


@contextmanager
def under_way(
    scenarios: Sequence[CommandFile], carry_out: Callable[[CommandFile], CarriedOut], clock: Clock
) -> Iterator[Iterator[CarriedOut]]:
    """Start all of them; gives an iterator over what comes of them, which waits for each in turn.

    The iterator raises what `carry_out` raised. At the end of the context, those that have not begun never will. With a
    `FastForwardClock`, which they share, all are carried out one after another before there is an iterator.
    """
    if not scenarios:
        yield iter(())
        return
    pool = _waiting(clock, min(MOST_AT_ONCE, len(scenarios)))
    try:
        futures: list[Future[CarriedOut]] = [pool.submit(carry_out, scenario) for scenario in scenarios]
        yield (future.result() for future in futures)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class SetAside:
    """Sequences of the search that wait: begun as soon as they are made, taken in the order in which they were made.

    When one is taken depends on how many have been made since, and not on how long they take. Use as a context manager:
    at its end those that have not begun never will.
    """

    def __init__(self, carry_out: Callable[[CommandSequence], CarriedOut], clock: Clock) -> None:
        self._carry_out = carry_out
        self._pool = _waiting(clock, MOST_SET_ASIDE)
        self._begun: deque[Future[CarriedOut]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, sequence: CommandSequence) -> None:
        self._begun.append(self._pool.submit(self._carry_out, sequence))

    def taken(self, but: int = MOST_SET_ASIDE) -> Iterator[CarriedOut]:
        """What came of the oldest ones, until only so many are left. Raises what `carry_out` raised."""
        while len(self._begun) > but:
            yield self._begun.popleft().result()


def first_of(candidates: Sequence[Sequence[Command]], shows: Callable[[Sequence[Command]], bool]) -> int | None:
    """The place of the first of which that is true; all are tried at one time. Raises what `shows` raises."""
    if len(candidates) == 1:
        return 0 if shows(candidates[0]) else None
    with ThreadPoolExecutor(max(len(candidates), 1), thread_name_prefix="shrinking") as pool:
        found = list(pool.map(shows, candidates))
    return found.index(True) if True in found else None
