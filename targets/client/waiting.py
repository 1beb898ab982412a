"""Awaiting a frame, by a clock that may be put forward."""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.clock import Clock, FastForwardClock

#: Gives the next frame, awaited for so many seconds at most.
Awaits = Callable[[float], TraceEvent | None]


def awaited(next_frame: Awaits, clock: Clock, timeout: float) -> TraceEvent | None:
    """The next frame. With a clock that can be put forward nobody waits for what does not come."""
    if not isinstance(clock, FastForwardClock):
        return next_frame(timeout)
    until = clock.now() + timeout
    event = next_frame(min(timeout, clock.MOMENT))
    while event is None:
        # also where the machine let the whole time pass: what the broker could do by now is there
        clock.catch_up()
        event = next_frame(0)
        left = until - clock.now()
        if event is not None or left <= 0:
            break
        clock.put_forward(min(left, clock.STEP))
    return event
