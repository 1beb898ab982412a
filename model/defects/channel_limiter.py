"""RabbitMQ's limiter, a process beside the channel that counts in its own way (rabbit_limiter; up to 4.2).

It counts what is delivered and what is settled, and not always what the channel holds: the limits of the channel and of
its consumers share it, what basic.get has got is counted in and never out, and credit goes to a consumer tag, whoever
has that now. A difference may show at any later input, of any channel: so each defect applies as long as there is one.
From when one has shown the limiter's count is the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown, Teardown
from amqpspec.model.broker.limits import can_share, counted, gets_under_way, is_counted
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.inputs import process

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
    def is_limited(self, broker: Broker, channel: Channel) -> bool | None:
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


def _memory(broker: Broker) -> LimiterMemory:
    memory: LimiterMemory = broker.remembered(NAME)
    return memory


def limiter_of(broker: Broker, channel: Channel) -> Limiter:
    """The limiter of the channel; one without a limit if it has none."""
    return (_memory(broker).limiters.get(channel.key) if NAME in broker.memories else None) or Limiter()


def note_out(broker: Broker, channel: Channel, tag: int) -> None:
    """The delivery's consumer has had its room back; for the limiter it is out until it is settled."""
    _memory(broker).out.add((channel.key, tag))


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


#: Does the limiter of the channel count in that wrong way, from this input on at the latest?
Miscounts = Callable[[Broker, Channel, Method | Teardown], bool]

_SETTLING = ("basic.ack", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async")
#: What can end a channel by an error, which gives back what was delivered there.
_ERRING = (
    "queue.declare", "queue.bind", "queue.unbind", "queue.purge", "queue.delete", "exchange.declare", "exchange.delete",
    "exchange.bind", "exchange.unbind", "basic.get", "tx.select", "tx.commit", "tx.rollback", "confirm.select",
    "channel.open",
)  # fmt: skip
#: What can bring a delivery about: it can make a message ready, or make room for one, or somebody who takes it.
DELIVERY_METHODS = (
    *_SETTLING, "basic.publish", "basic.qos", "basic.consume", "basic.cancel",
    "channel.close", "connection.close", "socket.abort", *_ERRING,
)  # fmt: skip
DELIVERY_EVENTS = (ChannelCrash, ConnectionTeardown)


def brings_deliveries(broker: Broker, event: Method | Teardown) -> bool:
    """Can this input, one of these, bring one about? The questions of a barrier end in no error."""
    return broker.bookkeeping.counting or isinstance(event, Teardown) or event.name not in _ERRING


def _is_sent(event: Method | Teardown, channel: Channel, *methods: str) -> TypeGuard[Method]:
    """Is it one of these methods, on that channel?"""
    return isinstance(event, Method) and event.name in methods and channel.key == (event.connection, event.channel)


def _settled(channel: Channel, event: Method | Teardown) -> Iterator[tuple[int, Unacknowledged]]:
    if _is_sent(event, channel, *_SETTLING):
        everything = event.name.startswith("basic.recover")
        for tag in channel.unacknowledged if everything else tags_meant(channel, event):
            yield tag, channel.unacknowledged[tag]


def _is_lifted(broker: Broker, channel: Channel, event: Method | Teardown) -> bool:
    if not limiter_of(broker, channel).limit:
        return True
    return _is_sent(event, channel, "basic.qos") and not event.arguments.get("global_")


def _keeps_room_of_gets(broker: Broker, channel: Channel, event: Method | Teardown) -> bool:
    limiter = limiter_of(broker, channel)
    if not limiter.limit:
        return False
    gets = (e.consumer is None and is_counted(broker, channel, tag, e) for tag, e in _settled(channel, event))
    return limiter.volume > counted(broker, channel) or any(gets)


def _gives_room_for_uncounted(broker: Broker, channel: Channel, event: Method | Teardown) -> bool:
    limiter = limiter_of(broker, channel)
    if not limiter.limit:
        return False
    others = (e.consumer is not None and not is_counted(broker, channel, tag, e) for tag, e in _settled(channel, event))
    return limiter.volume < counted(broker, channel) or any(others)


def _holds_back_no_ack(broker: Broker, channel: Channel, event: Method | Teardown) -> bool:
    if not limiter_of(broker, channel).limit:
        return False
    if _is_sent(event, channel, "basic.consume") and event.arguments.get("no_ack"):
        return True
    return any(consumer.no_ack and can_share(broker, consumer) for consumer in channel.consumers.values())


def _concerned(broker: Broker, event: Method | Teardown, miscounts: Miscounts) -> Iterator[Channel]:
    if not brings_deliveries(broker, event):
        return
    for channel in broker.channels.values():
        is_known = limiter_of(broker, channel).is_followed or not channel.channel_prefetch
        if channel.state is ChannelState.OPEN and not is_known and miscounts(broker, channel, event):
            yield channel


def follow_limiters(broker: Broker) -> None:
    """What RabbitMQ's limiters count is the count from now on, on every channel: a known defect has shown that they are
    there.
    """
    memory = _memory(broker)
    memory.are_followed = True
    for channel in broker.channels.values():
        if channel.channel_prefetch:
            memory.limiters.setdefault(channel.key, Limiter()).is_followed = True
            broker.refresh_sharing(channel)


def _follow(broker: Broker, event: Method | Teardown) -> None:
    follow_limiters(broker)
    process(broker, event)


def _defect(
    name: str,
    requirement: str,
    statement: str,
    source: str,
    miscounts: Miscounts,
    strength: Strength = Strength.PROMISED,
) -> DefectTransition:
    return DefectTransition(
        name=name,
        requirement=requirement,
        strength=strength,
        statement=statement,
        source=source,
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        by_chance=True,  # the limiter is a process of its own, which counts at a moment of its own
        methods=DELIVERY_METHODS,
        internal_events=DELIVERY_EVENTS,
        guest=NAME,
        applies=lambda broker, event: any(True for _ in _concerned(broker, event, miscounts)),
        process=_follow,
    )


def _credited(broker: Broker) -> Iterator[Consumer]:
    for consumer in _memory(broker).credited:
        channel = broker.channels.get(consumer.channel)
        if channel is not None and channel.consumers.get(consumer.tag) is consumer:
            yield consumer


def _gives_credit(broker: Broker, event: Method | Teardown) -> bool:
    if not brings_deliveries(broker, event):
        return False
    if any(True for _ in _credited(broker)):
        return True
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    return any(consumer_of_same_tag(channel, entry) is not None for _, entry in _settled(channel, event))


def _give_credit(broker: Broker, event: Method | Teardown) -> None:
    process(broker, event)
    for consumer in list(_credited(broker)):
        consumer.outstanding -= _memory(broker).credited.pop(consumer)
        broker.refresh(consumer.queue)


LIMIT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reused-tag-gains-room",
        requirement="CONSUME-016",
        strength=Strength.PROMISED,
        statement="Settling what a cancelled consumer of a classic queue or a stream holds lets a new consumer of its"
        " tag be handed more than its limit.",
        source="rabbit_limiter:ack_from_queue, rabbit_stream_queue:settle (credit goes to whoever has the tag)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=DELIVERY_METHODS,
        internal_events=DELIVERY_EVENTS,
        guest=NAME,
        applies=_gives_credit,
        process=_give_credit,
    ),
    _defect(
        "consumer-limit-lifts-channel-limit",
        "QOS-010",
        "basic.qos with global=false ends the limit of the channel, which the guide calls independent of it.",
        "rabbit_channel:handle_method basic.qos, global = false: rabbit_limiter:unlimit_prefetch",
        _is_lifted,
    ),
    _defect(
        "settled-gets-keep-their-room",
        "QOS-013",
        "What basic.get had got when the channel's limit came counts towards it for good, settled or not.",
        "rabbit_channel: basic.qos counts all of unacked_message_q, notify_limiter leaves out basic.get's",
        _keeps_room_of_gets,
        Strength.CONVENTIONAL,
    ),
    _defect(
        "uncounted-deliveries-make-room",
        "QOS-008",
        "Settling what the limiter did not count, as deliveries from quorum queues and streams, and those under way"
        " when the limit came, makes room all the same: more than the limit are out.",
        "rabbit_channel:notify_limiter counts deliveries of every queue type; rabbit_limiter:handle_cast ack",
        _gives_room_for_uncounted,
    ),
    _defect(
        "channel-limit-holds-no-ack",
        "QOS-005",
        "A channel at its limit has nothing delivered to its consumers without acknowledgements either.",
        "rabbit_limiter:handle_call can_send, prefetch_limit_reached is asked before AckRequired",
        _holds_back_no_ack,
    ),
)
