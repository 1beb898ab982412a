"""Whom a quorum queue takes for its active consumer though it is another one: rabbit_fifo's `waiting_consumers`.

rabbit_fifo keeps consumers that wait for the seat in a list (`waiting_consumers`), all others, cancelled ones among
them, in a map by tag and channel (`consumers`). What gets into the wrong one of these shows only when its turn comes
and a message is ready: till then it is noted here. Such a queue hands its messages to nobody, or to a client's channel
that is gone. So it owes nothing from then on (`model.defects.stalled_queues`).

An active consumer that is to leave its seat is `quiescing` there, and stays so when the one for whom it was to leave is
gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.consumer_timeouts import LONGEST
from amqpspec.model.broker.dispatch import priority, rank
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.internal_events import (
    ChannelCrash,
    ConnectionTeardown,
    DeliveryTimeout,
    Input,
    OverdueTimeout,
    Teardown,
    lane_of,
)
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects import held_tags
from amqpspec.model.defects.stalled_queues import is_stalled, stall, stalled_before
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import former_consumers
from amqpspec.model.rules.inputs import process

NAME = "waiting consumers"


class Why(Enum):
    """Why the seat may be with the wrong consumer."""

    #: its channel ended while it was to leave the seat
    CLOSED = "closed"
    #: it was cancelled while it waited, and an earlier one of its tag still held messages
    CANCELLED = "cancelled"
    #: it is there, and the queue takes it for the cancelled one of its tag
    SAME_TAG = "same tag"
    #: it is there, went on as the cancelled one of its tag, and does not leave the seat while that one holds messages
    MERGED = "merged"
    #: it is there, and followed one that was to leave the seat and ought to have stayed after all
    SUCCESSOR = "successor"


@dataclass(slots=True)
class Places:
    """What rabbit_fifo has about the seat of one queue that differs from what the law has."""

    #: consumers that are gone, and wait for the seat all the same
    gone: dict[Consumer, Why] = field(default_factory=dict)
    #: who has the seat in place of the holder, as long as nothing has shown whether it is so
    claimant: tuple[Consumer, Why] | None = None
    #: nobody waits any more for whom the holder was to leave the seat, and it has not settled everything since
    has_outstayed: bool = False
    #: what it was before the change that is being made
    was_being_left: bool = False
    had_outstayed: bool = False

    @property
    def is_right(self) -> bool:
        """Is there no difference?"""
        return not (self.gone or self.claimant or self.has_outstayed)


@dataclass(slots=True)
class WaitingMemory:
    #: of the queues of which there is something to remember
    places: dict[Queue, Places] = field(default_factory=dict)
    #: a queue has them and another one of their tag in one place, and confuses what they hold
    mixed_up: set[Consumer] = field(default_factory=set)


class WaitingConsumers(Guest):
    """Keeps consumers as rabbit_fifo does."""

    name = NAME

    def new_memory(self) -> WaitingMemory:
        return WaitingMemory()

    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        """rabbit_fifo:cancel_consumer looks into the map first: it cancels the former one of that tag once more."""
        queue = consumer.queue
        if not _is_seat(queue):
            return
        if _holds_something(broker, consumer):
            arm(broker, NAME)  # another one of its tag may come
        if consumer is queue.seat.holder or not requirement.startswith("CANCEL"):
            return
        if former_consumers(broker, consumer):
            _kept(broker, queue).gone[consumer] = Why.CANCELLED

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        """Its consumer goes with the next one of its tag."""
        if _is_seat(entry.queue) and entry.consumer is not None and _holds_something(broker, entry.consumer):
            arm(broker, NAME)

    def seat_changes(self, broker: Broker, queue: Queue, requirement: str) -> None:
        if queue.type is not QueueType.QUORUM or queue.deleted:
            return
        if not queue.seat.is_being_left and queue not in _memory(broker).places:
            return
        places = _kept(broker, queue)
        places.was_being_left, places.had_outstayed = queue.seat.is_being_left, places.has_outstayed
        _note_end_of_holder(broker, queue, places, requirement)

    def seat_given(self, broker: Broker, queue: Queue, before: Consumer | None, requirement: str) -> None:
        if queue.type is not QueueType.QUORUM or queue.deleted:
            return
        if queue.seat.is_being_left:
            arm(broker, NAME)
        places = _memory(broker).places.pop(queue, None)
        if places is None:
            if queue.seat.holder is before:
                return
            places = Places()
        _note_outstayed(broker, queue, places, before)
        _drop_replaced(broker, queue, places)
        if queue.seat.holder is not before:
            _note_election(broker, queue, places, before, requirement)
        if before is not None and places.had_outstayed and not places.has_outstayed:
            _note_late_leave(queue, places, before)
        if not places.is_right:
            _memory(broker).places[queue] = places

    def consumer_chosen(self, broker: Broker, queue: Queue, consumer: Consumer) -> None:
        """Who is served shows who has the seat."""
        places = _memory(broker).places.get(queue)
        if places is not None:
            places.claimant = None
            places.has_outstayed &= not is_stalled(broker, queue)

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        _memory(broker).places.pop(queue, None)

    def fingerprint(self, broker: Broker) -> object:
        memory = _memory(broker)
        places = [
            (
                queue.name,
                sorted((consumer.channel, consumer.tag, why.value) for consumer, why in places.gone.items()),
                None if places.claimant is None else (*_key(places.claimant[0]), places.claimant[1].value),
                places.has_outstayed,
            )
            for queue, places in memory.places.items()
            if not places.is_right
        ]
        if not (places or memory.mixed_up):
            return ()
        return repr(sorted(places, key=lambda each: each[0])), _fingerprint_of_mixed_up(broker, memory)


def _memory(broker: Broker) -> WaitingMemory:
    memory: WaitingMemory = broker.memories[NAME]
    return memory


def _fingerprint_of_mixed_up(broker: Broker, memory: WaitingMemory) -> object:
    if not memory.mixed_up:
        return ()
    present = [_key(consumer) for consumer in memory.mixed_up if consumer in consumer.queue.consumers]
    held = [
        (channel.key, tag)
        for channel in broker.channels.values()
        for tag, entry in channel.unacknowledged.items()
        if entry.consumer in memory.mixed_up
    ]
    return tuple(sorted(present)), tuple(sorted(held))


def _key(consumer: Consumer) -> tuple[tuple[str, int], str]:
    return consumer.channel, consumer.tag


def _kept(broker: Broker, queue: Queue) -> Places:
    """What is noted about the queue, to be changed."""
    return _memory(broker).places.setdefault(queue, Places())


def _places(broker: Broker, queue: Queue) -> Places:
    """What is noted about the queue, to be read."""
    return _memory(broker).places.get(queue) or Places()


def _is_seat(queue: Queue) -> bool:
    return queue.single_active_consumer and queue.type is QueueType.QUORUM


def _seats(broker: Broker) -> Iterator[Queue]:
    return (queue for queue in broker.queues.values() if _is_seat(queue))


def _holds_something(broker: Broker, consumer: Consumer) -> bool:
    """Does the consumer's channel hold a delivery that was made to it?"""
    return any(entry.consumer is consumer for entry in broker.channels[consumer.channel].unacknowledged.values())


# ------------------------------------------------------------------------------------- what the steps mean there


def _note_end_of_holder(broker: Broker, queue: Queue, places: Places, requirement: str) -> None:
    """Before the seat is given to somebody else, by that requirement.

    rabbit_fifo:handle_down gives back what the active consumer holds. With the last of it one that is quiescing is put
    among the waiting ones (return_one, update_or_remove_con; 4.3), where nobody removes it.
    """
    holder = queue.seat.holder
    if holder is None or holder in queue.consumers or requirement != "SAC-003":
        return
    is_quiescing = queue.seat.is_being_left or places.has_outstayed
    if is_quiescing and holder.outstanding and broker.dialect.quorum_return_frees_seat:
        places.gone[holder] = Why.CLOSED


def _note_outstayed(broker: Broker, queue: Queue, places: Places, before: Consumer | None) -> None:
    """rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing, until it holds nothing."""
    holder = queue.seat.holder
    if holder is not before:
        places.has_outstayed = False
    elif holder is not None and broker.dialect.quorum_seat_by_priority:
        places.has_outstayed &= holder.outstanding > 0
        places.has_outstayed |= places.was_being_left and not queue.seat.is_being_left


def _note_election(
    broker: Broker, queue: Queue, places: Places, before: Consumer | None, requirement: str
) -> None:
    """The seat is the holder's now, by that requirement: whose would it be in RabbitMQ?"""
    holder, claimant = queue.seat.holder, places.claimant
    if _keeps_claim(queue, places) or (claimant is not None and _is_merged_with(broker, queue, *claimant)):
        return
    places.claimant = None
    waiting = max(places.gone, key=lambda gone: _rank(broker, gone), default=None)
    if waiting is not None and (holder is None or _rank(broker, waiting) > _rank(broker, holder)):
        places.claimant = (waiting, places.gone[waiting])
    elif before is not None and claimant is None and _is_merged_with(broker, queue, before, Why.MERGED):
        places.claimant = (before, Why.MERGED)
    elif holder is not None and (former := former_consumers(broker, holder)):
        _mix_up(broker, places, holder, former, before, requirement)


def _note_late_leave(queue: Queue, places: Places, holder: Consumer) -> None:
    """It has settled everything, though nobody waits any more for whom it was to leave the seat.

    rabbit_fifo:update_or_remove_con puts it among those who wait all the same; then the first of all is next.
    """
    if queue.seat.holder is not holder or holder.outstanding:
        return
    following = max(queue.consumers, key=rank)
    if following is not holder:
        places.claimant = (following, Why.SUCCESSOR)


def _is_merged_with(broker: Broker, queue: Queue, consumer: Consumer, why: Why) -> bool:
    """Does it keep the seat because of what a cancelled one of its tag holds?

    rabbit_fifo:update_consumer has made one of them (merge_consumer), which leaves the seat when it holds nothing.
    """
    if why is not Why.MERGED or consumer not in queue.consumers or consumer in _memory(broker).mixed_up:
        return False
    return bool(former_consumers(broker, consumer))


def _rank(broker: Broker, consumer: Consumer) -> tuple[int, ...]:
    return rank(consumer) if broker.dialect.quorum_seat_by_priority else (-consumer.created,)


def _drop_replaced(broker: Broker, queue: Queue, places: Places) -> None:
    """A cancelled one goes after all with its channel, and when its tag is used again."""
    if not places.gone:
        return
    present = {_key(consumer) for consumer in queue.consumers}
    for gone, why in list(places.gone.items()):
        channel = broker.channels.get(gone.channel)
        has_ended = channel is None or channel.state is not ChannelState.OPEN
        if why is Why.CANCELLED and (has_ended or _key(gone) in present):
            del places.gone[gone]


def _keeps_claim(queue: Queue, places: Places) -> bool:
    """One that has the seat, and was handed nothing, keeps it until somebody of higher priority comes."""
    if places.claimant is None or places.claimant[0] not in places.gone:
        return False
    return queue.seat.holder is None or priority(queue.seat.holder) <= priority(places.claimant[0])


def _mix_up(
    broker: Broker,
    places: Places,
    holder: Consumer,
    former: set[Consumer],
    before: Consumer | None,
    requirement: str,
) -> None:
    """rabbit_fifo:activate_next_consumer: on an empty seat the former consumer stays what it is, cancelled, under the
    new one's name; where the new one takes it over at once, it takes the place of the former one and what that holds.
    A new consumer on an empty seat goes on as the former one (merge_consumer; `model.defects.merged_consumers`).
    """
    if requirement != "SAC-001":
        places.claimant = (holder, Why.SAME_TAG)
    elif before is not None:
        _memory(broker).mixed_up |= {holder, *former}


# ------------------------------------------------------------------------------------------------------ inputs

_ENDS_OF_CHANNELS = ("channel.close", "connection.close", "socket.abort")
_ENDS = ("basic.cancel", *_ENDS_OF_CHANNELS)
_RETURNS = ("basic.nack", "basic.reject", "basic.recover", "basic.recover-async")
#: In error they end their channel, or all channels of the connection.
OFTEN_WRONG = ("basic.ack", "basic.get", "basic.consume", "basic.qos", "queue.declare", "queue.delete", "queue.purge")
_ANY = (*_ENDS, *_RETURNS, *OFTEN_WRONG, "basic.publish", "basic.cancel-ok")
_TEARDOWNS = (ChannelCrash, ConnectionTeardown)


# ---------------------------------------------------------------------------- a seat that is left for somebody


def _left_on(broker: Broker, method: Method) -> list[Queue]:
    """Queues whose active consumer is to leave its seat, and has deliveries on the frame's channel."""
    channel = broker.channels.get((method.connection, method.channel))
    held = list(channel.unacknowledged.values()) if channel is not None else []
    return [
        queue
        for queue in _seats(broker)
        if queue.seat.is_being_left and any(entry.consumer is queue.seat.holder for entry in held)
    ]


def _leave_without_successor(broker: Broker, method: Method) -> None:
    left = _left_on(broker, method)
    process(broker, method)
    stall(broker, [queue for queue in left if not queue.seat.is_being_left])


def _may_outstay(broker: Broker, event: Method | Teardown) -> bool:
    return any(
        (queue.seat.is_being_left and any(each.channel[0] == event.connection for each in queue.consumers))
        or _places(broker, queue).has_outstayed
        or _successor(broker, queue) is not None
        for queue in _seats(broker)
    )


def _outstayed(broker: Broker) -> list[Queue]:
    return [queue for queue in _seats(broker) if _places(broker, queue).has_outstayed]


def _successor(broker: Broker, queue: Queue) -> Consumer | None:
    claim = _places(broker, queue).claimant
    return claim[0] if claim is not None and claim[1] is Why.SUCCESSOR else None


def _go_on_leaving(broker: Broker, event: Method | Teardown) -> None:
    """4.0: nobody follows when it gives back the last of what it holds (rabbit_fifo:return)."""
    outstayed = _outstayed(broker)
    holders = [queue.seat.holder for queue in outstayed]
    _follow(broker)
    process(broker, event)
    _follow(broker)
    stall(broker, _outstayed(broker))
    if isinstance(event, Method) and event.name in _RETURNS and not broker.dialect.quorum_return_frees_seat:
        seated = zip(outstayed, holders, strict=True)
        stall(broker, [queue for queue, holder in seated if holder in queue.consumers])


def _follow(broker: Broker) -> None:
    """Who has followed one that ought to have stayed has the seat."""
    for queue in _seats(broker):
        successor = _successor(broker, queue)
        if successor is not None:
            queue.seat.holder, _kept(broker, queue).claimant = successor, None
            queue.seat.reason = "SAC-004"
            broker.refresh(queue)


# ----------------------------------------------------------------------------------- a seat that is another one's


def _claimed(broker: Broker, why: Why) -> list[Queue]:
    """Queues whose seat is that one's, by a defect of this kind."""
    awake = (queue for queue in _seats(broker) if not is_stalled(broker, queue))
    claims = ((queue, _places(broker, queue).claimant) for queue in awake)
    return [
        queue
        for queue, claim in claims
        if claim is not None and claim[1] is why
        if why is not Why.MERGED or _is_merged_with(broker, queue, *claim)
    ]


def _may_claim(why: Why) -> Callable[[Broker, Input], bool]:
    def applies(broker: Broker, event: Input) -> bool:
        return any(_is_possible(broker, event, queue, why) for queue in _seats(broker))

    return applies


def _is_possible(broker: Broker, event: Input, queue: Queue, why: Why) -> bool:
    """May the queue's seat be claimed behind the next input?"""
    seat, places = queue.seat, _places(broker, queue)
    if why in places.gone.values() or (places.claimant is not None and places.claimant[1] is why):
        return True
    if why is Why.CLOSED:
        is_leaving = seat.is_being_left or places.has_outstayed
        return is_leaving and seat.holder is not None and seat.holder.channel[0] == lane_of(event)[0]
    if why is Why.MERGED:
        return seat.holder is not None and bool(former_consumers(broker, seat.holder))
    waiting = (consumer for consumer in queue.consumers if consumer is not seat.holder)
    return why is Why.SAME_TAG and any(former_consumers(broker, consumer) for consumer in waiting)


def _serve_nobody(why: Why) -> Callable[[Broker, Input], None]:
    def process_(broker: Broker, event: Input) -> None:
        earlier = _claimed(broker, why)
        process(broker, event)
        claimed = _claimed(broker, why)
        stall(broker, claimed)
        if why is Why.CLOSED:
            _hand_to_nobody(broker)
        for queue in claimed:
            if why is not Why.CLOSED and queue in earlier:
                stalled_before(broker, queue)  # by now somebody else may have been chosen

    return process_


def _hand_to_nobody(broker: Broker) -> None:
    """A consumer timeout may bring back what such a queue has handed to one that is gone, which has timed out then."""
    for queue in _seats(broker):
        gone = [each for each, why in _places(broker, queue).gone.items() if why is Why.CLOSED]
        if is_stalled(broker, queue) and any(each.timeout <= LONGEST and not each.no_ack for each in gone):
            for message in queue.messages:
                message.recalled = max(message.recalled, 1)


# ------------------------------------------------------------------------------------- two consumers in one place


def _is_any_mixed_up(broker: Broker) -> bool:
    """Is there one that a queue confuses, and that has something outstanding or is still there?"""
    mixed_up = _memory(broker).mixed_up
    if not mixed_up:
        return False
    if any(not mixed_up.isdisjoint(queue.consumers) for queue in _seats(broker)):
        return True
    held = (entry for channel in broker.channels.values() for entry in channel.unacknowledged.values())
    return any(entry.consumer in mixed_up for entry in held)


def _may_mix_up(broker: Broker, event: Method | Teardown) -> bool:
    if _memory(broker).mixed_up and _is_any_mixed_up(broker):
        return True
    if isinstance(event, Teardown) or event.name != "basic.consume":
        return False
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None:
        return False
    tag = event.arguments.get("consumer_tag", "")
    return any(
        entry.consumer is not None and entry.consumer.tag == tag and entry.queue.type is QueueType.QUORUM
        for entry in channel.unacknowledged.values()
    )


def _confuse(broker: Broker, event: Method | Teardown) -> None:
    """Which of the messages that go by one number is settled, and which are lost, nobody can tell."""
    before = _is_any_mixed_up(broker)
    if isinstance(event, Teardown) or event.name in _ENDS_OF_CHANNELS:
        _lose_forgotten(broker, event)
    process(broker, event)
    broker.bookkeeping.is_unpredictable |= before or _is_any_mixed_up(broker)


def _lose_forgotten(broker: Broker, event: Method | Teardown) -> None:
    """The channels that end give back nothing of what consumers held whose place is taken."""
    mixed_up = _memory(broker).mixed_up
    for channel in broker.channels.values():
        if channel.connection != event.connection or event.channel not in (0, channel.number):
            continue
        for tag, entry in list(channel.unacknowledged.items()):
            if entry.consumer in mixed_up and entry.consumer not in entry.queue.consumers:
                del channel.unacknowledged[tag]
                broker.drop(entry.queue, entry.message, "CANCEL-016")


WAITING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="returned-seat-stays-empty",
        requirement="SAC-004",
        strength=Strength.PROMISED,
        statement="When the active consumer gives back the last of what it holds, it leaves its seat to one of higher"
        " priority, and that one does not take it.",
        source="rabbit_fifo:return does not call activate_next_consumer",
        dialects=("rabbitmq-4.0",),
        methods=_RETURNS,
        guest=NAME,
        applies=lambda broker, method: bool(_left_on(broker, method)),
        process=_leave_without_successor,
    ),
    DefectTransition(
        name="left-seat-starves",
        requirement="SAC-004",
        strength=Strength.PROMISED,
        statement="When the consumer of higher priority ends before it took the seat, the active one is handed nothing"
        " until it has settled everything; then another one of its priority may have the seat.",
        source="rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=(*_ENDS, *_RETURNS, *OFTEN_WRONG, "basic.publish"),
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_outstay,
        process=_go_on_leaving,
    ),
    DefectTransition(
        name="closed-seat-keeps-messages",
        requirement="CHAN-016",
        strength=Strength.PROMISED,
        statement="When the channel of an active consumer ends that was to leave its seat, and held messages, the queue"
        " goes on to take it for one that waits. When its turn comes it has the seat, and the messages; nobody is"
        " served.",
        source="v4.3.5 rabbit_fifo:return_one, update_or_remove_con: with the last message one that is quiescing is"
        " put among the waiting ones, and handle_down does not take it from there",
        dialects=("rabbitmq-4.3",),
        methods=_ANY,
        internal_events=(*_TEARDOWNS, DeliveryTimeout, OverdueTimeout),
        guest=NAME,
        applies=_may_claim(Why.CLOSED),
        process=_serve_nobody(Why.CLOSED),
        shows_within=ANY_NUMBER,  # what it keeps may come back, which is counted
    ),
    DefectTransition(
        name="consumer-of-same-tag-waits-on",
        requirement="SAC-002",
        strength=Strength.PROMISED,
        statement="A waiting consumer that is cancelled, and whose channel holds deliveries of an earlier one with its"
        " tag, goes on to wait. When its turn comes it has the seat, and nobody is served.",
        source="rabbit_fifo:cancel_consumer cancels the earlier one again, which is still among the queue's consumers",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_claim(Why.CANCELLED),
        process=_serve_nobody(Why.CANCELLED),
    ),
    DefectTransition(
        name="consumer-of-same-tag-never-active",
        requirement="SAC-002",
        strength=Strength.PROMISED,
        statement="A waiting consumer whose channel holds deliveries of a cancelled one with its tag takes the seat and"
        " is handed nothing, and nobody else is.",
        source="rabbit_fifo:activate_next_consumer keeps the status of the existing consumer, which is cancelled",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_claim(Why.SAME_TAG),
        process=_serve_nobody(Why.SAME_TAG),
    ),
    DefectTransition(
        name="heir-keeps-seat",
        requirement="SAC-004",
        strength=Strength.PROMISED,
        statement="An active consumer whose channel holds deliveries of a cancelled one with its tag does not leave its"
        " seat to one of higher priority until these are settled; meanwhile nobody is served.",
        source="rabbit_fifo:merge_consumer keeps what the cancelled one holds, and activate_next_consumer waits for it",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_claim(Why.MERGED),
        process=_serve_nobody(Why.MERGED),
    ),
    DefectTransition(
        name="takeover-forgets-deliveries",
        requirement="CANCEL-016",
        strength=Strength.PROMISED,
        statement="When a consumer takes the seat over at once from one of lower priority, the queue forgets what a"
        " cancelled one with its tag still held: it is lost. To settle that settles what the new one holds.",
        source="rabbit_fifo:activate_next_consumer puts the new consumer in the place of the one with its key",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=held_tags.NAME,
        applies=_may_mix_up,
        process=_confuse,
    ),
)
