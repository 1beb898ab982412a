"""Channels, and what they hold: deliveries that wait for settlement, consumers, publishes that wait for a confirm.

Plain mutable records without behaviour of their own, like those of `model.broker.queues`; the steps in
this folder change them, the rules say how. The fields of each stand in groups, as those there.

Requirements:

* CHAN-005: After a soft error the channel ignores everything but close/close-ok. After sending channel.close the server
  drops all methods on that channel until channel.close-ok; a crossing client channel.close is answered with close-ok.
  [rabbit_channel.erl:handle_exception; rabbit_reader.erl:handle_frame closing; AMQP 0-9-1 class channel]
* CLUSTER-013: Mirrored: a confirm waits for all mirrors. A publish to a classic queue that a policy mirrors (ha-mode)
  is confirmed when each mirror has it: who is told so finds it there when the leader is lost. [RabbitMQ 3.10 guide:
  classic queue mirroring (publisher confirms); v3.10.9 rabbit_mirror_queue_master]
* CONSUME-013: no_ack consumer. Deliveries of a no_ack consumer count as acked when sent: ack of such a tag is 406; on
  channel close they are lost. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.consume]
* REPLY-006: Replies take part in the count of deliveries. Deliveries of direct replies have delivery tags of their own,
  in one series with all others of the channel. In rabbitmq-3: broken: a reply has the tag that the next delivery has as
  well. In rabbitmq-4.0: broken: a reply has the tag that the next delivery has as well. [AMQP 0-9-1 basic.deliver,
  delivery-tag; rabbit_channel:handle_cast deliver_reply (up to 4.1)]
* QOS-001: Per-consumer prefetch. basic.qos(n, global=false) limits each consumer created LATER on the channel to n
  unacked messages, independently. [RabbitMQ guide: consumer prefetch]
* QOS-008: Global qos <=4.2. qos(n, global=true) limits the sum of unacked over all consumers of the channel. [RabbitMQ
  guide: consumer prefetch; rabbit_limiter]
* QOS-011: Global limit does not claw back. qos(n,true) sent after deliveries does not retract what is out or on its way
  to the client by then, and no more than that may exceed it: further deliveries only when less than n is unacked, also
  for consumers that were there before. In rabbitmq-4.3: read as a limit of consumers to come: those that exist go on
  without it. [RabbitMQ guide: consumer acknowledgements (prefetch changed in mid-flight); rabbit_channel.erl:basic.qos
  unacked count]
* QOS-013: Limiter counts gets (<=4.2). Messages of basic.get that are unacked when the channel's limit is set count
  towards it, until they are settled; those got later do not. In rabbitmq-3: broken: they count for ever. In
  rabbitmq-4.0: broken: they count for ever. [rabbit_channel.erl:basic.qos (comment TODO), notify_limiter]
* QUEUE-029: A name can be used again with another type. After delete-ok a queue of the same name and another type can
  be declared, and used on every channel as if the first one had never been. In rabbitmq-3: broken: 541, both ways. In
  rabbitmq-4.0: broken: 541 from quorum to classic. In rabbitmq-4.3: broken: 541 from quorum to classic.
  [rabbit_queue_type:get_ctx_with; 0-9-1 section 1.7.2.9 (queue.delete)]
* TX-006: A tag acked in an open tx cannot be acked again. Second ack of the same tag before commit is 406 unknown
  delivery tag. [rabbit_channel.erl:collect_acks; AMQP 0-9-1 class tx]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum

from amqpspec.model.broker.deadlines import Deadline
from amqpspec.model.broker.facts import DeliveryOver, told
from amqpspec.model.broker.field_kinds import derived, doubt, law, to_blame
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer, Message, Queue, is_behind
from amqpspec.model.broker.transaction import Transaction
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Method, Table


@dataclass(slots=True, eq=False)
class Unacknowledged:
    """A delivery that waits for its settlement. `consumer` is None when basic.get made it."""

    message: Message
    queue: Queue
    consumer: Consumer | None
    #: when its time is up (model.broker.delivery_timeouts); None: never
    deadline: Deadline | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A delivery whose time was up: its message is in the queue again, and the client may still settle it (area
    TIMEOUT). `consumer` is None when basic.get made it.
    """

    queue: Queue
    consumer: Consumer | None
    message: Message


@dataclass(frozen=True, slots=True)
class Lost:
    """A message that may have been on its way to a consumer when the channel ended, and what it was like then."""

    consumer: Consumer
    message: Message
    as_it_was: Message


@dataclass(frozen=True, slots=True)
class Assembly:
    """A content of which the method has come, and not all of the rest (model.rules.connection.assembly)."""

    method: Method
    #: octets of the body that are still to come; None: the content header is; negative: more came than was announced
    missing: int | None = None
    #: what the content header announced
    size: int = 0
    #: None: they cannot be read
    properties: Table | None = None
    #: what came of the body
    pieces: tuple[bytes, ...] = ()


class Admission(Enum):
    """What a quorum queue that refuses told a channel which publishes to it (`rabbit_fifo_client`, queue_status)."""

    ADMITTED = "go"
    REFUSED = "reject_publish"
    #: told so of late: the channel may not know it yet
    TOLD_TO_GO_ON = "go on its way"
    TOLD_TO_REFUSE = "reject_publish on its way"

    @property
    def heard(self) -> Admission:
        """What it is when the channel has heard of it."""
        if self is Admission.TOLD_TO_GO_ON:
            return Admission.ADMITTED
        return Admission.REFUSED if self is Admission.TOLD_TO_REFUSE else self


class ChannelState(Enum):
    OPEN = "open"
    #: the broker closed it and waits for close-ok; everything else is ignored (CHAN-005)
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Channel:
    # ---- law
    connection: str
    number: int
    state: ChannelState = ChannelState.CLOSED
    _: KW_ONLY
    key: ChannelKey = derived(init=False)
    next_tag: int = 1
    #: where numbers may be left out, as the text lets a broker: the first of those that came one after the other until
    #: now; and of each such row before it the first, and the one behind the last
    first_in_row: int = 1
    numbered_before: tuple[tuple[int, int], ...] = ()
    unacknowledged: dict[int, Unacknowledged] = field(default_factory=dict)
    #: deliveries that the client has not settled, and which have gone back to their queues in the meantime
    timed_out: dict[int, TimedOut] = law(factory=dict, view="timed_out")
    consumers: dict[str, Consumer] = law(factory=dict, view="own_consumers")
    #: limit of consumers to come (QOS-001), and of the whole channel (QOS-008); 0: none
    prefetch: int = 0
    channel_prefetch: int = 0
    #: all deliveries with smaller tags count towards the channel's limit (QOS-013)
    counted_below_tag: int = law(0, view="limit")
    #: while no limit of the channel is in force: the next one counts what the channel holds then (QOS-013)
    counts_anew: bool = law(True, view="limit")
    confirming: bool = False
    published: int = 0
    #: sequence number of a publish to the message copies that it made
    unconfirmed: dict[int, tuple[tuple[Queue, Message], ...]] = law(factory=dict, view="unconfirmed")
    #: the lowest number acked by the latest basic.acks without another frame in between; 0: the last was another frame
    lowest_of_acks: int = 0
    #: None: the channel is not in transaction mode (area TX)
    transaction: Transaction | None = None
    owed: list[Expected | PendingGet] = field(default_factory=list)
    last_queue: str | None = None
    #: the types of the queues that the channel has dealt with, by name (QUEUE-029)
    known_types: dict[str, QueueType] = field(default_factory=dict)
    #: how many direct replies were delivered on it (REPLY-006)
    direct_replies: int = 0
    #: the content that has begun and is not complete
    assembly: Assembly | None = None
    #: the server's settings when it was opened: seconds in which a delivery is to be settled, and between two looks
    #: at that (model.broker.delivery_timeouts)
    timeout: float = 0.0
    tick: float = 0.0

    # ---- doubt
    #: how many deliveries were on their way to the client when the channel's limit came: not held back by it (QOS-011)
    under_way: int = doubt(0, view="limit")
    #: quorum queues with reject-publish that it has published to
    admissions: dict[Queue, Admission] = doubt(factory=dict)
    #: consumers that are gone while messages may be under way to them: until the client hears that their queue is
    #: deleted; until cancel-ok where it has cancelled one that may have been served again; or until everything has come
    #: where it wants no answer
    may_still_be_served: dict[str, Consumer] = doubt(factory=dict, view="leaving")
    #: what may be seen of a channel that has ended, until the end is seen as well (model.outputs.late_deliveries)
    lost: list[Lost] = doubt(factory=list, view="lost")
    #: replies that it owed when it ended, or its connection did: sent before, perhaps, where the end is known from
    #: elsewhere
    unread: tuple[Expected, ...] = doubt(())
    #: quorum queues that had a consumer with room on it when it broke its connection: they may hear of its end after
    #: that of the other channels
    may_be_served_by: frozenset[str] = doubt(frozenset())
    #: the delivery that was the oldest one when last looked at, and since when at the latest
    oldest_tag: int = doubt(0, view="oldest")
    oldest_by: float = doubt(0.0, view="oldest")
    #: since when, at the earliest, another delivery is the oldest one than before, because that was settled
    oldest_since: float = doubt(0.0, view="oldest")

    # ---- blame
    #: the requirement that the last input came under: blamed for a frame that nothing explains
    reason: str = to_blame("")
    #: the requirement that the limit of consumers to come is by (model.rules.basic.qos)
    prefetch_from: str = to_blame("")
    #: tags of consumers that are gone, with the requirement that ended them: to blame late deliveries, and to tell
    #: whether the client is told of the end
    ended_consumers: dict[str, str] = law(factory=dict, view="ended")
    #: deliveries that were settled of late, or needed no settlement (model.broker.facts)
    over: tuple[DeliveryOver, ...] = to_blame(())
    #: how many publishes were counted when confirm.select was repeated
    selected_again: int = to_blame(0)
    #: confirm.select asked for no answer, and nothing has shown yet that it was heeded
    selected_untold: bool = to_blame(False)
    #: the numbers below its own that the last frame with `multiple` confirmed
    confirmed_together: frozenset[int] = to_blame(frozenset())

    def __post_init__(self) -> None:
        self.key = (self.connection, self.number)

    def come_to_rest(self) -> None:
        """Nothing is under way any more."""
        self.under_way = 0
        if self.admissions:
            known = self.admissions.items()
            self.admissions = {queue: told.heard for queue, told in known if not queue.deleted}
        self.may_still_be_served.clear()
        self.lost.clear()
        self.lowest_of_acks = 0  # what is confirmed from now on is in no batch with it

    @property
    def unsettled(self) -> dict[int, Unacknowledged]:
        """The deliveries that the client has not settled, nor asked to be settled by the transaction (TX-006)."""
        reserved = self.transaction.reserved if self.transaction is not None else ()
        if not reserved:
            return self.unacknowledged
        return {tag: entry for tag, entry in self.unacknowledged.items() if tag not in reserved}

    def confirms_due(self) -> Iterator[int]:
        """The numbers of open publishes that wait for no mirror (CLUSTER-013)."""
        return (number for number, copies in self.unconfirmed.items() if not is_behind(queue for queue, _ in copies))

    def has_used(self, tag: int) -> bool:
        """Has a delivery had this number?"""
        rows = (*self.numbered_before, (self.first_in_row, self.next_tag))
        return any(first <= tag < behind for first, behind in rows)

    def number_anew(self, tag: int) -> None:
        """The next delivery has this number, which does not follow the one before."""
        self.numbered_before = (*self.numbered_before, (self.first_in_row, self.next_tag))
        self.first_in_row = self.next_tag = tag

    def note_over(self, *tags: int, again: str) -> None:
        """Of late these deliveries were settled, or needed no settlement: which requirement forbids to settle them."""
        self.over = told(self.over, *[DeliveryOver(tag, again) for tag in tags])

    def forbidden_again(self, tag: int) -> str:
        """The requirement that forbids to settle the delivery, as it is over; "": it was not so of late."""
        return next((each.again for each in reversed(self.over) if each.tag == tag), "")

    @property
    def automatic(self) -> int:
        """How many deliveries needed no settlement, of late."""
        return sum(each.again == "CONSUME-013" for each in self.over)

    def queue_of(self, tag: int) -> Queue:
        """The queue that the delivery came from, which the client has not settled."""
        late = self.timed_out.get(tag)
        return late.queue if late is not None else self.unacknowledged[tag].queue

    @property
    def outstanding_tags(self) -> list[int]:
        """The tags that the client can still settle, of what has timed out as well; lowest first."""
        if not self.timed_out:
            return list(self.unsettled)
        reserved = self.transaction.reserved if self.transaction is not None else ()
        return sorted(tag for tags in (self.unacknowledged, self.timed_out) for tag in tags if tag not in reserved)
