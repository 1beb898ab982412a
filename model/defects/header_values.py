"""Headers of messages that RabbitMQ cannot read or convert, or compares wrongly (rabbit_binary_parser, mc_amqpl,
rabbit_exchange_type_headers).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.queues import Binding, Exchange
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.defects.stream_content import is_nested
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.field_types import values_within
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method, Table
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.inputs import process

#: A moment of which nobody tells.
_NEVER = datetime.min.replace(tzinfo=UTC)


def _published(broker: Broker, method: Method) -> tuple[Exchange, Table] | None:
    """The exchange of a publish that comes as far as its headers, and these, if it has some."""
    if method.content is None or not method.content.properties.get("headers"):
        return None
    channel = broker.channels.get((method.connection, method.channel))
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if channel is None or channel.state is not ChannelState.OPEN or exchange is None or exchange.internal:
        return None
    return None if method.arguments.get("immediate") else (exchange, method.content.properties["headers"])


def _has_infinite_header(broker: Broker, method: Method) -> bool:
    published = _published(broker, method)
    return published is not None and any(
        isinstance(value, float) and not math.isfinite(value) for value in values_within(published[1])
    )


def _puts_decimal_into_stream(broker: Broker, method: Method) -> bool:
    published = _published(broker, method)
    if published is None or method.content is None:
        return False
    exchange, headers = published
    kept = {name: value for name, value in headers.items() if not is_nested(name, value)}
    if not any(isinstance(value, Decimal) for value in values_within(kept)):
        return False
    queues = routes_of(broker, exchange, method.arguments.get("routing_key", ""), method.content).queues
    return bool(queues) and all(queue.type is QueueType.STREAM for queue in queues)


def _routes_by_time_stamp(broker: Broker, method: Method) -> bool:
    content = method.content or EMPTY_CONTENT
    headers = content.properties.get("headers")
    if not headers or not any(isinstance(value, datetime) for value in headers.values()):
        return False
    channel = broker.channels.get((method.connection, method.channel))
    name = method.arguments.get("exchange", "")
    if name not in broker.exchanges or channel is None or channel.state is not ChannelState.OPEN:
        return False
    key = method.arguments.get("routing_key", "")
    lawful = routes_of(broker, broker.exchanges[name], key, content).queues
    with _without_time_stamps_in(broker):
        # by way of exchanges, too: those that are bound, and alternate ones
        return routes_of(broker, broker.exchanges[name], key, content).queues.keys() != lawful.keys()


def _without_time_stamps(binding: Binding) -> Binding:
    arguments = binding.arguments.items()
    return replace(
        binding, arguments={name: _NEVER if isinstance(value, datetime) else value for name, value in arguments}
    )


@contextmanager
def _without_time_stamps_in(broker: Broker) -> Iterator[None]:
    """As if the bindings were of moments that no message names."""
    as_they_are = broker.exchanges
    broker.exchanges = {
        name: replace(each, bindings=tuple(map(_without_time_stamps, each.bindings)))
        for name, each in as_they_are.items()
    }
    try:
        yield
    finally:
        broker.exchanges = as_they_are


def _route_without_time_stamps(broker: Broker, method: Method) -> None:
    with _without_time_stamps_in(broker):
        process(broker, method)
    broker.fired("PUBLISH-018")


HEADER_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="infinite-header-breaks",
        requirement="PUBLISH-016",
        strength=Strength.CONVENTIONAL,
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
        strength=Strength.PROMISED,
        statement="A publish to a stream with a header that is a decimal number crashes the channel; the connection"
        " closes with 541.",
        source="rabbit_msg_record:from_091 and mc_amqpl:from_091 have no clause for decimals",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish",),
        applies=_puts_decimal_into_stream,
        process=crash_with("PUBLISH-016"),
    ),
)

TIME_STAMP_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="timestamp-headers-never-match",
        requirement="PUBLISH-018",
        strength=Strength.PROMISED,
        statement="A headers exchange compares a time stamp in milliseconds, the message's, with one in seconds, the"
        " binding's, so no two are equal.",
        source="mc_amqpl:routing_value multiplies by 1000; rabbit_exchange_type_headers takes the argument as it is",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish",),
        applies=_routes_by_time_stamp,
        process=_route_without_time_stamps,
    ),
)
