"""What a soak is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from amqpspec.conformance.soak.schedule import Kind


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """`seconds`: how long the clients run. `faults`: those that can be had. `not_offered`: those that were asked for
    and cannot. `rate`: messages a second that a publisher sends at most; 0: as many as it can. `patience`: seconds
    without a message after which nothing more is expected of a queue. `out`: the folder.
    `judges_meanwhile`: the trace is judged while it is written; else when it is complete.
    """

    seed: int
    seconds: float
    faults: tuple[Kind, ...]
    out: Path
    not_offered: tuple[Kind, ...] = ()
    rate: float = 0.0
    patience: float = 20.0
    judges_meanwhile: bool = True
