"""The close that an error brings about: its text (rabbit_binary_generator), and what crosses it (rabbit_reader)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.owed import Expected
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process

#: A text is cut beyond so many octets, so one of an error about shorter names is not.
_WHOLE = 150

#: The methods whose errors repeat names that the client gave.
_NAMING = (
    "exchange.declare", "exchange.delete", "exchange.bind", "exchange.unbind", "queue.declare", "queue.bind",
    "queue.unbind", "queue.purge", "queue.delete", "basic.consume", "basic.get", "basic.publish",
)  # fmt: skip


def _is_refused_with_long_text(broker: Broker, method: Method) -> bool:
    """Does the input close its channel with a text that had to be cut, and holds other than ASCII characters?"""
    octets = 0
    for value in method.arguments.values():
        if isinstance(value, str) and not value.isascii():
            octets += len(value.encode("utf-8", "surrogateescape"))
    if octets < _WHOLE:
        return False
    channel = broker.open_channel(method)
    if channel is None:
        return False
    # what the rule says of it is known only when it has been asked
    lawful = copy_broker(broker)
    process(lawful, method)
    return any(
        isinstance(owed, Expected) and owed.method == "channel.close" and _was_cut_in_octets(owed)
        for owed in lawful.channels[channel.key].owed
    )


def _was_cut_in_octets(close: Expected) -> bool:
    text = close.arguments["reply_text"]
    return close.requirements[0] == "CHAN-008" and isinstance(text, str) and not text.isascii()


def _closes_behind_error(broker: Broker, method: Method) -> bool:
    """Does the client close a connection that an error on a channel has broken, before the broker has said so?"""
    connection = broker.connections.get(method.connection)
    if connection is None or connection.state is not ConnectionState.OPEN:
        return False
    return any(isinstance(owed, Expected) and owed.method == "connection.close" for owed in connection.owed)


def _leave_unanswered(broker: Broker, method: Method) -> None:
    broker.stamp += 1
    broker.fired("CONN-030")


CLOSE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="close-behind-error-unanswered",
        requirement="CONN-030",
        strength=Strength.PROMISED,
        statement="When a client's connection.close crosses the one that an error on a channel brings about, it is not"
        " answered.",
        source="rabbit_reader:handle_exception in state closing sends connection.close; maybe_close no close-ok then",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("connection.close",),
        applies=_closes_behind_error,
        process=_leave_unanswered,
    ),
)

ERROR_DEFECTS: tuple[DefectTransition, ...] = (
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
)
