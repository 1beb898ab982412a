"""Scenarios that spend their time waiting run beside the others, each on connections of its own.

What they need of the machine is next to nothing; what they wait for (a broker's delay before it hangs up, heartbeats)
takes seconds. Results are taken in order, so a run tells the same story each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from conformance.command_file import CommandFile
from conformance.events import Event, Listener, tell
from conformance.session import Session

#: Sequences that wait at one time.
MOST_AT_ONCE = 16

CarryOut = Callable[[CommandFile], Session]


class OneAtATime:
    """Listeners that are told of one event at a time, whichever thread tells it."""

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self._listeners = tuple(listeners)
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            tell(self._listeners, event)


@contextmanager
def under_way(
    scenarios: Sequence[CommandFile], carry_out: CarryOut
) -> Iterator[Iterator[tuple[CommandFile, Session]]]:
    """Start all of them; gives an iterator over them and their finished sessions, which waits for each in turn.

    The iterator raises what `carry_out` raised. At the end of the context, those that have not begun never will.
    """
    if not scenarios:
        yield iter(())
        return
    pool = ThreadPoolExecutor(min(MOST_AT_ONCE, len(scenarios)), thread_name_prefix="waiting")
    try:
        futures: list[tuple[CommandFile, Future[Session]]] = [
            (scenario, pool.submit(carry_out, scenario)) for scenario in scenarios
        ]
        yield ((scenario, future.result()) for scenario, future in futures)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
