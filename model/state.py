"""The nouns of the model: what a broker has to remember.

Plain mutable records without behaviour of their own; `model.broker` changes them, the rules say how. A message
that is in a queue is in exactly one of two places: its queue's `messages` (ready) or one channel's `unacknowledged`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from model.alphabet import Content, Frame, Table

#: A channel's identity: connection name and channel number.
ChannelKey = tuple[str, int]


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
    #: seconds that it may take beyond the usual deadline
    patience: float = 0.0
    #: seconds after the client's last sign of life before which it may not come
    not_before: float = 0.0


@dataclass(slots=True, eq=False)
class PendingGet:
    """A basic.get that was processed: get-ok with a ready message, or get-empty (GET-001)."""

    queue: Queue
    no_ack: bool
    #: only messages published before the request was processed
    position_limit: int
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Assembly:
    """A content of which the method has come, and not all of the rest (model.rules.assembly)."""

    method: Frame
    #: octets of the body that are still to come; None: the content header is; negative: more came than was announced
    missing: int | None = None
    #: what the content header announced
    size: int = 0
    #: None: they cannot be read
    properties: Table | None = None
    #: what came of the body
    pieces: tuple[bytes, ...] = ()


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
    #: direct replies delivered of late, that some brokers give no delivery tag of their own (model.messages)
    uncounted_replies: int = 0
    #: the requirement that the last input came under: blamed for a frame that nothing explains
    reason: str = ""
    #: the content that has begun and is not complete
    assembly: Assembly | None = None

    @property
    def key(self) -> ChannelKey:
        return (self.connection, self.number)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the operator made. Users that the broker had already may do everything, for all that is known."""

    name: str
    password: str
    #: by virtual host: patterns of the names that he may configure, write and read; none: no access to it
    permissions: dict[str, tuple[str, str, str]] = field(default_factory=dict)


class ConnectionState(Enum):
    """Where in its life a connection is; from STARTING to OPEN, and CLOSING, RabbitMQ's names are the values."""

    #: TCP is connected, and the protocol header has not come
    AWAITING_HEADER = "awaiting a protocol header"
    #: connection.start is sent or owed, and start-ok has not come; and so on
    STARTING = "starting"
    TUNING = "tuning"
    OPENING = "opening"
    OPEN = "running"
    #: a close was sent by either side; of the client nothing counts but his own close and close-ok
    CLOSING = "closing"
    #: refused without a word: of the client nothing counts any more
    ENDING = "ending"
    CLOSED = "closed"
    #: it speaks another protocol that the broker knows as well: nothing is known of what is right there
    FOREIGN = "foreign"

    @property
    def in_handshake(self) -> bool:
        return self in _HANDSHAKE


_HANDSHAKE = frozenset(
    {
        ConnectionState.AWAITING_HEADER,
        ConnectionState.STARTING,
        ConnectionState.TUNING,
        ConnectionState.OPENING,
    }
)


@dataclass(slots=True, eq=False)
class Connection:
    name: str
    state: ConnectionState = ConnectionState.AWAITING_HEADER
    #: those of the client
    capabilities: Table = field(default_factory=dict)
    server_properties: Table = field(default_factory=dict)
    #: "": one that the broker had already, and whose name is nobody's business
    user: str = ""
    vhost: str = "/"
    channel_max: int = 0
    owed: list[Expected | PendingGet] = field(default_factory=list)
    #: the broker may end the TCP connection from now on
    may_end: bool = False
    #: … and may say connection.close before it does, with words of its own choice
    may_announce_end: bool = False
    #: what connection.start and connection.tune offered, as far as they were seen
    mechanisms: tuple[str, ...] = ()
    offered: Table = field(default_factory=dict)
    #: what the client's tune-ok said
    frame_max: int = 0
    heartbeat: int = 0
    #: the client wants to be told of cancelled consumers, and says so in a way that does not count (CAP-005)
    wish_in_vain: bool = False
    #: its beginning is not in the trace, and credentials were not recorded (traces of the first version)
    is_assumed: bool = False
    #: when TCP was connected, and when the client was last heard (of `Frame.time`)
    began: float = 0.0
    heard: float = 0.0
    #: the broker does not read it because of an alarm (CAP-004); what it was sent meanwhile; the client knows (CAP-003)
    blocked: bool = False
    held: list[Frame] = field(default_factory=list)
    told_of_block: bool = False

    @property
    def is_told_of_cancels(self) -> bool:
        """Both sides say that the broker tells of consumers that it cancels (CANCEL-010, CAP-005)."""
        advertised = self.server_properties.get("capabilities", {"consumer_cancel_notify": True})
        if not isinstance(advertised, dict) or advertised.get("consumer_cancel_notify") is not True:
            return False
        return self.capabilities.get("consumer_cancel_notify") is True
    #: the client sent a frame of another size than it says: where the next one begins is not known
    out_of_step: bool = False
