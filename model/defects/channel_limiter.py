"""RabbitMQ's limiter, a process beside the channel that counts in its own way (rabbit_limiter; up to 4.2).

It counts what is delivered and what is settled, and not always what the channel holds: the limits of the channel and of
its consumers share it, what basic.get has got is counted in and never out, and credit goes to a consumer tag, whoever
has that now. A difference may show at any later input, of any channel: so each defect applies as long as there is one.
From when one has shown the limiter's count is the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.limits import can_share, gets_under_way
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey

NAME = "channel limiter"


@dataclass(slots=True)
class Limiter:
    """That of one channel."""

    #: 0: none
    limit: int = 0
    volume: int = 0
    #: the broker was seen to go by this count
    is_followed: bool = False
    #: a delivery has taken the last room since all was at rest
    was_filled: bool = False


@dataclass(slots=True)
class LimiterMemory:
    """What the limiters count, by channel, and what they have mixed up."""

    limiters: dict[ChannelKey, Limiter] = field(default_factory=dict)
    #: some limiter has shown: those that are to come are followed as well
    are_followed: bool = False
    #: deliveries, by channel and tag, whose consumer has had the room back before, and which are out for the limiter
    out: set[tuple[ChannelKey, int]] = field(default_factory=set)
    #: consumers, and deliveries to a former one of the tag that were settled in their time
    credited: dict[Consumer, int] = field(default_factory=dict)


class ChannelLimiter(Guest):
    """Counts as rabbit_limiter does."""

    name = NAME

    def new_memory(self) -> LimiterMemory:
        return LimiterMemory()

    def consumer_added(self, broker: Broker, consumer: Consumer) -> None:
        """It has the tag of a former one that holds something."""
        held = broker.channels[consumer.channel].unacknowledged.values()
        if any(entry.consumer is not None and entry.consumer.tag == consumer.tag for entry in held):
            arm(broker, NAME)

    def channel_limited(self, broker: Broker, channel: Channel, count: int) -> None:
        """rabbit_limiter:handle_call limit_prefetch: what the channel holds is counted when there was no limit."""
        if count:
            arm(broker, NAME)
        memory: LimiterMemory = broker.remembered(NAME)
        limiter = memory.limiters.setdefault(channel.key, Limiter())
        if not count:
            limiter.volume = 0
        elif not limiter.limit and not broker.dialect.prefetch_is_shared:
            gets = gets_under_way(channel)
            limiter.volume = len(channel.unacknowledged) + gets
            limiter.is_followed = memory.are_followed
        limiter.limit = count

    @once_awake
    def channel_unlimited(self, broker: Broker, channel: Channel) -> None:
        """rabbit_limiter:unlimit_prefetch."""
        limiter = broker.remembered(NAME).limiters.get(channel.key)
        if limiter is not None:
            limiter.limit = limiter.volume = 0

    @once_awake
    def nothing_got(self, broker: Broker, channel: Channel) -> None:
        limiter_of(broker, channel).volume -= 1

    @once_awake
    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        if consumer is None or entry is None:
            return
        limiter = broker.remembered(NAME).limiters.get(consumer.channel)
        if limiter is None or not limiter.limit or not can_share(broker, consumer):
            return
        if not broker.channels[consumer.channel].under_way:
            limiter.volume += 1
            limiter.was_filled |= limiter.volume == limiter.limit

    @once_awake
    def deliveries_settled(
        self, broker: Broker, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], requirement: str
    ) -> None:
        """rabbit_channel:notify_limiter: all but what basic.get has got, counted or not; rabbit_limiter:handle_cast."""
        memory: LimiterMemory = broker.remembered(NAME)
        limiter = memory.limiters.get(channel.key)
        out = {(channel.key, tag) for tag, _ in settled} & memory.out
        memory.out -= out
        if limiter is not None and limiter.limit and limiter.volume:
            limiter.volume -= sum(entry.consumer is not None for _, entry in settled) + len(out)
        for _, entry in settled:
            living = consumer_of_same_tag(channel, entry)
            if living is not None:
                memory.credited[living] = memory.credited.get(living, 0) + 1

    @once_awake
    def channel_ended(self, broker: Broker, channel: Channel) -> None:
        memory: LimiterMemory = broker.remembered(NAME)
        memory.limiters.pop(channel.key, None)
        memory.out = {each for each in memory.out if each[0] != channel.key}
        for consumer in [each for each in memory.credited if each.channel == channel.key]:
            del memory.credited[consumer]

    @once_awake
    def shared_limit_holds(self, broker: Broker, consumer: Consumer) -> bool | None:
        memory: LimiterMemory = broker.remembered(NAME)
        limiter = memory.limiters.get(consumer.channel)
        if limiter is None or not limiter.is_followed:
            return None
        return 0 < limiter.limit <= limiter.volume

    @once_awake
    def may_cross_limit(self, broker: Broker, consumer: Consumer) -> bool | None:
        """Each queue asks the limiter by itself, and what needs no acknowledgement takes no room."""
        limiter = broker.remembered(NAME).limiters.get(consumer.channel)
        return (limiter is not None and limiter.was_filled and consumer.no_ack) or None

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        for limiter in broker.remembered(NAME).limiters.values():
            limiter.was_filled = False

    @once_awake
    def has_channel_limit(self, broker: Broker, channel: Channel) -> bool | None:
        limiters: dict[ChannelKey, Limiter] = broker.remembered(NAME).limiters  # often asked, of few channels
        if channel.key not in limiters:
            return None
        limiter = limiters[channel.key]
        return limiter.limit > 0 if limiter.is_followed else None

    def fingerprint(self, broker: Broker) -> object:
        memory: LimiterMemory = broker.remembered(NAME)
        limited = [
            (key, limiter.limit, limiter.volume, limiter.is_followed, limiter.was_filled)
            for key, limiter in memory.limiters.items()
            if key in broker.channels and broker.channels[key].channel_prefetch
        ]
        credited = [(consumer.channel, consumer.tag, many) for consumer, many in memory.credited.items()]
        return (memory.are_followed, tuple(sorted(limited)), tuple(sorted(credited)))


def memory_of(broker: Broker) -> LimiterMemory:
    memory: LimiterMemory = broker.remembered(NAME)
    return memory


def limiter_of(broker: Broker, channel: Channel) -> Limiter:
    """The limiter of the channel; one without a limit if it has none."""
    return (memory_of(broker).limiters.get(channel.key) if NAME in broker.memories else None) or Limiter()


def note_out(broker: Broker, channel: Channel, tag: int) -> None:
    """The delivery's consumer has had its room back; for the limiter it is out until it is settled."""
    memory_of(broker).out.add((channel.key, tag))


def consumer_of_same_tag(channel: Channel, entry: Unacknowledged) -> Consumer | None:
    """The consumer that RabbitMQ takes for the former one, of its tag, that the delivery went to (CONSUME-016).

    rabbit_limiter:ack_from_queue, rabbit_stream_queue:settle: credit goes to the tag; streams are known by name.
    """
    former = entry.consumer
    living = None if former is None else channel.consumers.get(former.tag)
    if living is None or living is former or not living.prefetch:
        return None
    if living.queue.type is QueueType.STREAM:
        return living if living.queue.name == entry.queue.name else None
    return living if living.queue is entry.queue and living.queue.type is QueueType.CLASSIC else None


def follow_limiters(broker: Broker) -> None:
    """What RabbitMQ's limiters count is the count from now on, on every channel: a known defect has shown that they are
    there.
    """
    memory = memory_of(broker)
    memory.are_followed = True
    for channel in broker.channels.values():
        if channel.channel_prefetch:
            memory.limiters.setdefault(channel.key, Limiter()).is_followed = True
            broker.refresh_sharing(channel)
