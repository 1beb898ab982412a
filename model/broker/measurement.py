"""How late a broker acts when a time is up, as far as that is seen from outside.

The clock began at some moment between two that are known (`model.broker.deadlines`), so how late something comes is a
span as well: from what it is if the clock began as late as it can have, to what it is if it began as early.
"""

from __future__ import annotations

from dataclasses import dataclass

from amqpspec.model.broker.deadlines import LATE_SECONDS, NEVER, Deadline
from amqpspec.model.protocol.methods import TraceEvent


@dataclass(frozen=True, slots=True)
class Measurement:
    """A time that was up, and what came of it. All times are seconds; `time` is that of what came."""

    #: the one that says when it is to come
    requirement: str
    #: what came: the frame's method
    method: str
    time: float
    #: the time that was up
    nominal: float
    #: by how much it was late, at least and at most; negative: early
    least: float
    most: float
    #: time between two looks of the broker at its clock; 0: it sets an alarm
    tick: float = 0.0

    @property
    def earliest(self) -> float:
        """How early (negative) it may be: clocks differ (`model.broker.deadlines`)."""
        return Deadline(self.nominal, 0.0).earliest - self.nominal

    @property
    def latest(self) -> float:
        """How late it is expected to be at most: from then on the judge takes it that the time was up."""
        return self.tick + LATE_SECONDS

    @property
    def is_expected(self) -> bool:
        """May it have come in the time in which it is expected?"""
        return self.least <= self.latest and self.most >= self.earliest


@dataclass(frozen=True, slots=True)
class Due:
    """Why a frame is owed: a time is up. `tick`: as in `Measurement`."""

    requirement: str
    deadline: Deadline
    tick: float = 0.0

    @property
    def latest(self) -> float:
        """From then on it is too late."""
        return self.deadline.latest + self.tick

    def measured(self, event: TraceEvent) -> Measurement:
        """The frame is what was owed."""
        deadline = self.deadline
        most = event.time - deadline.since - deadline.seconds
        # where it is not known when the time began, it may have been up just now
        least = min(most, 0.0) if deadline.by == NEVER else event.time - deadline.due
        return Measurement(self.requirement, event.name, event.time, deadline.seconds, least, most, self.tick)
