"""What an alternative is (`model.judging.alternatives`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amqpspec.model.broker.broker import Broker
from amqpspec.model.protocol.methods import Frame


@dataclass(frozen=True, slots=True)
class Alternative:
    """One behaviour that is right as well, and where that was read."""

    name: str
    requirement: str
    source: str
    #: the methods that can come under it
    methods: tuple[str, ...]
    #: does this input, of one of these methods, in this state, come under it?
    applies: Callable[[Broker, Frame], bool]
    #: processes the input in the other way
    process: Callable[[Broker, Frame], None]
