"""Queues and exchanges, the messages that are in them, and who consumes from them.

Plain records without behaviour of their own, most of them mutable; the steps in this folder change them, the rules
say how. The fields of each record stand in groups: what is law, what is in doubt, what is kept to blame
(`model.broker.field_kinds`).

A message that is in a queue is in exactly one of two places: its queue's `messages` (ready) or one channel's
`unacknowledged` (`model.broker.channels`). Messages of a stream stay in its `log`, whoever is handed them.

Requirements:

* CONSUME-001: consume-ok precedes deliveries. consume-ok for a tag is sent before the first basic.deliver with that tag
  (unless nowait, then no consume-ok). [rabbit_channel.erl:basic_consume]
* PRIORITY-002: Turns within a priority. Consumers of one priority take turns: while one waits with room, no other is
  served twice before it has had its turn. One without room holds up nobody. Whose turn comes first is open. [RabbitMQ
  guide: consumer priorities; rabbit_queue_consumers:deliver, rabbit_fifo:checkout_one]
* DLX-004: Client-supplied x-death. 3.10 increments the count when a message is REPUBLISHED with its x-death header; 4.x
  ignores client-supplied x-death and starts at 1. In rabbitmq-3: 2. In rabbitmq-4.0: 1. In rabbitmq-4.3: 1. [mc_amqpl;
  RabbitMQ 4.0 release notes]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* PUBLISH-002: Default exchange routes by queue name. routing key = queue name; unknown name is unroutable.
  [rabbit_exchange:route; AMQP 0-9-1 basic.publish]
* PUBLISH-010: Alternate exchange. An unroutable message goes to the alternate exchange, keeping original exchange name
  and key; if that routes it, mandatory does not return it. [rabbit_exchange:process_alternate]
* QOS-001: Per-consumer prefetch. basic.qos(n, global=false) limits each consumer created LATER on the channel to n
  unacked messages, independently. [RabbitMQ guide: consumer prefetch]
* QOS-002: Zero is unlimited. prefetch 0 = no limit. [RabbitMQ guide: consumer prefetch; AMQP 0-9-1]
* QUEUE-001: declare-ok content. queue.declare-ok carries the (CR/LF-stripped) queue name, number of READY messages and
  number of consumers. [rabbit_channel.erl:return_queue_declare_ok; AMQP 0-9-1 class queue]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
* SAC-001: Only one consumer active. With x-single-active-consumer=true one consumer at a time gets deliveries: the
  first registered one, until another follows it. [rabbit test suite single_active_consumer_SUITE]
* SAC-004: Priority takeover. quorum 4.x: a later consumer with higher x-priority takes over once the active one has no
  unacknowledged messages; until then the active one gets nothing new, unless the other ends before. Classic queues and
  3.10: the active one stays. In rabbitmq-3: no takeover. In rabbitmq-4.0: quorum takeover; broken: not when the last
  message was given back, and not undone when the other ends. In rabbitmq-4.3: quorum takeover; broken: not undone when
  the other ends. [rabbit_fifo:quiescing]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum

from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.field_kinds import apart, derived, doubt, law, to_blame
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Content, Table

#: Begins a consumer tag that the broker chose; and the tag in the model until its reply has told it.
CHOSEN_TAG = "amq.ctag-"
UNKNOWN_TAG = "amq.ctag-?"


#: More messages than any queue holds.
ANY_NUMBER = 2**63


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

    # ---- law
    content: Content
    exchange: str
    routing_key: str
    #: place in the queue's publish order; messages of one queue never share one
    position: int
    _: KW_ONLY
    redelivered: bool = False
    #: failed deliveries, and all earlier deliveries (quorum queues)
    delivery_count: int = 0
    acquired_count: int = 0
    #: what its priority is worth in its queue (model.broker.message_order)
    priority: int = law(0, only="ready")
    #: entries of its history if it is a dead letter, the latest first (model.broker.dead_letter_headers)
    deaths: tuple[Table, ...] = law((), view="deaths")
    #: it is a dead letter that nobody was handed in this queue
    is_first_here: bool = False
    #: routing keys besides the first: those in CC and BCC, and of these the ones in BCC
    further_keys: tuple[str, ...] = ()
    hidden_keys: tuple[str, ...] = ()
    #: failed deliveries that it takes along when it is dead-lettered (DLX-010)
    failures: int = 0
    #: of a dead letter: octets of the history that the client had sent along (DLX-004), which is stored as it was
    sent_history: int = 0
    #: the requirement by which its queue refused it, which it never was in (model.broker.length_limits)
    refused_by: str = ""
    #: it was dropped, as its queue had no room for it (model.rules.extensions.drop_or_refuse)
    had_no_room: bool = False
    #: when its time in its queue is up (this and what else is said of times: model.broker.time_to_live)
    deadline: Deadline | None = None
    #: its publisher was told that the broker has it: the requirement by which it survives a crash then
    stored_by: str = ""

    # ---- doubt
    arrival: Arrival = doubt(Arrival.PUBLISHED, only="ready")
    #: channels that were handed a later message of the queue: this one is on its way to somebody else
    passed_over_by: frozenset[ChannelKey] = doubt(frozenset(), only="ready")
    #: the channel that put the message where it is, and the number of the group of messages that were on their way at
    #: one time: in a group, those of different channels are in either order. Negative: a group in front
    via: ChannelKey | None = doubt(None)
    transit_group: int = apart("its number says nothing: the view of the queue's messages has the groups", 0)
    #: deliveries that were not acknowledged, here and in the queues that it came from: any number of them may show when
    #: it is dead-lettered. And what it was seen to have brought along, which may go on counting here: failures, and all
    #: (model.outputs.carried_counts)
    tries: int = doubt(0)
    brought: tuple[int, int] = doubt((0, 0))
    #: how many more times it may have been handed to somebody whose connection ended before it was sent
    unseen: int = doubt(0)
    #: … and to somebody who does not acknowledge: then it is gone
    may_be_gone: bool = doubt(False)
    #: how many more times it may have been handed to a consumer that was cancelled before (model.rules.basic.unseen)
    recalled: int = doubt(0)
    #: its time may have been up before its channel ended: then its last delivery has not failed (QUORUM-002)
    may_have_timed_out: bool = doubt(False)
    #: a message that may stand behind it was delivered before it: so its delivery does not tell whose turn it was
    #: (PRIORITY-002)
    is_late: bool = doubt(False, only="ready")
    #: since when at the latest it is what the queue looks at
    in_front_by: float = doubt(NEVER)
    #: it may have been lost when the broker went down, or have been settled before (model.broker.survival)
    may_be_absent: bool = doubt(False)
    #: a client held it when the broker was killed: it comes back when its queue has seen that this one is gone
    may_be_late: bool = doubt(False)
    #: the broker may have forgotten that nobody was handed it
    may_be_flagged: bool = doubt(False)

    # ---- blame
    #: the requirement that put the message where it is, and when: blamed if it turns up elsewhere
    reason: str = to_blame("PUBLISH-002")
    stamp: int = apart("the order of inputs that have nothing to do with each other makes no difference", 0)
    #: the requirement by which it has a deadline
    ttl_from: str = to_blame("")
    #: the requirement by which it is there after a restart
    survived_by: str = to_blame("")
    #: who held it was connected to a node that went
    was_lost: bool = to_blame(False)


@dataclass(slots=True, eq=False)
class Consumer:
    # ---- law
    tag: str
    channel: ChannelKey
    queue: Queue
    no_ack: bool
    #: most unacknowledged deliveries; 0 is unlimited (QOS-001, QOS-002)
    prefetch: int
    exclusive: bool = False
    arguments: Table = field(default_factory=dict)
    _: KW_ONLY
    outstanding: int = 0
    #: when it was created (the stamp of its basic.consume)
    created: int = apart("as the stamps of messages", 0)
    #: consume-ok was seen, or none is owed (CONSUME-001)
    announced: bool = False
    #: streams: the next offset to deliver; where the broker chooses where to begin, the earliest and the latest one
    next_offset: int = 0
    latest_offset: int = 0
    #: streams: it has been handed something
    has_begun: bool = False
    #: without acknowledgements: the limit of the channel when it was made, beyond which a quorum queue hands out
    #: nothing at once (its channel settles for it, rabbit_fifo_client:handle_delivery)
    unheeded_prefetch: int = 0
    #: when the cancelled consumer of the same channel, tag and queue was created, if its deliveries were still held
    #: when this one came: a quorum queue takes this one for it (rabbit_fifo:find_consumer, from 4.0)
    known_since: int | None = None
    #: seconds in which it has to settle a delivery; how many of its deliveries have timed out: the broker has cancelled
    #: it then (model.rules.extensions.timeout_cancels_consumer)
    timeout: float = 0.0
    timed_out: int = 0
    #: it was cancelled, and may be served again until the broker has forgotten it
    #: (model.rules.extensions.timed_out_consumer_still_known)
    may_be_cleared: bool = False
    #: when it was cancelled (of `TraceEvent.time`)
    cancelled_at: float = apart("only how long ago it was matters, and that is alike in all explanations", 0.0)

    # ---- doubt
    #: it got its room so late that the queue may not know of it yet
    is_doubtful: bool = doubt(True, only="waiting")
    #: consumers of its priority that were served since it has been waiting with room (PRIORITY-002)
    overtaken_by: frozenset[tuple[ChannelKey, str]] = doubt(frozenset(), only="waiting")

    # ---- blame
    #: what last made room for a delivery, and when
    reason: str = to_blame("CONSUME-001")
    stamp: int = apart("as the stamps of messages", 0)
    #: the requirements that its limit is by (model.rules.basic.qos), and its time
    prefetch_from: str = to_blame("")
    timeout_from: str = to_blame("")

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


@dataclass(frozen=True, slots=True)
class Gone:
    """A fact: the message left its queue for good by that requirement, or never came into it. Nobody changes the
    message any more; it may be seen to be there again (model.broker.drops_in_doubt, model.rules.operator.faults).
    """

    message: Message
    requirement: str

    @property
    def body(self) -> bytes:
        return self.message.content.body

    def is_of(self, message: Message) -> bool:
        """Is it that one of the queue, or a copy that another explanation has of it?"""
        return self.message.position == message.position and self.body == message.content.body


@dataclass(slots=True, eq=False)
class ActiveConsumer:
    """Which consumer is the active one, if a queue has a single active consumer (model.broker.dispatch)."""

    # ---- law
    consumer: Consumer | None = None
    #: a consumer of higher priority waits until the active one has settled everything (SAC-004)
    is_quiescing: bool = False
    #: the requirement by which the consumer became active, and SAC-001 once it was served
    became_by: str = law("SAC-001", view="follows_lost")

    # ---- doubt
    #: it was handed something since it became the active one
    is_shown: bool = doubt(False)
    #: the one that was quiescing last; what was ready before this stamp may have been handed to it unseen
    previous: Consumer | None = doubt(None, view="previous_active")
    previous_may_hold_before: int = doubt(0, view="previous_active")


@dataclass(frozen=True, slots=True)
class Policies:
    """What the policies of the operator make of a queue (model.broker.policies)."""

    #: what holds, by the names of arguments
    in_force: Table
    #: the requirements by which policies decide what holds, by the names of arguments
    decided_by: Table = to_blame(factory=dict)
    #: what a policy had said that has been cleared, likewise
    cleared: Table = to_blame(factory=dict)
    #: messages before this position were there when it became so
    since: int = to_blame(0)


@dataclass(slots=True, eq=False)
class Queue:
    # ---- law
    name: str
    type: QueueType = QueueType.CLASSIC
    _: KW_ONLY
    #: names of all virtual hosts are in one dictionary: a sequence gives each name once
    vhost: str = "/"
    durable: bool = False
    #: the connection that it is exclusive to
    owner: str | None = None
    auto_delete: bool = False
    arguments: Table = field(default_factory=dict)
    #: of these, those that mean nothing by what the broker has (`model.promises.features`)
    meaningless: frozenset[str] = frozenset()
    #: how its arguments are read, as the dialect was when it was made (`Dialect.least_max_priority`,
    #: `Dialect.negative_delivery_limit_is_none`)
    least_max_priority: int = 0
    negative_limit_is_none: bool = True
    #: None: no policy has ever applied to it
    policies: Policies | None = None
    #: when it was declared (of `TraceEvent.time`)
    made_at: float = apart("all explanations are of one trace", 0.0)
    deleted: bool = False
    #: what was ready when it was deleted: some of it may be under way to its consumers yet
    dropped_at_deletion: list[Message] = law(factory=list, view="dropped_at_deletion")
    #: it stands for the address of a channel's direct replies (model.rules.extensions.direct_reply)
    reply_address: bool = False
    #: ready messages, the next one to deliver first
    messages: deque[Message] = law(factory=deque, view="ready")
    #: of these, how many at the front were given back (quorum queues keep them apart, rabbit_fifo:return)
    returned: int = 0
    next_position: int = 0
    #: whose turn it is where two classes of priority take turns (model.broker.message_order)
    turn: int = 0
    #: streams: everything ever published, and when the first of it was (of `TraceEvent.time`)
    log: list[Message] = law(factory=list, view="log")
    log_began: float = 0.0
    consumers: list[Consumer] = law(factory=list, view="consumers")
    active: ActiveConsumer = law(factory=ActiveConsumer, view="active")
    #: how often it was used, with x-expires
    uses: int = law(0, view="expiry")
    #: how many of its deliveries have timed out, and how many had a deadline
    timeouts: int = law(0, view="has_timed_out")
    deadlines: int = 0
    #: the node that leads it, or has it, in a cluster; 0: not known
    node: int = 1
    #: the node that has it is down (model.rules.operator.nodes)
    is_down: bool = False
    #: the nodes that have all of it, where it is mirrored; since when one of them does not answer (of
    #: `TraceEvent.time`), and what was published, by position, until it answered again (model.broker.mirrors)
    mirrors: frozenset[int] = frozenset()
    behind_since: float | None = None
    behind: range = apart("it begins when `behind_since` does", range(0))

    # ---- doubt
    #: nobody can tell what it does: the word that the model does not know, or "" (model.broker.openness)
    open_by: str = doubt("")
    #: of the ready ones, those that are not proven to have arrived, in the order in which they set out
    unproven: dict[Message, None] = doubt(factory=dict, view="growing_group")
    #: number of the present group (`Message.transit_group`)
    transit_group: int = doubt(0, view="growing_group")
    #: the channel that published all of it; None: several did, or some of it was given back
    transit_group_via: ChannelKey | None = doubt(None, view="growing_group")
    #: what it has dropped because of a message that may not have come to it yet: until then it has them still
    dropping: list[Dropping] = doubt(factory=list)
    #: consumers that are gone but may still be counted
    still_counted: int = doubt(0)
    #: messages that expired and that another product than RabbitMQ may count until somebody asks for them
    expired_counted: int = doubt(0)
    #: ready messages by the last declare-ok that still counted a consumer which is gone: that one may yet be handed
    #: them, so the count proves nothing
    ready_while_gone_counted: int = doubt(0)
    #: messages published before this position were in the queue, or had left it, when all was at rest
    at_rest: int = doubt(0)
    #: how many messages it has handed out, or a quorum queue has lost by a purge, since all was at rest
    handed_out: int = doubt(0)
    #: with x-expires: when it was last used, at the earliest and at the latest (of `TraceEvent.time`); the number of
    #: the use that is certainly over, and of the one from which on it may have expired already
    idle_since: float = doubt(0.0, view="expiry")
    idle_by: float = doubt(0.0, view="expiry")
    settled_use: int = doubt(0, view="expiry")
    expiring_use: int = doubt(0, view="expiry")
    #: streams: offsets that are known to begin a chunk (True) or to continue one (False; model.broker.stream_log)
    chunk_starts: dict[int, bool] = apart("where states differ in it, it can be left open", factory=dict)

    #: messages settled or dropped of late (model.broker.facts): words; but a broker that is killed may not have noted
    #: that some of them were settled (model.rules.operator.faults)
    gone: tuple[Gone, ...] = apart(
        "what was published and is not there is gone, and messages that crossed come back in either order", ()
    )

    # ---- blame
    #: what changed the number of ready messages last
    reason: str = to_blame("QUEUE-001")
    #: what the first of its wrong numbers was blamed on, until one is right: those after it have the same cause
    miscounted: str = to_blame("")
    #: it was there before the broker was started again, and nobody has asked for it since
    survived: bool = to_blame(False)
    #: another node leads it than before: the requirement that says what that changes, and since when
    led_anew_by: str = to_blame("")
    led_anew_at: int = to_blame(0)
    #: its node was down, and is back
    has_come_back: bool = to_blame(False)
    #: the node of its active consumer went, and nobody was served since
    has_lost_active: bool = to_blame(False)
    #: how many deliveries waited for their acknowledgement when it was purged: a broker may have deleted these as well
    held_when_purged: int = to_blame(0)

    @property
    def in_force(self) -> Table:
        """What its arguments say, and the policy that applies to it."""
        if self.meaningless:
            return {name: value for name, value in self.arguments.items() if name not in self.meaningless}
        return self.arguments if self.policies is None else self.policies.in_force

    def decided(self, *names: str) -> tuple[str, ...]:
        """The requirements by which policies decide what these arguments would."""
        if self.policies is None:
            return ()
        return tuple(each for name in names for each in self.policies.decided_by.get(name, ()))

    def blamed(self, otherwise: str, *names: str) -> str:
        """The requirement by which it goes by these arguments: that one, unless policies decide."""
        return next(iter(self.decided(*names)), otherwise)

    @property
    def single_active_consumer(self) -> bool:
        return "x-single-active-consumer" not in self.meaningless and bool(
            self.arguments.get("x-single-active-consumer")
        )

    @property
    def present_consumers(self) -> list[Consumer]:
        """Without those that the broker has cancelled because their time was up."""
        return [consumer for consumer in self.consumers if not consumer.timed_out]


@dataclass(frozen=True, slots=True)
class Binding:
    """Whoever is bound is known by name: nothing stays bound to what is gone."""

    # ---- law
    destination: str
    routing_key: str
    #: the arguments in the order of their names, with values as text that tells their types apart
    identity: tuple[tuple[str, str], ...] = ()
    arguments: Table = derived(factory=dict)
    _: KW_ONLY
    #: the destination is an exchange, not a queue
    to_exchange: bool = False

    def leads_to(self, destination: Queue | Exchange) -> bool:
        return self.destination == destination.name and self.to_exchange is isinstance(destination, Exchange)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A value, which all copies of a state share: who changes it puts another one in its place."""

    # ---- law
    name: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = field(default_factory=dict)
    #: from here to queues and other exchanges, in no order
    bindings: tuple[Binding, ...] = law((), view="bindings")

    # ---- doubt
    #: as of a queue: nobody can tell where it sends what
    open_by: str = doubt("")

    # ---- blame
    #: its bindings were there before the broker was started again
    survived: bool = to_blame(False)
    #: those that were taken back of late, newest last: blamed if messages still go their way
    unbound: tuple[Binding, ...] = to_blame(())

    @property
    def alternate(self) -> str | None:
        """The exchange that is asked when no binding matches (PUBLISH-010). It need not exist."""
        return self.arguments.get("alternate-exchange")


def flags_of(queue: Queue) -> Table:
    """The flags that it was declared with, as arguments of queue.declare: those that are set."""
    flags = {"durable": queue.durable, "exclusive": queue.owner is not None, "auto_delete": queue.auto_delete}
    return {name: True for name, is_set in flags.items() if is_set}


def is_behind(queues: Iterable[Queue]) -> bool:
    """Does a confirm wait for a mirror of one of the queues that does not answer?"""
    return any(queue.behind_since is not None for queue in queues)
