"""The nouns of the model: what a broker has to remember.

Plain mutable records without behaviour of their own; `model.broker` changes them, the rules say how. A message
that is in a queue is in exactly one of two places: its queue's `messages` (ready) or one channel's `unacknowledged`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from model.alphabet import Content, Table

#: A channel's identity: connection name and channel number.
ChannelKey = tuple[str, int]


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
    #: (queue, routing key, binding arguments as sorted pairs), in no order
    bindings: list[Binding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Binding:
    queue: Queue
    routing_key: str
    arguments: tuple[tuple[str, Any], ...] = ()


@dataclass(slots=True, eq=False)
class Unacknowledged:
    """A delivery that waits for its settlement. `consumer` is None when basic.get made it."""

    message: Message
    queue: Queue
    consumer: Consumer | None


@dataclass(slots=True)
class Expected:
    """A frame that a channel owes, in the order of its lane.

    Arguments may be patterns. `requirements`: first the one that is broken if the frame does not come, then
    further ones that it shows. `blame`: argument names that have a requirement of their own.
    `lane`: replies of one lane keep their order; "channel", or the name of a queue that answers for the channel.
    """

    method: str
    arguments: Table
    requirements: tuple[str, ...]
    blame: dict[str, str] = field(default_factory=dict)
    content: Content | None = None
    lane: str = "channel"
    #: called with the observed arguments when the frame came: (name of a `Broker` method, its argument)
    effect: tuple[str, Any] | None = None
    #: counts as exercise of its requirements (barrier traffic does not)
    counted: bool = True
    #: sequence number of the publish that it answers (basic.return in confirm mode), else 0
    publish: int = 0
    #: argument to (value that a known departure gives it, name of the departure); see model.departures
    departures: dict[str, tuple[Any, str]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class PendingGet:
    """A basic.get that was processed: get-ok with a ready message, or get-empty (GET-001)."""

    queue: Queue
    no_ack: bool
    #: only messages published before the request was processed
    position_limit: int
    counted: bool = True


class ChannelState(Enum):
    OPEN = "open"
    #: the broker closed it and waits for close-ok; everything else is ignored (CHAN-005)
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Channel:
    connection: str
    number: int
    state: ChannelState = ChannelState.CLOSED
    next_tag: int = 1
    unacknowledged: dict[int, Unacknowledged] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    #: tags of consumers that are gone, with the requirement that ended them: to blame late deliveries
    ended_consumers: dict[str, str] = field(default_factory=dict)
    #: tags that were settled of late; delivered without need of it; taken back by recover: to blame and word
    settled: deque[int] = field(default_factory=lambda: deque(maxlen=64))
    automatic: deque[int] = field(default_factory=lambda: deque(maxlen=64))
    recovered: deque[int] = field(default_factory=lambda: deque(maxlen=64))
    #: limit of consumers to come (QOS-001), and of the whole channel (QOS-008); 0: none
    prefetch: int = 0
    channel_prefetch: int = 0
    confirming: bool = False
    published: int = 0
    #: sequence number of a publish to the message copies that it made
    unconfirmed: dict[int, tuple[tuple[Queue, Message], ...]] = field(default_factory=dict)
    owed: list[Expected | PendingGet] = field(default_factory=list)
    last_queue: str | None = None
    #: the queue types that the channel has dealt with, by name: see the departure stale-queue-type
    known_types: dict[str, QueueType] = field(default_factory=dict)
    #: the requirement that the last input came under: blamed for a frame that nothing explains
    reason: str = ""

    @property
    def key(self) -> ChannelKey:
        return (self.connection, self.number)


class ConnectionState(Enum):
    HANDSHAKE = "handshake"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Connection:
    name: str
    state: ConnectionState = ConnectionState.HANDSHAKE
    capabilities: Table = field(default_factory=dict)
    server_properties: Table = field(default_factory=dict)
    user: str = "guest"
    vhost: str = "/"
    channel_max: int = 0
    owed: list[Expected | PendingGet] = field(default_factory=list)
    #: the broker may end the TCP connection from now on
    may_end: bool = False
