"""The numbers by which queues know the deliveries that they wait for, and what one means to a queue of the same name.

A channel tells a queue's process what is settled by the numbers that messages have there, and finds the queue by its
name (rabbit_queue_type:settle). A queue that was declared anew under the name of a deleted one counts anew.

Classic queues number what they take in (rabbit_variable_queue, `next_seq_id`), and hand a message on without a number
when a consumer waits that does not acknowledge (rabbit_amqqueue_process:attempt_delivery). Those with priorities do so
for each priority (rabbit_priority_queue). Quorum queues count what each consumer was handed, each basic.get being a
consumer of its own (rabbit_fifo). To a stream they are offsets (rabbit_stream_queue).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey

NAME = "delivery numbers"

#: So many numbers may be kept that mean nothing any more.
_SPARE = 64


@dataclass(frozen=True, slots=True)
class SettledForQueue:
    """A delivery that a queue holds for settled, as a number from a deleted queue of its name has settled it there,
    while for the channel it is outstanding.
    """

    number: int
    #: the tag of its consumer, by which the channel tells the queue of it; "" for what basic.get got
    told_as: str
    #: the queue counts it for the channel as before
    is_still_counted: bool = False
    #: the classic queue that took it back, and does so once more when the channel ends
    given_back_at: Queue | None = None


@dataclass(slots=True)
class ClassicNumbers:
    """Those of one classic queue."""

    #: how many messages it has given numbers to, by priority
    given: dict[int, int] = field(default_factory=dict)
    #: the numbers of messages, by their positions
    numbers: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class NumbersMemory:
    classic: dict[Queue, ClassicNumbers] = field(default_factory=dict)
    #: how many deliveries consumers of other queues have been handed
    handed: dict[Consumer, int] = field(default_factory=dict)
    #: the numbers of deliveries that are out, by channel and tag
    deliveries: dict[ChannelKey, dict[int, int]] = field(default_factory=dict)
    #: of these, the ones that their queues do not wait for any more
    settled: dict[tuple[ChannelKey, int], SettledForQueue] = field(default_factory=dict)
    #: deliveries, by channel and number, that a channel has settled and that the queue still counts for it
    still_counted: dict[Queue, frozenset[tuple[ChannelKey, int]]] = field(default_factory=dict)
    #: a queue or a consumer is gone since all was at rest
    is_outdated: bool = False


class DeliveryNumbers(Guest):
    """Numbers messages and deliveries as the queues do. Armed when something from a deleted queue is out."""

    name = NAME

    def new_memory(self) -> NumbersMemory:
        return NumbersMemory()

    def message_enqueued(self, broker: Broker, queue: Queue, message: Message) -> None:
        """rabbit_variable_queue:publish, `next_seq_id`."""
        if queue.type is QueueType.CLASSIC:
            known = broker.remembered(NAME).classic.setdefault(queue, ClassicNumbers())
            kind = _kind(queue, message)
            number = known.given.get(kind, 0)
            known.numbers[message.position] = number
            known.given[kind] = number + 1
            if len(known.numbers) > 2 * len(queue.messages) + _SPARE:
                known.numbers = _numbers_in_use(broker, queue, known.numbers)

    @once_awake
    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        broker.remembered(NAME).is_outdated = True

    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        memory: NumbersMemory = broker.remembered(NAME)
        known = memory.classic.get(queue)
        if entry is None:
            if known is None:
                return
            known.numbers.pop(message.position, None)
            if consumer is not None and message.stamp == broker.stamp:
                # at once, so that the queue has not taken it in (rabbit_amqqueue_process:attempt_delivery)
                known.given[_kind(queue, message)] -= 1
            return
        if queue.deleted:
            arm(broker, NAME)
        channel = _holder(broker, consumer, entry)
        if channel.state is ChannelState.OPEN:
            of_consumer = memory.handed.get(consumer, 0) if consumer is not None else 0
            number = of_consumer if known is None else known.numbers.get(message.position, 0)
            memory.deliveries.setdefault(channel.key, {})[channel.next_tag - 1] = number
        if consumer is not None and known is None:
            memory.handed[consumer] = memory.handed.get(consumer, 0) + 1

    @once_awake
    def deliveries_settled(
        self, broker: Broker, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], requirement: str
    ) -> None:
        memory: NumbersMemory = broker.remembered(NAME)
        numbers = memory.deliveries.get(channel.key)
        for tag, entry in settled:
            if numbers is not None:
                numbers.pop(tag, None)
            if memory.settled:
                memory.settled.pop((channel.key, tag), None)
            if entry.queue.deleted:
                _doubt_consumers(broker, entry.queue.name)
            if entry.consumer is not None and entry.consumer.queue is not entry.queue:
                broker.refresh(entry.consumer.queue)  # it has room again at the queue that had the delivery settled

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        memory: NumbersMemory = broker.remembered(NAME)
        memory.still_counted.pop(queue, None)
        memory.is_outdated = True
        is_read = queue.type is QueueType.STREAM and bool(queue.consumers)
        held = (entry for channel in broker.channels.values() for entry in channel.unacknowledged.values())
        if is_read or any(entry.queue is queue for entry in held):
            arm(broker, NAME)

    @once_awake
    def channel_ended(self, broker: Broker, channel: Channel) -> None:
        memory: NumbersMemory = broker.remembered(NAME)
        memory.deliveries.pop(channel.key, None)
        if memory.settled or memory.still_counted:
            broker.bookkeeping.is_unpredictable |= _takes_back_from_others(broker, memory, channel)
            memory.settled = {key: each for key, each in memory.settled.items() if key[0] != channel.key}

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        """What means nothing any more is forgotten."""
        memory: NumbersMemory = broker.remembered(NAME)
        if memory.is_outdated:
            memory.is_outdated = False
            memory.classic = {queue: known for queue, known in memory.classic.items() if not queue.deleted}
            memory.handed = {each: many for each, many in memory.handed.items() if not _is_gone(broker, each)}

    def fingerprint(self, broker: Broker) -> object:
        counted = broker.remembered(NAME).still_counted.items()
        return tuple(sorted((queue.name, tuple(sorted(those))) for queue, those in counted))


def _numbers_in_use(broker: Broker, queue: Queue, numbers: dict[int, int]) -> dict[int, int]:
    """Without those of messages that nobody has any more."""
    held = [entry for each in broker.channels.values() for entry in each.unacknowledged.values()]
    kept = {entry.message.position for entry in held if entry.queue is queue}
    kept |= {message.position for message in queue.messages}
    return {place: number for place, number in numbers.items() if place in kept}


def _is_gone(broker: Broker, consumer: Consumer) -> bool:
    return broker.channels[consumer.channel].consumers.get(consumer.tag) is not consumer


def _memory(broker: Broker) -> NumbersMemory:
    memory: NumbersMemory = broker.remembered(NAME)
    return memory


def _holder(broker: Broker, consumer: Consumer | None, entry: Unacknowledged) -> Channel:
    """The channel that has just been handed the delivery."""
    if consumer is not None:
        return broker.channels[consumer.channel]
    return next(each for each in broker.channels.values() if each.unacknowledged.get(each.next_tag - 1) is entry)


def _kind(queue: Queue, message: Message) -> int:
    return message.priority if has_priorities(queue) else 0


def has_priorities(queue: Queue) -> bool:
    """Are its numbers pairs: of the priority, and of the number in the queue of that priority?"""
    return queue.type is QueueType.CLASSIC and "x-max-priority" in queue.arguments


def number_of(broker: Broker, channel: Channel, tag: int, entry: Unacknowledged | None = None) -> int:
    """The number of a delivery that is out: that of the tag on the channel."""
    numbers = _memory(broker).deliveries.get(channel.key, {})
    if tag not in numbers and entry is not None and entry.queue.type is QueueType.STREAM:
        return entry.message.position  # its offset
    return numbers.get(tag, 0)


def settled_for_queue(broker: Broker, channel: Channel, tag: int) -> SettledForQueue | None:
    """What there is to know of a delivery that its queue does not wait for any more; None: it does."""
    return _memory(broker).settled.get((channel.key, tag))


def note_settled_for_queue(broker: Broker, channel: Channel, tag: int, what: SettledForQueue) -> None:
    _memory(broker).settled[channel.key, tag] = what


def note_still_counted(broker: Broker, channel: Channel, queue: Queue, number: int) -> None:
    """The channel has settled the delivery, and the queue goes on counting it for the channel."""
    counted = _memory(broker).still_counted
    counted[queue] = counted.get(queue, frozenset()) | {(channel.key, number)}


def told_as(broker: Broker, channel: Channel, tag: int) -> str:
    """The consumer tag by which the channel tells the queue of its settlement; "" for what basic.get got."""
    entry = channel.unacknowledged[tag]
    if entry.consumer is not None:
        return entry.consumer.tag
    former = settled_for_queue(broker, channel, tag)
    return former.told_as if former is not None else ""


def _doubt_consumers(broker: Broker, name: str) -> None:
    """A delivery of a deleted queue of that name was settled: a new one may lose consumers by that, so they have to be
    counted (ACK-024).
    """
    living = broker.queues.get(name)
    if living is not None and living.type is QueueType.CLASSIC and living.consumers:
        living.still_counted += 1


def _takes_back_from_others(broker: Broker, memory: NumbersMemory, channel: Channel) -> bool:
    """Does a classic queue take back what somebody else was handed since, as it has the number of a delivery that it
    still counts for this channel?
    """
    again = {
        (id(each.given_back_at), each.number)
        for (key, _), each in memory.settled.items()
        if key == channel.key and each.given_back_at is not None
    }
    for queue, counted in memory.still_counted.items():
        again |= {(id(queue), number) for key, number in counted if key == channel.key}
    return bool(again) and any(
        (id(entry.queue), number_of(broker, other, tag, entry)) in again
        for other in broker.channels.values()
        if other is not channel
        for tag, entry in other.unacknowledged.items()
    )
