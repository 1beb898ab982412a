"""Known defects (`model.defects.transitions`) of publishing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.queues import Arrival, Exchange, Message, Queue
from amqpspec.model.broker.state import ChannelState, Expected
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.defects.stream_content import is_nested
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TEARDOWNS, ChannelKey, Frame, Table
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.inputs import process

_ENDS = ("channel.close", "connection.close", *TEARDOWNS, "socket.abort")


def _on_their_way(broker: Broker, frame: Frame) -> list[tuple[Queue, Message]]:
    """Messages that the channels which the input ends have published to quorum queues, and may not be there yet."""
    return [
        (queue, message)
        for queue in broker.queues.values()
        if queue.type is QueueType.QUORUM
        for message in queue.unproven
        if message.arrival is Arrival.PUBLISHED and _is_ended(message.via, frame)
    ]


def _is_ended(channel: ChannelKey | None, frame: Frame) -> bool:
    if channel is None or frame.method not in _ENDS:
        return False
    return channel[0] == frame.connection and frame.channel in (0, channel[1])


def _lose(broker: Broker, frame: Frame) -> None:
    on_their_way = _on_their_way(broker, frame)
    process(broker, frame)
    for queue, message in on_their_way:
        if message in queue.messages:
            broker.take(queue, queue.messages.index(message))
            broker.drop(queue, message, message.reason)
            broker.refresh(queue)


def _published(broker: Broker, frame: Frame) -> tuple[Exchange, Table] | None:
    """The exchange of a publish that comes as far as its headers, and these."""
    channel = broker.channels.get((frame.connection, frame.channel))
    exchange = broker.exchanges.get(frame.arguments.get("exchange", ""))
    if channel is None or channel.state is not ChannelState.OPEN or exchange is None or exchange.internal:
        return None
    if frame.content is None or frame.arguments.get("immediate"):
        return None
    return exchange, frame.content.properties.get("headers") or {}


def _has_infinite_header(broker: Broker, frame: Frame) -> bool:
    published = _published(broker, frame)
    return published is not None and any(
        isinstance(value, float) and not math.isfinite(value) for value in _within(published[1])
    )


def _within(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        yield value
        return
    for each in value:
        yield from _within(each)


def _puts_decimal_into_stream(broker: Broker, frame: Frame) -> bool:
    published = _published(broker, frame)
    if published is None or frame.content is None:
        return False
    exchange, headers = published
    kept = {name: value for name, value in headers.items() if not is_nested(name, value)}
    if not any(isinstance(value, Decimal) for value in _within(kept)):
        return False
    queues = routes_of(broker, exchange, frame.arguments.get("routing_key", ""), frame.content).queues
    return bool(queues) and all(queue.type is QueueType.STREAM for queue in queues)


def _replies_to_nobody(broker: Broker, frame: Frame) -> bool:
    """Is it mandatory, and goes to the address of a consumer of replies that is gone?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    arguments = frame.arguments
    if channel is None or channel.state is not ChannelState.OPEN or not arguments.get("mandatory"):
        return False
    address = arguments.get("routing_key", "")
    if arguments.get("exchange") or address in broker.queues:
        return False
    return address in broker.reply_addresses or address in broker.reply_addresses.values()


def _return_nothing(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    channel = broker.channels[(frame.connection, frame.channel)]
    returned = [owed for owed in channel.owed if isinstance(owed, Expected) and owed.method == "basic.return"]
    channel.owed = [owed for owed in channel.owed if not any(owed is each for each in returned[-1:])]
    broker.settle_debts(channel)
    broker.fired("PUBLISH-007")


PUBLISHING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="infinite-header-breaks",
        requirement="PUBLISH-016",
        statement="A publish with a header that is an infinite number, or none at all (NaN), crashes the channel; the"
        " connection closes with 541.",
        source="rabbit_binary_parser:parse_table, whose pattern for floating-point numbers knows finite ones only",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish",),
        applies=_has_infinite_header,
        process=crash_with("PUBLISH-016"),
    ),
    DefectTransition(
        name="stream-breaks-on-decimal",
        requirement="PUBLISH-016",
        statement="A publish to a stream with a header that is a decimal number crashes the channel; the connection"
        " closes with 541.",
        source="rabbit_msg_record:from_091 and mc_amqpl:from_091 have no clause for decimals",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish",),
        applies=_puts_decimal_into_stream,
        process=crash_with("PUBLISH-016"),
    ),
    DefectTransition(
        name="reply-to-nobody-not-returned",
        requirement="PUBLISH-007",
        statement="A mandatory message to the reply address of a consumer that is gone is neither delivered nor"
        " returned.",
        source="v4.3.5 rabbit_volatile_queue:new_target takes every address that a process can be read from",
        dialects=("rabbitmq-4.3",),
        methods=("basic.publish",),
        applies=_replies_to_nobody,
        process=_return_nothing,
    ),
    DefectTransition(
        name="closing-overtakes-publishes",
        requirement="PUBLISH-002",
        statement="What a channel publishes to a quorum queue right before it is closed is lost, if it has published"
        " there before.",
        source="v3.10.9 rabbit_fifo_client:enqueue sends with low priority, so that the end of the channel comes first;"
        " rabbit_fifo:handle_down forgets the numbers that it expects, and maybe_enqueue then waits for number 1",
        dialects=("rabbitmq-3",),
        methods=_ENDS,
        applies=lambda broker, frame: bool(_on_their_way(broker, frame)),
        process=_lose,
    ),
)
