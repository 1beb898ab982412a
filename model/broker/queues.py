"""Queues and exchanges, the messages that are in them, and who consumes from them.

Plain mutable records without behaviour of their own; `model.broker.broker` changes them, the rules say how. A message
that is in a queue is in exactly one of two places: its queue's `messages` (ready) or one channel's `unacknowledged`
(`model.broker.state`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Content, Table

#: Begins a consumer tag that the broker chose; and the tag in the model until its reply has told it.
CHOSEN_TAG = "amq.ctag-"
UNKNOWN_TAG = "amq.ctag-?"


class Arrival(Enum):
    """How sure it is that a ready message is in its queue already, and no longer on its way there.

    Publishes and settlements travel from the channel's process to the queue's: a count or a get may miss them.
    """

    PROVEN = "proven"
    #: published; those of one channel arrive in order
    PUBLISHED = "published"
    #: given back; arrives at any moment
    RETURNING = "returning"


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
    #: the channel that put the message where it is, and the number of the group of messages that were on their way at
    #: one time: in a group, those of different channels are in either order. Negative: a group in front
    via: ChannelKey | None = None
    transit_group: int = 0
    #: how many more times it may have been handed to somebody whose connection ended before it was sent
    unseen: int = 0
    #: … and to somebody who does not acknowledge: then it is gone
    may_be_gone: bool = field(default=False, kw_only=True)
    #: how many more times it may have been handed to a consumer that was cancelled before (model.rules.basic.unseen)
    recalled: int = 0
    #: its time may have been up before its channel ended: then its last delivery has not failed (QUORUM-002)
    may_have_timed_out: bool = field(default=False, kw_only=True)
    #: what its priority is worth in its queue (model.broker.message_order)
    priority: int = 0
    #: entries of its history if it is a dead letter, the latest first (model.broker.dead_letter_headers)
    deaths: tuple[Table, ...] = ()
    #: routing keys besides the first: those in CC and BCC, and of these the ones in BCC
    further_keys: tuple[str, ...] = ()
    hidden_keys: tuple[str, ...] = ()
    #: failed deliveries that it takes along when it is dead-lettered (DLX-010)
    failures: int = 0
    #: of a dead letter: octets of the history that the client had sent along (DLX-004), which is stored as it was
    sent_history: int = field(default=0, kw_only=True)
    #: one that may be behind it was handed over before: at whose turn this one is, is not known (PRIORITY-002)
    is_late: bool = False
    #: the requirement by which its queue refused it, which it never was in (model.broker.overflow)
    refused_by: str = field(default="", kw_only=True)
    #: when its time in its queue is up, by which requirement; since when at the latest it is what the queue looks at
    #: (all: model.broker.time_to_live)
    deadline: Deadline | None = field(default=None, kw_only=True)
    ttl_from: str = field(default="", kw_only=True)
    in_front_by: float = field(default=NEVER, kw_only=True)


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
    #: streams: the next offset to deliver; where the broker chooses where to begin, the earliest and the latest one
    next_offset: int = 0
    latest_offset: int = 0
    #: streams: it has been handed something
    has_begun: bool = False
    #: the requirement that its limit is by (model.rules.basic.qos)
    prefetch_from: str = ""
    #: without acknowledgements: the limit of the channel when it was made, beyond which a quorum queue hands out
    #: nothing at once (its channel settles for it, rabbit_fifo_client:handle_delivery)
    unheeded_prefetch: int = field(default=0, kw_only=True)
    #: when that one was created, if it still held something when this one came: a quorum queue knows it by that one's
    #: key then (rabbit_fifo:find_consumer, from 4.0)
    known_since: int | None = field(default=None, kw_only=True)
    #: it got its room so late that the queue may not know of it yet
    is_doubtful: bool = field(default=True, kw_only=True)
    #: seconds in which it has to settle a delivery, by which requirement; how many of its deliveries have timed out
    #: and are not settled (model.rules.extensions.consumer_timeout)
    timeout: float = field(default=0.0, kw_only=True)
    timeout_from: str = field(default="", kw_only=True)
    timed_out: int = field(default=0, kw_only=True)
    #: consumers of its priority that were served since it has been waiting with room (PRIORITY-002)
    overtaken_by: frozenset[tuple[ChannelKey, str]] = field(default=frozenset(), kw_only=True)

    @property
    def key(self) -> int:
        """Quorum queues go through their consumers in this order (`model.rules.basic.requeue.lost_order`)."""
        return self.created if self.known_since is None else self.known_since


@dataclass(frozen=True, slots=True)
class Dropping:
    """A message dropped from the head of its queue, the later one that leaves no room for it, and its dead letters."""

    message: Message
    cause: Message
    letters: tuple[tuple[Queue, Message], ...] = ()


@dataclass(slots=True, eq=False)
class Seat:
    """That of a queue's single active consumer (model.broker.dispatch)."""

    holder: Consumer | None = None
    #: somebody of higher priority waits until the holder has settled everything (SAC-004)
    is_being_left: bool = False
    #: the requirement that put the holder there, and SAC-001 once it was served
    reason: str = "SAC-001"
    #: who was to leave it last; what was ready before this stamp may have been handed to that one unseen
    former: Consumer | None = None
    unseen_before: int = 0


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
    #: number of the present group (`Message.transit_group`)
    transit_group: int = 0
    #: the channel that published all of it; None: several did, or some of it was given back
    transit_group_via: ChannelKey | None = field(default=None, kw_only=True)
    consumers: list[Consumer] = field(default_factory=list)
    #: consumers that are gone but may still be counted
    still_counted: int = 0
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
    #: it stands for the address of a channel's direct replies (model.rules.extensions.direct_reply)
    reply_address: bool = False
    #: with x-expires: when it was last used, at the earliest and at the latest (of `TraceEvent.time`); how often it was
    #: used; the number of the use that is certainly over, and of the one from which on it may have expired already
    idle_since: float = 0.0
    idle_by: float = 0.0
    uses: int = 0
    settled_use: int = 0
    expiring_use: int = 0
    #: streams: offsets that are known to begin a chunk (True) or to continue one (False; model.broker.stream_log)
    chunk_starts: dict[int, bool] = field(default_factory=dict)
    #: streams: when the first message was published (of `TraceEvent.time`)
    log_began: float = 0.0
    #: whose turn it is where two classes of priority take turns (model.broker.message_order)
    turn: int = 0
    #: messages published before this position were in the queue, or had left it, when all was at rest
    at_rest: int = 0
    #: how many messages it has handed out since all was at rest
    handed_out: int = field(default=0, kw_only=True)
    seat: Seat = field(default_factory=Seat, kw_only=True)
    #: what it has dropped because of a message that may not have come to it yet: until then it has them still
    dropping: list[Dropping] = field(default_factory=list, kw_only=True)
    #: how many of its deliveries have timed out, and how many had a deadline
    timeouts: int = field(default=0, kw_only=True)
    deadlines: int = field(default=0, kw_only=True)

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
