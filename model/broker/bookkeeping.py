"""What is noted for the judge on the way: no rule asks for it, and states are equal whatever it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.measurement import Measurement


@dataclass(slots=True, eq=False)
class Bookkeeping:
    #: known defects that would have shown, and did not (model.judging.refuted)
    refuted: set[str] = field(default_factory=set)
    #: how late the broker was with what it did by itself
    measurements: list[Measurement] = field(default_factory=list)
