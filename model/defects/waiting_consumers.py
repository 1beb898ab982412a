"""Whom a quorum queue takes for its active consumer though it is another one: rabbit_fifo's `waiting_consumers`.

rabbit_fifo keeps consumers that wait to become active in a list (`waiting_consumers`), all others, cancelled ones among
them, in a map by tag and channel (`consumers`). What gets into the wrong one of these shows only when its turn comes
and a message is ready: till then it is noted here. What comes of it is in
`model.defects.wrong_active_consumers`.

An active consumer is `quiescing` there while one of higher priority waits for it to settle everything. It stays so when
the waiting one is gone.
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
    """Why the queue may take the wrong consumer for the active one."""

    #: its channel ended while it was quiescing
    CLOSED = "closed"
    #: it was cancelled while it waited, and an earlier one of its tag still held messages
    CANCELLED = "cancelled"
    #: it is there, and the queue takes it for the cancelled one of its tag
    SAME_TAG = "same tag"
    #: it is there, went on as the cancelled one of its tag, and stays active while that one holds messages
    MERGED = "merged"
    #: it is there, and followed one that was quiescing and ought to have stayed active after all
    SUCCESSOR = "successor"


@dataclass(slots=True)
class Places:
    """What rabbit_fifo has about the active consumer of one queue that differs from what the law has."""

    #: consumers that are gone, and wait to become active all the same
    gone: dict[Consumer, Why] = field(default_factory=dict)
    #: who is active in place of the law's active consumer, as long as nothing has shown whether it is so
    claimant: tuple[Consumer, Why] | None = None
    #: the one of higher priority that waited is gone, and the active one has not settled everything since
    has_outstayed: bool = False
    #: what it was before the change that is being made
    was_quiescing: bool = False
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
        if not _has_single_active(queue):
            return
        if _holds_something(broker, consumer):
            arm(broker, NAME)  # another one of its tag may come
        if consumer is queue.active.consumer or not requirement.startswith("CANCEL"):
            return
        if former_consumers(broker, consumer):
            kept(broker, queue).gone[consumer] = Why.CANCELLED

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        """Its consumer goes with the next one of its tag."""
        if _has_single_active(entry.queue) and entry.consumer is not None and _holds_something(broker, entry.consumer):
            arm(broker, NAME)

    def active_consumer_changes(self, broker: Broker, queue: Queue, requirement: str) -> None:
        if queue.type is not QueueType.QUORUM or queue.deleted:
            return
        if not queue.active.is_quiescing and queue not in broker.remembered(NAME).places:
            return
        places = kept(broker, queue)
        places.was_quiescing, places.had_outstayed = queue.active.is_quiescing, places.has_outstayed
        _note_end_of_active(broker, queue, places, requirement)

    def active_consumer_elected(self, broker: Broker, queue: Queue, before: Consumer | None, requirement: str) -> None:
        if queue.type is not QueueType.QUORUM or queue.deleted:
            return
        if queue.active.is_quiescing:
            arm(broker, NAME)
        places = broker.remembered(NAME).places.pop(queue, None)
        if places is None:
            if queue.active.consumer is before:
                return
            places = Places()
        _note_outstayed(broker, queue, places, before)
        _drop_replaced(broker, queue, places)
        if queue.active.consumer is not before:
            _note_election(broker, queue, places, before, requirement)
        if before is not None and places.had_outstayed and not places.has_outstayed:
            _note_late_takeover(queue, places, before)
        if not places.is_right:
            broker.remembered(NAME).places[queue] = places

    @once_awake
    def consumer_chosen(self, broker: Broker, queue: Queue, consumer: Consumer) -> None:
        """Who is served shows who is active."""
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


def _has_single_active(queue: Queue) -> bool:
    return queue.single_active_consumer and queue.type is QueueType.QUORUM


def with_single_active(broker: Broker) -> Iterator[Queue]:
    return (queue for queue in broker.queues.values() if _has_single_active(queue))


def _holds_something(broker: Broker, consumer: Consumer) -> bool:
    """Does the consumer's channel hold a delivery that was made to it?"""
    return any(entry.consumer is consumer for entry in broker.channels[consumer.channel].unacknowledged.values())


# ------------------------------------------------------------------------------------- what the steps mean there


def _note_end_of_active(broker: Broker, queue: Queue, places: Places, requirement: str) -> None:
    """Before another consumer becomes active, by that requirement.

    rabbit_fifo:handle_down gives back what the active consumer holds. With the last of it one that is quiescing is put
    among the waiting ones (return_one, update_or_remove_con; 4.3), where nobody removes it.
    """
    active = queue.active.consumer
    if active is None or active in queue.consumers or requirement != "SAC-003":
        return
    is_quiescing = queue.active.is_quiescing or places.has_outstayed
    if is_quiescing and active.outstanding and broker.dialect.quorum_takeover_after_return:
        places.gone[active] = Why.CLOSED


def _note_outstayed(broker: Broker, queue: Queue, places: Places, before: Consumer | None) -> None:
    """rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing, until it holds nothing."""
    active = queue.active.consumer
    if active is not before:
        places.has_outstayed = False
    elif active is not None and broker.dialect.quorum_active_by_priority:
        places.has_outstayed &= active.outstanding > 0
        places.has_outstayed |= places.was_quiescing and not queue.active.is_quiescing


def _note_election(
    broker: Broker, queue: Queue, places: Places, before: Consumer | None, requirement: str
) -> None:
    """The active consumer is another one now, by that requirement: which would it be in RabbitMQ?"""
    active, claimant = queue.active.consumer, places.claimant
    if _keeps_claim(queue, places) or (claimant is not None and is_merged_with(broker, queue, *claimant)):
        return
    places.claimant = None
    waiting = max(places.gone, key=lambda gone: _rank(broker, gone), default=None)
    if waiting is not None and (active is None or _rank(broker, waiting) > _rank(broker, active)):
        places.claimant = (waiting, places.gone[waiting])
    elif before is not None and claimant is None and is_merged_with(broker, queue, before, Why.MERGED):
        places.claimant = (before, Why.MERGED)
    elif active is not None and (former := former_consumers(broker, active)):
        _mix_up(broker, places, active, former, before, requirement)


def _note_late_takeover(queue: Queue, places: Places, active: Consumer) -> None:
    """It has settled everything, though the one of higher priority that waited is gone.

    rabbit_fifo:update_or_remove_con puts it among those who wait all the same; then the first of all is next.
    """
    if queue.active.consumer is not active or active.outstanding:
        return
    following = max(queue.consumers, key=rank)
    if following is not active:
        places.claimant = (following, Why.SUCCESSOR)


def is_merged_with(broker: Broker, queue: Queue, consumer: Consumer, why: Why) -> bool:
    """Does it stay active because of what a cancelled one of its tag holds?

    rabbit_fifo:update_consumer has made one of them (merge_consumer), which stays active until it holds nothing.
    """
    if why is not Why.MERGED or consumer not in queue.consumers or consumer in memory_of(broker).mixed_up:
        return False
    return bool(former_consumers(broker, consumer))


def _rank(broker: Broker, consumer: Consumer) -> tuple[int, ...]:
    return rank(consumer) if broker.dialect.quorum_active_by_priority else (-consumer.created,)


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
    """One that is active, and was handed nothing, stays active until somebody of higher priority comes."""
    if places.claimant is None or places.claimant[0] not in places.gone:
        return False
    return queue.active.consumer is None or priority(queue.active.consumer) <= priority(places.claimant[0])


def _mix_up(
    broker: Broker,
    places: Places,
    active: Consumer,
    former: set[Consumer],
    before: Consumer | None,
    requirement: str,
) -> None:
    """rabbit_fifo:activate_next_consumer: where the queue has no active consumer, the former one of the tag stays what
    it is, cancelled, under the new one's name; where the new one takes over at once, it takes the place of the former
    one and what that holds. Where the queue has no active consumer, one that is new goes on as the former one
    (merge_consumer; `model.defects.merged_consumers`).
    """
    if requirement != "SAC-001":
        places.claimant = (active, Why.SAME_TAG)
    elif before is not None:
        memory_of(broker).mixed_up |= {active, *former}
        arm(broker, NAME)
