"""Whom a quorum queue takes for its active consumer though it is another one: rabbit_fifo's `waiting_consumers`.

rabbit_fifo keeps consumers that wait for the seat in a list (`waiting_consumers`), all others, cancelled ones among
them, in a map by tag and channel (`consumers`). What gets into the wrong one of these shows only when its turn comes
and a message is ready: till then it is noted here. What comes of it is in
`model.defects.wrong_seats`.

An active consumer that is to leave its seat is `quiescing` there, and stays so when the one for whom it was to leave is
gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.dispatch import priority, rank
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects.stalled_queues import is_stalled
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.rules.basic.requeue import former_consumers

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
            kept(broker, queue).gone[consumer] = Why.CANCELLED

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        """Its consumer goes with the next one of its tag."""
        if _is_seat(entry.queue) and entry.consumer is not None and _holds_something(broker, entry.consumer):
            arm(broker, NAME)

    def seat_changes(self, broker: Broker, queue: Queue, requirement: str) -> None:
        if queue.type is not QueueType.QUORUM or queue.deleted:
            return
        if not queue.seat.is_being_left and queue not in broker.remembered(NAME).places:
            return
        places = kept(broker, queue)
        places.was_being_left, places.had_outstayed = queue.seat.is_being_left, places.has_outstayed
        _note_end_of_holder(broker, queue, places, requirement)

    def seat_given(self, broker: Broker, queue: Queue, before: Consumer | None, requirement: str) -> None:
        if queue.type is not QueueType.QUORUM or queue.deleted:
            return
        if queue.seat.is_being_left:
            arm(broker, NAME)
        places = broker.remembered(NAME).places.pop(queue, None)
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
            broker.remembered(NAME).places[queue] = places

    @once_awake
    def consumer_chosen(self, broker: Broker, queue: Queue, consumer: Consumer) -> None:
        """Who is served shows who has the seat."""
        places = broker.remembered(NAME).places.get(queue)
        if places is not None:
            places.claimant = None
            places.has_outstayed &= not is_stalled(broker, queue)

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        broker.remembered(NAME).places.pop(queue, None)

    def fingerprint(self, broker: Broker) -> object:
        memory: WaitingMemory = broker.remembered(NAME)
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


def memory_of(broker: Broker) -> WaitingMemory:
    memory: WaitingMemory = broker.remembered(NAME)
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


def kept(broker: Broker, queue: Queue) -> Places:
    """What is noted about the queue, to be changed."""
    return memory_of(broker).places.setdefault(queue, Places())


def places_of(broker: Broker, queue: Queue) -> Places:
    """What is noted about the queue, to be read."""
    return memory_of(broker).places.get(queue) or Places()


def _is_seat(queue: Queue) -> bool:
    return queue.single_active_consumer and queue.type is QueueType.QUORUM


def seats(broker: Broker) -> Iterator[Queue]:
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
    if _keeps_claim(queue, places) or (claimant is not None and is_merged_with(broker, queue, *claimant)):
        return
    places.claimant = None
    waiting = max(places.gone, key=lambda gone: _rank(broker, gone), default=None)
    if waiting is not None and (holder is None or _rank(broker, waiting) > _rank(broker, holder)):
        places.claimant = (waiting, places.gone[waiting])
    elif before is not None and claimant is None and is_merged_with(broker, queue, before, Why.MERGED):
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


def is_merged_with(broker: Broker, queue: Queue, consumer: Consumer, why: Why) -> bool:
    """Does it keep the seat because of what a cancelled one of its tag holds?

    rabbit_fifo:update_consumer has made one of them (merge_consumer), which leaves the seat when it holds nothing.
    """
    if why is not Why.MERGED or consumer not in queue.consumers or consumer in memory_of(broker).mixed_up:
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
        memory_of(broker).mixed_up |= {holder, *former}
        arm(broker, NAME)
