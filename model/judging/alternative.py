"""What an alternative is (`model.judging.alternatives`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import Kind


@dataclass(frozen=True, slots=True)
class Alternative:
    """One behaviour that is right as well, and where that was read."""

    name: str
    requirement: str
    source: str
    #: the kinds of inputs that can come under it
    kinds: tuple[Kind, ...]
    #: does this input, one of these, in this state, come under it? It is asked about no others
    applies: Callable[[Broker, Any], bool]
    #: processes the input in the other way
    process: Callable[[Broker, Any], None]
