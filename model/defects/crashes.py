"""Inputs that crash the channel's process in place of being refused or carried out: the connection closes with 541."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.defects.changed_properties import without_nested
from amqpspec.model.defects.situations import named_consumer
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.field_types import values_within
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method, Table
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


def _crash(*, over: Callable[[Broker, Method], bool], in_place_of: str | None = "", **known: Any) -> DefectTransition:
    """The channel's process crashes over such an input, where the law has that refusal; "": none; None: any or none.

    It is hardly ever an input that somebody would send.
    """

    def applies(broker: Broker, method: Method) -> bool:
        channel = broker.open_channel(method)
        if channel is None or not over(broker, method):
            return False
        if in_place_of is None:
            return True
        # what the law says of it is known only when it has been asked
        lawful = copy_broker(broker)
        process(lawful, method)
        owed = (*lawful.channels[channel.key].owed, *lawful.connections[method.connection].owed)
        errors = [each for each in owed if isinstance(each, Expected) and each.method.endswith(".close")]
        return in_place_of in errors[-1].requirements if errors else not in_place_of

    def crash(broker: Broker, method: Method) -> None:
        broker.stamp += 1
        broker.fired(known["requirement"])
        arguments = {"reply_code": 541, "reply_text": "INTERNAL_ERROR", "class_id": 0, "method_id": 0}
        close = Expected("connection.close", arguments, ("CHAN-007",), counted=False)
        break_connection(broker, broker.channels[(method.connection, method.channel)], close)

    return DefectTransition(applies=applies, process=crash, **{"strength": Strength.CONVENTIONAL, **known})


def _has_long_names(broker: Broker, method: Method) -> bool:
    """Does it hold so many octets of text with other than ASCII characters that an error has to be cut?"""
    values = (value for value in method.arguments.values() if isinstance(value, str) and not value.isascii())
    return sum(len(value.encode("utf-8", "surrogateescape")) for value in values) >= _WHOLE


def _headers(method: Method) -> Table:
    return (method.content.properties.get("headers") or {}) if method.content is not None else {}


def _puts_decimal_into_stream(broker: Broker, method: Method) -> bool:
    # what is nested is dropped before
    kept = without_nested({"headers": _headers(method)})["headers"]
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or not any(isinstance(value, Decimal) for value in values_within(kept)):
        return False
    key, content = method.arguments.get("routing_key", ""), method.content or EMPTY_CONTENT
    queues = routes_of(broker, exchange, key, content).queues
    return bool(queues) and all(queue.type is QueueType.STREAM for queue in queues)


def _has_unknown_type(broker: Broker, method: Method) -> bool:
    table = method.arguments.get("arguments") or {}
    if method.arguments.get("queue") or method.arguments.get("passive") or "x-queue-type" not in table:
        return False
    kind = table["x-queue-type"]
    is_refused = isinstance(kind, str) and base_of(broker.dialect.name) == "rabbitmq-4.3"  # as it has to be
    return not is_refused and kind not in list(QueueType)


def _begins_with_no_digit(argument: str) -> Callable[[Broker, Method], bool]:
    def has_it(broker: Broker, method: Method) -> bool:
        text = (method.arguments.get("arguments") or {}).get(argument)
        return isinstance(text, str) and not text[:1].isdecimal()

    return has_it


def _names_malformed_address(broker: Broker, method: Method) -> bool:
    name = method.arguments.get("queue", "")
    return name.startswith(REPLY_TO) and name != REPLY_TO and name not in broker.queues


CRASHES: tuple[DefectTransition, ...] = (
    _crash(
        name="cancel-ok-for-no-consumer-breaks",
        requirement="CANCEL-009",
        statement="A client that answers the basic.cancel for a deleted queue with cancel-ok crashes the channel, which"
        " knows the consumer no longer; the connection closes with 541.",
        source="rabbit_channel:handle_method basic.cancel_ok, cancel_consumer: return_ok replies with undefined;"
        " consumer_timeout_SUITE of 4.3.7: consumer_cancel_ok_after_queue_delete",
        dialects=("rabbitmq-4.3",),
        versions=(versions("4.3.0", "4.3.6"),),
        methods=("basic.cancel-ok",),
        # a consumer of direct replies is none of the channel's
        over=lambda broker, it: (consumer := named_consumer(broker, it)) is None or consumer.queue.reply_address,
    ),
    _crash(
        name="long-error-text-breaks",
        requirement="CHAN-008",
        statement="The text of a channel's error is cut to 255 characters, not octets; where that is too long for a"
        " short string the connection closes with 541 in place of the channel.",
        source="rabbit_binary_generator:amqp_exception_explanation, chars_limit; then method_field_shortstr_overflow",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_NAMING,
        over=_has_long_names,
        in_place_of="CHAN-008",
    ),
    _crash(
        name="infinite-header-breaks",
        requirement="PUBLISH-016",
        statement="A publish with a header that is an infinite number, or none at all (NaN), crashes the channel; the"
        " connection closes with 541.",
        source="rabbit_binary_parser:parse_table, whose pattern for floating-point numbers knows finite ones only",
        methods=("basic.publish",),
        over=lambda broker, method: any(
            isinstance(value, float) and not math.isfinite(value) for value in values_within(_headers(method))
        ),
    ),
    _crash(
        name="stream-breaks-on-decimal",
        requirement="PUBLISH-016",
        strength=Strength.PROMISED,
        statement="A publish to a stream with a header that is a decimal number crashes the channel; the connection"
        " closes with 541.",
        source="rabbit_msg_record:from_091 and mc_amqpl:from_091 have no clause for decimals",
        methods=("basic.publish",),
        over=_puts_decimal_into_stream,
    ),
    _crash(
        name="server-named-unknown-type-breaks",
        requirement="QUEUE-013",
        statement="queue.declare without a name and with an x-queue-type that does not exist crashes the channel, and"
        " the connection closes with 541. In 4.3 only an x-queue-type that is no text does.",
        source="rabbit_amqqueue:is_server_named_allowed asks rabbit_queue_type:discover before any check",
        methods=("queue.declare",),
        over=_has_unknown_type,
        in_place_of="QUEUE-013",
    ),
    _crash(
        name="age-without-number-breaks",
        requirement="QUEUE-013",
        statement="An x-max-age that does not begin with a digit crashes the channel, and the connection closes with"
        " 541.",
        source="v4.0.5 rabbit_amqqueue:check_max_age, list_to_integer of no digits; mended in 4.2.7 and 4.3.1",
        versions=_DIGITS_MENDED,
        methods=("queue.declare",),
        over=_begins_with_no_digit("x-max-age"),
        in_place_of="QUEUE-013",
    ),
    _crash(
        name="malformed-reply-address-breaks",
        requirement="REPLY-002",
        statement="Declaring a queue whose name begins like an address of direct replies and is none, passively or not,"
        " crashes the channel; the connection closes with 541.",
        source="rabbit_channel:handle_method queue.declare: rabbit_volatile_queue:new gives error, taken for a queue",
        dialects=("rabbitmq-4.3",),
        methods=("queue.declare",),
        over=_names_malformed_address,
        in_place_of=None,
    ),
    _crash(
        name="stream-offset-of-wrong-type-breaks",
        requirement="STREAM-005",
        statement="An x-stream-offset that is neither number, time nor text crashes the channel; the connection"
        " closes with 541.",
        source="rabbit_stream_queue:parse_offset_arg (takes any value), osiris:init_reader",
        methods=("basic.consume",),
        over=lambda broker, method: offset_has_wrong_type(method.arguments.get("arguments") or {}),
        in_place_of="STREAM-005",
    ),
    _crash(
        name="stream-offset-text-breaks",
        requirement="STREAM-005",
        statement="An x-stream-offset that is text, and neither a word nor begins with a digit, crashes the channel;"
        " the connection closes with 541.",
        source="v4.0.5 rabbit_amqqueue:check_max_age, list_to_integer of no digits; mended in 4.2.7 and 4.3.1",
        versions=_DIGITS_MENDED,
        methods=("basic.consume",),
        over=_begins_with_no_digit(OFFSET),
        in_place_of="STREAM-005",
    ),
)
