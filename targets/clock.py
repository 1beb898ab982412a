"""The time that a broker and its clients go by.

It passes by itself, unless broker and clients are in one process and share a `FastForwardClock`: there, whoever would
only wait puts it forward, and what the broker does by itself comes about at its moment all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Seconds since some moment, as `time.monotonic` counts them."""

    def now(self) -> float:
        return time.monotonic()


#: What everybody goes by who is not told otherwise.
COMMON = Clock()


class SteppedClock(Clock):
    """One that a test puts forward: it tells the broker's time, and clients go by their own."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return time.monotonic() + self.ahead


class FastForwardClock(Clock):
    """One that can be put forward, which the broker attends to."""

    #: Seconds to put it forward by: what falls due within them seems to be late by no more than that.
    STEP = 0.1
    #: Seconds to wait for what the broker is about to do anyway, before the clock is touched.
    MOMENT = 0.02

    def __init__(self) -> None:
        self._ahead = 0.0
        self._attendants: list[Callable[[], None]] = []

    def now(self) -> float:
        return time.monotonic() + self._ahead

    def attend(self, look: Callable[[], None]) -> None:
        """Have the broker look at the clock by this, which comes back when it has done what was due."""
        self._attendants.append(look)

    def catch_up(self) -> None:
        """Come back when the broker has done all that it could by now, and has sent what it had to say."""
        for look in self._attendants:
            look()
            look()  # what it said when it looked has certainly been written when it looks again

    def put_forward(self, seconds: float) -> None:
        self._ahead += seconds
