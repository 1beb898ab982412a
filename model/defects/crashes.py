"""Inputs that crash the channel's process in place of being refused or carried out: the connection closes with 541."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Exchange
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.field_types import values_within
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.model.rules.extensions.stream_consuming import OFFSET, offset_has_wrong_type
from amqpspec.model.rules.inputs import process

#: Where ages and offsets that begin with no digit were mended.
_DIGITS_MENDED = (versions("3.10.0", "4.2.6"), versions("4.3.0", "4.3.0"))
#: A text is cut beyond so many octets, so one of an error about shorter names is not.
_WHOLE = 150
#: The methods whose errors repeat names that the client gave.
_NAMING = (
    "exchange.declare", "exchange.delete", "exchange.bind", "exchange.unbind", "queue.declare", "queue.bind",
    "queue.unbind", "queue.purge", "queue.delete", "basic.consume", "basic.get", "basic.publish",
)  # fmt: skip


def crash_with(requirement: str) -> Callable[[Broker, Method], None]:
    """The channel's process crashes over the input: the connection closes with 541."""

    def process_(broker: Broker, method: Method) -> None:
        broker.stamp += 1
        broker.fired(requirement)
        arguments = {"reply_code": 541, "reply_text": "INTERNAL_ERROR", "class_id": 0, "method_id": 0}
        close = Expected("connection.close", arguments, ("CHAN-007",), counted=False)
        break_connection(broker, broker.channels[(method.connection, method.channel)], close)

    return process_


def _confirms_what_is_over(broker: Broker, method: Method) -> bool:
    """Does the client say cancel-ok of what is no consumer, as it is when the broker has cancelled it?"""
    channel = broker.open_channel(method)
    if channel is None:
        return False
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    # a consumer of direct replies is none of the channel's
    return consumer is None or consumer.queue.reply_address


def _is_refused_with_long_text(broker: Broker, method: Method) -> bool:
    """Does the input close its channel with a text that had to be cut, and holds other than ASCII characters?"""
    values = (value for value in method.arguments.values() if isinstance(value, str) and not value.isascii())
    if sum(len(value.encode("utf-8", "surrogateescape")) for value in values) < _WHOLE:
        return False
    channel = broker.open_channel(method)
    if channel is None:
        return False
    # what the rule says of it is known only when it has been asked
    lawful = copy_broker(broker)
    process(lawful, method)
    owed = (each for each in lawful.channels[channel.key].owed if isinstance(each, Expected))
    return any(each.method == "channel.close" and _was_cut_in_octets(each) for each in owed)


def _was_cut_in_octets(close: Expected) -> bool:
    text = close.arguments["reply_text"]
    return close.requirements[0] == "CHAN-008" and isinstance(text, str) and not text.isascii()


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
    # what is nested is dropped before
    kept = {name: value for name, value in headers.items() if not isinstance(value, dict | list) or name[:2] == "x-"}
    if not any(isinstance(value, Decimal) for value in values_within(kept)):
        return False
    queues = routes_of(broker, exchange, method.arguments.get("routing_key", ""), method.content).queues
    return bool(queues) and all(queue.type is QueueType.STREAM for queue in queues)


def _declared_table(broker: Broker, method: Method) -> Table:
    """The argument table of a queue.declare that is not passive, on an open channel."""
    if broker.open_channel(method) is None or method.arguments.get("passive"):
        return {}
    table: Table = method.arguments.get("arguments") or {}
    return table


def _unknown_type_for_server_name(broker: Broker, method: Method) -> bool:
    table = _declared_table(broker, method)
    if method.arguments.get("queue") or "x-queue-type" not in table:
        return False
    named_type = table["x-queue-type"]
    if isinstance(named_type, str) and broker.dialect.name == "rabbitmq-4.3":
        return False  # refused, as it has to be
    return named_type not in [queue_type.value for queue_type in QueueType]


def _age_without_number(broker: Broker, method: Method) -> bool:
    age = _declared_table(broker, method).get("x-max-age")
    return isinstance(age, str) and not age[:1].isdecimal() and method.arguments.get("queue") not in broker.queues


def _declares_malformed_address(broker: Broker, method: Method) -> bool:
    name = method.arguments.get("queue", "")
    if not name.startswith(REPLY_TO) or name == REPLY_TO or name in broker.queues:
        return False
    return broker.open_channel(method) is not None


def _has_offset_of_wrong_type(broker: Broker, method: Method) -> bool:
    table = method.arguments.get("arguments") or {}
    if {"x-priority", "x-consumer-timeout"} & table.keys() or not offset_has_wrong_type(table):
        return False
    channel = broker.open_channel(method)
    if channel is None or not channel.prefetch or method.arguments.get("no_ack"):
        return False
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is not QueueType.STREAM or channel.channel_prefetch:
        return False
    return method.arguments.get("consumer_tag", "") not in channel.consumers


def _has_offset_without_number(broker: Broker, method: Method) -> bool:
    """Is the offset a text that the law refuses, and that begins with no digit?"""
    offset = (method.arguments.get("arguments") or {}).get(OFFSET)
    if not isinstance(offset, str) or offset[:1].isdecimal() or broker.open_channel(method) is None:
        return False
    # whether it is the offset that is refused is known only when the rule has been asked
    lawful = copy_broker(broker)
    process(lawful, method)
    channel = lawful.channels[(method.connection, method.channel)]
    return any(isinstance(owed, Expected) and "STREAM-005" in owed.requirements for owed in channel.owed)


CRASHES: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-ok-for-no-consumer-breaks",
        requirement="CANCEL-009",
        strength=Strength.CONVENTIONAL,
        statement="A client that answers the basic.cancel for a deleted queue with cancel-ok crashes the channel, which"
        " knows the consumer no longer; the connection closes with 541.",
        source="rabbit_channel:handle_method basic.cancel_ok, cancel_consumer: return_ok replies with undefined;"
        " consumer_timeout_SUITE of 4.3.7: consumer_cancel_ok_after_queue_delete",
        dialects=("rabbitmq-4.3",),
        versions=(versions("4.3.0", "4.3.6"),),
        methods=("basic.cancel-ok",),
        applies=_confirms_what_is_over,
        process=crash_with("CANCEL-009"),
    ),
    DefectTransition(
        name="long-error-text-breaks",
        requirement="CHAN-008",
        strength=Strength.CONVENTIONAL,
        statement="The text of a channel's error is cut to 255 characters, not octets; where that is too long for a"
        " short string the connection closes with 541 in place of the channel.",
        source="rabbit_binary_generator:amqp_exception_explanation, chars_limit; then method_field_shortstr_overflow",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_NAMING,
        applies=_is_refused_with_long_text,
        process=crash_with("CHAN-008"),
    ),
    DefectTransition(
        name="infinite-header-breaks",
        requirement="PUBLISH-016",
        strength=Strength.CONVENTIONAL,
        statement="A publish with a header that is an infinite number, or none at all (NaN), crashes the channel; the"
        " connection closes with 541.",
        source="rabbit_binary_parser:parse_table, whose pattern for floating-point numbers knows finite ones only",
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
        methods=("basic.publish",),
        applies=_puts_decimal_into_stream,
        process=crash_with("PUBLISH-016"),
    ),
    DefectTransition(
        name="server-named-unknown-type-breaks",
        requirement="QUEUE-013",
        strength=Strength.CONVENTIONAL,
        statement="queue.declare without a name and with an x-queue-type that does not exist crashes the channel, and"
        " the connection closes with 541. In 4.3 only an x-queue-type that is no text does.",
        source="rabbit_amqqueue:is_server_named_allowed asks rabbit_queue_type:discover before any check",
        methods=("queue.declare",),
        applies=_unknown_type_for_server_name,
        process=crash_with("QUEUE-013"),
    ),
    DefectTransition(
        name="age-without-number-breaks",
        requirement="QUEUE-013",
        strength=Strength.CONVENTIONAL,
        statement="An x-max-age that does not begin with a digit crashes the channel, and the connection closes with"
        " 541.",
        source="v4.0.5 rabbit_amqqueue:check_max_age, list_to_integer of no digits; mended in 4.2.7 and 4.3.1",
        versions=_DIGITS_MENDED,
        methods=("queue.declare",),
        applies=_age_without_number,
        process=crash_with("QUEUE-013"),
    ),
    DefectTransition(
        name="malformed-reply-address-breaks",
        requirement="REPLY-002",
        strength=Strength.CONVENTIONAL,
        statement="Declaring a queue whose name begins like an address of direct replies and is none, passively or not,"
        " crashes the channel; the connection closes with 541.",
        source="rabbit_channel:handle_method queue.declare: rabbit_volatile_queue:new gives error, taken for a queue",
        dialects=("rabbitmq-4.3",),
        methods=("queue.declare",),
        applies=_declares_malformed_address,
        process=crash_with("REPLY-002"),
    ),
    DefectTransition(
        name="stream-offset-of-wrong-type-breaks",
        requirement="STREAM-005",
        strength=Strength.CONVENTIONAL,
        statement="An x-stream-offset that is neither number, time nor text crashes the channel; the connection"
        " closes with 541.",
        source="rabbit_stream_queue:parse_offset_arg (takes any value), osiris:init_reader",
        methods=("basic.consume",),
        applies=_has_offset_of_wrong_type,
        process=crash_with("STREAM-005"),
    ),
    DefectTransition(
        name="stream-offset-text-breaks",
        requirement="STREAM-005",
        strength=Strength.CONVENTIONAL,
        statement="An x-stream-offset that is text, and neither a word nor begins with a digit, crashes the channel;"
        " the connection closes with 541.",
        source="v4.0.5 rabbit_amqqueue:check_max_age, list_to_integer of no digits; mended in 4.2.7 and 4.3.1",
        versions=_DIGITS_MENDED,
        methods=("basic.consume",),
        applies=_has_offset_without_number,
        process=crash_with("STREAM-005"),
    ),
)
