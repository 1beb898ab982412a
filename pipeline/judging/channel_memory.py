"""What is remembered of a channel while its facts are taken (`connection_facts`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from amqpspec.conformance.traces.trace_row import TraceRow

#: A message in a queue.
Place = tuple[str, int]


class Publish(NamedTuple):
    """What was published. `keys`: the routing key, and those of CC and BCC."""

    message: int
    exchange: str
    keys: tuple[str, ...]
    headers: dict[str, Any]
    time: float
    expires: bool
    is_mandatory: bool


@dataclass(slots=True)
class Channel:
    last_queue: str = ""
    #: consumer tag -> its queue, and whether what it gets is settled at once
    consumers: dict[str, tuple[str, bool]] = field(default_factory=dict)
    #: consumers that the server is to name, in order
    nameless: list[tuple[str, bool]] = field(default_factory=list)
    #: queues that it took messages from
    sources: set[str] = field(default_factory=set)
    held: dict[int, Place] = field(default_factory=dict)
    #: the highest tag of a delivery, and those below that none had
    highest: int = 0
    skipped: set[int] = field(default_factory=set)
    #: requests that wait: name, row, how many messages were given back before it, how often all was settled
    asked: list[tuple[str, TraceRow, int, int]] = field(default_factory=list)
    #: how often all that was outstanding was settled at once, and how often that is known to have been read; what the
    #: broker sends in between may have been settled on its way
    all_settled: int = 0
    all_read: int = 0
    #: given back, not known to have been read yet
    returned: list[tuple[Place, float]] = field(default_factory=list)
    #: of these were read since
    pinned: int = 0
    #: number of the last publish in confirm mode; -1: it is in none
    published: int = -1
    unconfirmed: dict[int, Publish] = field(default_factory=dict)
    in_transaction: bool = False
    #: of the transaction: what is published, with its form, settled, given back
    publishes: list[tuple[Publish, int]] = field(default_factory=list)
    settles: list[tuple[int, Place, bool]] = field(default_factory=list)
    #: of the last commit, whose reply has not come
    committed: list[Publish] = field(default_factory=list)
    #: when the client asked to close it
    closing: float | None = None
