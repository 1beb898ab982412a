"""Known defects of RabbitMQ's limiter: what it counts otherwise than the channel holds (`channel_limiter`).

A difference may show at any later input, of any channel: so each applies as long as there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeGuard

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.internal_events import Teardown
from amqpspec.model.broker.limits import can_share, counted, is_counted
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.defects.channel_limiter import NAME, consumer_of_same_tag, follow_limiters, limiter_of, memory_of
from amqpspec.model.defects.delivery_inputs import DELIVERY_EVENTS, DELIVERY_METHODS, SETTLING, brings_deliveries
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.inputs import process

#: Does the limiter of the channel count in that wrong way, from this input on at the latest?
Miscounts = Callable[[Broker, Channel, Method | Teardown], bool]


def _is_sent(event: Method | Teardown, channel: Channel, *methods: str) -> TypeGuard[Method]:
    """Is it one of these methods, on that channel?"""
    return isinstance(event, Method) and event.name in methods and channel.key == (event.connection, event.channel)


def _settled(channel: Channel, event: Method | Teardown) -> Iterator[tuple[int, Unacknowledged]]:
    if _is_sent(event, channel, *SETTLING):
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
    for consumer in memory_of(broker).credited:
        channel = broker.channels.get(consumer.channel)
        if channel is not None and channel.consumers.get(consumer.tag) is consumer:
            yield consumer


def _gives_credit(broker: Broker, event: Method | Teardown) -> bool:
    if not brings_deliveries(broker, event):
        return False
    if any(True for _ in _credited(broker)):
        return True
    channel = broker.open_channel(event)
    if channel is None:
        return False
    return any(consumer_of_same_tag(channel, entry) is not None for _, entry in _settled(channel, event))


def _give_credit(broker: Broker, event: Method | Teardown) -> None:
    process(broker, event)
    for consumer in list(_credited(broker)):
        consumer.outstanding -= memory_of(broker).credited.pop(consumer)
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
