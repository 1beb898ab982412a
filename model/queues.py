"""Queues and exchanges, the messages that are in them, and who consumes from them.

Plain mutable records without behaviour of their own; `model.broker` changes them, the rules say how. A message
that is in a queue is in exactly one of two places: its queue's `messages` (ready) or one channel's `unacknowledged`
(`model.state`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from model.alphabet import ChannelKey, Content, Table

#: Begins the name in the model of a queue that the broker named, until its reply has told the name.
UNKNOWN_NAME = "amq.gen-?"


class Arrival(Enum):
    """How sure it is that a ready message is in its queue already, and no longer on its way there.

    Publishes and settlements travel from the channel's process to the queue's: a count or a get may miss them.
    """

    PROVEN = "proven"
    #: published; those of one channel arrive in order
    PUBLISHED = "published"
    #: given back; arrives at any moment
    RETURNING = "returning"


class QueueType(Enum):
    CLASSIC = "classic"
    QUORUM = "quorum"
    STREAM = "stream"


@dataclass(slots=True, eq=False)
class Message:
    """One message in one queue (a publish that reaches two queues makes two)."""

    content: Content
    exchange: str
    routing_key: str
    #: place in the queue's publish order; messages of one queue never share one
    position: int
    redelivered: bool = False
    #: failed deliveries, and all earlier deliveries (quorum queues)
    delivery_count: int = 0
    acquired_count: int = 0
    #: the requirement that put the message where it is, and when: blamed if it turns up elsewhere
    reason: str = "PUBLISH-002"
    stamp: int = 0
    arrival: Arrival = Arrival.PUBLISHED
    #: channels that were handed a later message of the queue: this one is on its way to somebody else
    passed_over_by: frozenset[ChannelKey] = frozenset()
    #: the channel that put the message where it is, and the number of the crowd of messages that were on their way at
    #: one time: in a crowd, those of different channels are in either order. Negative: a crowd in front
    via: ChannelKey | None = None
    crowd: int = 0
    #: how many more times it may have been handed to somebody whose connection ended before it was sent
    unseen: int = 0


@dataclass(slots=True, eq=False)
class Consumer:
    tag: str
    channel: ChannelKey
    queue: Queue
    no_ack: bool
    #: most unacknowledged deliveries; 0 is unlimited (QOS-001, QOS-002)
    prefetch: int
    exclusive: bool = False
    arguments: Table = field(default_factory=dict)
    outstanding: int = 0
    #: when it was created (the stamp of its basic.consume)
    created: int = 0
    #: consume-ok was seen, or none is owed (CONSUME-001)
    announced: bool = False
    #: what last made room for a delivery, and when
    reason: str = "CONSUME-001"
    stamp: int = 0
    #: streams: the next offset to deliver
    next_offset: int = 0


@dataclass(slots=True, eq=False)
class Queue:
    name: str
    type: QueueType = QueueType.CLASSIC
    durable: bool = False
    #: the connection that it is exclusive to
    owner: str | None = None
    auto_delete: bool = False
    arguments: Table = field(default_factory=dict)
    #: ready messages, the next one to deliver first
    messages: deque[Message] = field(default_factory=deque)
    #: of these, how many at the front were given back (quorum queues keep them apart, rabbit_fifo:return)
    returned: int = 0
    #: of these, the ones that are not proven to have arrived, in the order in which they set out
    unproven: dict[Message, None] = field(default_factory=dict)
    #: number of the present crowd (`Message.crowd`)
    crowd: int = 0
    consumers: list[Consumer] = field(default_factory=list)
    #: consumers that are gone but may still be counted
    leaving: int = 0
    #: holders of deliveries that settled them and may still be counted (quorum queues; model.departures)
    settling: int = 0
    #: what changed the number of ready messages last
    reason: str = "QUEUE-001"
    next_position: int = 0
    #: messages settled or dropped of late, newest last, kept only to word failures
    gone: deque[Message] = field(default_factory=lambda: deque(maxlen=64))
    deleted: bool = False
    #: streams: everything ever published
    log: list[Message] = field(default_factory=list)
    #: names of all virtual hosts are in one dictionary: a sequence gives each name once
    vhost: str = "/"
    #: it stands for the address of a channel's direct replies (model.rules.direct_reply)
    reply_address: bool = False
    #: with x-expires: when it was last used, at the earliest and at the latest (of `Frame.time`); how often it was
    #: used; the number of the use that is certainly over, and of the one from which on it may have expired already
    idle_since: float = 0.0
    idle_by: float = 0.0
    uses: int = 0
    settled_use: int = 0
    expiring_use: int = 0

    @property
    def single_active_consumer(self) -> bool:
        return bool(self.arguments.get("x-single-active-consumer"))


@dataclass(slots=True, eq=False)
class Exchange:
    name: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = field(default_factory=dict)
    #: from here to queues and other exchanges, in no order
    bindings: list[Binding] = field(default_factory=list)
    #: those that were taken back of late, newest last: blamed if messages still go their way
    unbound: list[Binding] = field(default_factory=list)

    @property
    def alternate(self) -> str | None:
        """The exchange that is asked when no binding matches (PUBLISH-010). It need not exist."""
        return self.arguments.get("alternate-exchange")


@dataclass(frozen=True, slots=True)
class Binding:
    destination: Queue | Exchange
    routing_key: str
    #: the arguments in the order of their names, with values as text that tells their types apart
    identity: tuple[tuple[str, str], ...] = ()
    arguments: Table = field(default_factory=dict, compare=False)
