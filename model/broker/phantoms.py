"""Whom a quorum queue of RabbitMQ takes for its active consumer, where known defects make that the wrong one.

rabbit_fifo keeps consumers that wait for the seat in a list (`waiting_consumers`), all others, cancelled ones among
them, in a map by tag and channel (`consumers`). What gets into the wrong one of these shows only when its turn comes
and a message is ready. So it is noted beside the lawful state, and does nothing there: `model.defects.phantoms`.
"""

from __future__ import annotations

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.dispatch import priority, rank
from amqpspec.model.broker.queues import Consumer, Phantom, Queue
from amqpspec.model.broker.state import ChannelState
from amqpspec.model.promises.queue_types import QueueType


def namesakes(broker: BrokerState, consumer: Consumer) -> set[Consumer]:
    """Cancelled consumers of the same queue and tag of which the channel still holds deliveries."""
    held = broker.channels[consumer.channel].unacknowledged.values()
    return {
        entry.consumer
        for entry in held
        if entry.consumer is not None
        and entry.consumer is not consumer
        and entry.queue is consumer.queue
        and entry.consumer.tag == consumer.tag
    }


def note_removal(broker: BrokerState, consumer: Consumer, requirement: str) -> None:
    """The consumer is about to go, by that requirement.

    rabbit_fifo:cancel_consumer looks into the map first: it cancels the former consumer of that tag once more.
    """
    seat = consumer.queue.seat
    if consumer.queue.type is QueueType.QUORUM and requirement.startswith("CANCEL"):
        consumer.queue.former_priorities[(consumer.channel, consumer.tag)] = priority(consumer)
    if not is_seat(consumer.queue) or consumer is seat.holder or not requirement.startswith("CANCEL"):
        return
    if namesakes(broker, consumer):
        seat.phantoms[consumer] = Phantom.CANCELLED


def note_arrival(broker: BrokerState, consumer: Consumer) -> None:
    """The consumer is new.

    rabbit_fifo:maybe_queue_consumer (3.10: uniq_queue_in) puts it among those to be served if its key is not there,
    where the key of a cancelled one stays until it comes to the front. From 4.0 on the key is that of its tag only as
    long as the former one holds something.
    """
    queue = consumer.queue
    if queue.type is QueueType.QUORUM:
        held = broker.channels[consumer.channel].unacknowledged.values()
        former_ones = namesakes(broker, consumer)
        consumer.bequeathed = sum(entry.consumer in former_ones for entry in held)
        consumer.known_since = min((former.key for former in former_ones), default=None)
    former = queue.former_priorities.pop((consumer.channel, consumer.tag), None)
    if former in (None, priority(consumer)) or queue.single_active_consumer:
        return
    if namesakes(broker, consumer) or not broker.dialect.lost_consumers_by_creation:
        consumer.former_priority = former


def note_end_of_holder(broker: BrokerState, queue: Queue, requirement: str) -> None:
    """Before the seat is given to somebody else, by that requirement.

    rabbit_fifo:handle_down gives back what the active consumer holds. With the last of it one that is quiescing is put
    among the waiting ones (return_one, update_or_remove_con; 4.3), where nobody removes it.
    """
    seat = queue.seat
    holder = seat.holder
    if holder is None or holder in queue.consumers or requirement != "SAC-003" or not is_seat(queue):
        return
    is_quiescing = seat.is_being_left or seat.has_outstayed
    if is_quiescing and holder.outstanding and broker.dialect.quorum_return_frees_seat:
        seat.phantoms[holder] = Phantom.CLOSED


def note_election(broker: BrokerState, queue: Queue, before: Consumer | None, requirement: str) -> None:
    """The seat is the holder's now, by that requirement: whose would it be in RabbitMQ?"""
    if not is_seat(queue):
        return
    seat = queue.seat
    _drop_replaced(broker, queue)
    if seat.holder is before:
        return
    if _keeps_claim(queue) or (seat.claimant is not None and is_heir_with(broker, queue, *seat.claimant)):
        return
    was_claimed, seat.claimant = seat.claimant is not None, None
    waiting = max(seat.phantoms, key=lambda phantom: _rank(broker, phantom), default=None)
    if waiting is not None and (seat.holder is None or _rank(broker, waiting) > _rank(broker, seat.holder)):
        seat.claimant = (waiting, seat.phantoms[waiting])
    elif before is not None and not was_claimed and is_heir_with(broker, queue, before, Phantom.HEIR):
        seat.claimant = (before, Phantom.HEIR)
    elif seat.holder is not None and (former := namesakes(broker, seat.holder)):
        _confuse(queue, seat.holder, former, before, requirement)


def note_late_leave(queue: Queue, holder: Consumer) -> None:
    """It has settled everything, though nobody waits any more for whom it was to leave the seat.

    rabbit_fifo:update_or_remove_con puts it among those who wait all the same; then the first of all is next.
    """
    if queue.seat.holder is not holder or holder.outstanding:
        return
    following = max(queue.consumers, key=rank)
    if following is not holder:
        queue.seat.claimant = (following, Phantom.SUCCESSOR)


def is_heir_with(broker: BrokerState, queue: Queue, consumer: Consumer, why: Phantom) -> bool:
    """Does it keep the seat because of what a cancelled one of its tag holds?

    rabbit_fifo:update_consumer has made one of them (merge_consumer), which leaves the seat when it holds nothing.
    """
    if why is not Phantom.HEIR or consumer not in queue.consumers or consumer.is_mixed_up:
        return False
    return bool(namesakes(broker, consumer))


def is_seat(queue: Queue) -> bool:
    return queue.single_active_consumer and queue.type is QueueType.QUORUM


def _rank(broker: BrokerState, consumer: Consumer) -> tuple[int, ...]:
    return rank(consumer) if broker.dialect.quorum_seat_by_priority else (-consumer.created,)


def _drop_replaced(broker: BrokerState, queue: Queue) -> None:
    """A cancelled one goes after all with its channel, and when its tag is used again."""
    present = {(consumer.channel, consumer.tag) for consumer in queue.consumers}
    for phantom, why in list(queue.seat.phantoms.items()):
        channel = broker.channels.get(phantom.channel)
        is_gone = channel is None or channel.state is not ChannelState.OPEN
        if why is Phantom.CANCELLED and (is_gone or (phantom.channel, phantom.tag) in present):
            del queue.seat.phantoms[phantom]


def _keeps_claim(queue: Queue) -> bool:
    """One that has the seat, and was handed nothing, keeps it until somebody of higher priority comes."""
    seat = queue.seat
    if seat.claimant is None or seat.claimant[0] not in seat.phantoms:
        return False
    return seat.holder is None or priority(seat.holder) <= priority(seat.claimant[0])


def _confuse(queue: Queue, holder: Consumer, former: set[Consumer], before: Consumer | None, requirement: str) -> None:
    """rabbit_fifo:activate_next_consumer: on an empty seat the former consumer stays what it is, cancelled, under the
    new one's name; where the new one takes it over at once, it takes the place of the former one and what that holds.
    A new consumer on an empty seat goes on as the former one (merge_consumer; `model.defects.tags`).
    """
    if requirement != "SAC-001":
        queue.seat.claimant = (holder, Phantom.NAMESAKE)
    elif before is not None:
        for consumer in (holder, *former):
            consumer.is_mixed_up = True
