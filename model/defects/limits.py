"""Known defects of limits; most are of the one that RabbitMQ sets to a channel, up to 4.2.

Its limiter counts beside the channel, and not always what the channel holds. A difference may show at any later input,
of any channel: so each applies as long as there is one, and from when it has shown the limiter's count is the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.limits import can_share, counted, is_counted, limited_namesake
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.broker.state import Channel, ChannelState, Unacknowledged
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.protocol.methods import TEARDOWNS, Frame
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.inputs import process

#: Does the limiter of the channel count in that wrong way, from this input on at the latest?
Miscounts = Callable[[Broker, Channel, Frame], bool]

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
    "channel.close", "connection.close", *TEARDOWNS, "socket.abort", *_ERRING,
)  # fmt: skip


def brings_deliveries(broker: Broker, frame: Frame) -> bool:
    """Can this input, of one of these methods, bring one about? The questions of a barrier end in no error."""
    return broker.counting or frame.method not in _ERRING


def _is_on(channel: Channel, frame: Frame) -> bool:
    return channel.key == (frame.connection, frame.channel)


def _settled(channel: Channel, frame: Frame) -> Iterator[tuple[int, Unacknowledged]]:
    if frame.method in _SETTLING and _is_on(channel, frame):
        everything = frame.method.startswith("basic.recover")
        for tag in channel.unacknowledged if everything else tags_meant(channel, frame):
            yield tag, channel.unacknowledged[tag]


def _is_lifted(broker: Broker, channel: Channel, frame: Frame) -> bool:
    if not channel.limiter.limit:
        return True
    return frame.method == "basic.qos" and _is_on(channel, frame) and not frame.arguments.get("global_")


def _keeps_room_of_gets(broker: Broker, channel: Channel, frame: Frame) -> bool:
    if not channel.limiter.limit:
        return False
    gets = (e.consumer is None and is_counted(broker, channel, tag, e) for tag, e in _settled(channel, frame))
    return channel.limiter.volume > counted(broker, channel) or any(gets)


def _gives_room_for_uncounted(broker: Broker, channel: Channel, frame: Frame) -> bool:
    if not channel.limiter.limit:
        return False
    others = (e.consumer is not None and not is_counted(broker, channel, tag, e) for tag, e in _settled(channel, frame))
    return channel.limiter.volume < counted(broker, channel) or any(others)


def _holds_back_no_ack(broker: Broker, channel: Channel, frame: Frame) -> bool:
    if not channel.limiter.limit:
        return False
    if frame.method == "basic.consume" and _is_on(channel, frame) and frame.arguments.get("no_ack"):
        return True
    return any(consumer.no_ack and can_share(broker, consumer) for consumer in channel.consumers.values())


def _concerned(broker: Broker, frame: Frame, miscounts: Miscounts) -> Iterator[Channel]:
    if not brings_deliveries(broker, frame):
        return
    for channel in broker.channels.values():
        is_known = channel.limiter.is_followed or not channel.channel_prefetch
        if channel.state is ChannelState.OPEN and not is_known and miscounts(broker, channel, frame):
            yield channel


def follow_limiters(broker: Broker) -> None:
    """What RabbitMQ's limiters count is the count from now on, on every channel: a known defect has shown that they are
    there.
    """
    broker.limiters_are_followed = True
    for channel in broker.channels.values():
        if channel.channel_prefetch:
            channel.limiter.is_followed = True
            broker.refresh_sharing(channel)


def _follow(broker: Broker, frame: Frame) -> None:
    follow_limiters(broker)
    process(broker, frame)


def _defect(name: str, requirement: str, statement: str, source: str, miscounts: Miscounts) -> DefectTransition:
    return DefectTransition(
        name=name,
        requirement=requirement,
        statement=statement,
        source=source,
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=DELIVERY_METHODS,
        applies=lambda broker, frame: any(True for _ in _concerned(broker, frame, miscounts)),
        process=_follow,
    )


def _namesakes(broker: Broker) -> Iterator[Consumer]:
    for channel in broker.channels.values():
        yield from (consumer for consumer in channel.consumers.values() if consumer.settled_of_namesake)


def _credits_namesake(broker: Broker, frame: Frame) -> bool:
    if not brings_deliveries(broker, frame):
        return False
    if any(True for _ in _namesakes(broker)):
        return True
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    return any(limited_namesake(channel, entry) is not None for _, entry in _settled(channel, frame))


def _credit_namesakes(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    for consumer in list(_namesakes(broker)):
        consumer.outstanding -= consumer.settled_of_namesake
        consumer.settled_of_namesake = 0
        broker.refresh(consumer.queue)


LIMIT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reused-tag-gains-room",
        requirement="CONSUME-016",
        statement="Settling what a cancelled consumer of a classic queue or a stream holds lets a new consumer of its"
        " tag be handed more than its limit.",
        source="rabbit_limiter:ack_from_queue, rabbit_stream_queue:settle (credit goes to whoever has the tag)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=DELIVERY_METHODS,
        applies=_credits_namesake,
        process=_credit_namesakes,
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
