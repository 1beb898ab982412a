"""Deadlines: what a broker does by itself when its time is up, by a clock that is not the trace's.

All that is known of the beginning is a span: an input reaches the broker at some moment after it was sent, and by the
time at which all is at rest. Brokers look at their clocks in milliseconds, and a machine with much to do is late. So a
deadline is a span as well: before its earliest moment the thing has certainly not been done, after its latest one it
certainly has, and in between both are right. Moments are those of `TraceEvent.time`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NEVER = float("inf")

#: Seconds, and the part of the whole, by which a clock may be ahead of ours.
EARLY_SECONDS, EARLY_PART = 0.005, 0.01

#: Seconds by which a broker may be late.
LATE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Deadline:
    """So many `seconds` after a beginning that lies between `since` and `by`."""

    seconds: float
    since: float
    by: float = NEVER

    @property
    def earliest(self) -> float:
        return self.since + self.seconds * (1 - EARLY_PART) - EARLY_SECONDS

    @property
    def due(self) -> float:
        """The latest moment at which its time is up, whatever the broker does about it then."""
        return self.by + self.seconds

    @property
    def latest(self) -> float:
        return self.due + LATE_SECONDS

    def begun_by(self, now: float) -> Deadline:
        """The same, where it is known now that its time has begun."""
        return self if self.by < NEVER else replace(self, by=now)
