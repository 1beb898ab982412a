"""Inputs that are answered otherwise than promised, or not at all, with nothing else wrong afterwards."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process


def _closes_behind_error(broker: Broker, method: Method) -> bool:
    """Does the client close a connection that an error on a channel has broken, before the broker has said so?"""
    connection = broker.connections.get(method.connection)
    owed = connection.owed if connection is not None and connection.state is ConnectionState.OPEN else ()
    return any(isinstance(each, Expected) and each.method == "connection.close" for each in owed)


def _leave_unanswered(broker: Broker, method: Method) -> None:
    broker.stamp += 1
    broker.fired("CONN-030")


def _has_mode_of_old(broker: Broker, method: Method) -> bool:
    mode = (method.arguments.get("arguments") or {}).get("x-queue-mode")
    is_open = broker.open_channel(method) is not None
    return is_open and isinstance(mode, str) and not broker.dialect.queue_arguments.queue_modes


def _take_any_mode(broker: Broker, method: Method) -> None:
    dialect = broker.dialect
    modes = (str(method.arguments["arguments"]["x-queue-mode"]),)
    broker.dialect = replace(dialect, queue_arguments=replace(dialect.queue_arguments, queue_modes=modes))
    process(broker, method)
    broker.dialect = dialect


def _replies_to_nobody(broker: Broker, method: Method) -> bool:
    """Is it mandatory, and goes to the address of a consumer of replies that is gone?"""
    arguments = method.arguments
    gone = {*broker.reply_addresses, *broker.reply_addresses.values()} - broker.queues.keys()
    is_there = broker.open_channel(method) is not None and not arguments.get("exchange")
    return is_there and bool(arguments.get("mandatory")) and arguments.get("routing_key", "") in gone


def _return_nothing(broker: Broker, method: Method) -> None:
    process(broker, method)
    channel = broker.channels[(method.connection, method.channel)]
    returned = [owed for owed in channel.owed if isinstance(owed, Expected) and owed.method == "basic.return"]
    channel.owed = [owed for owed in channel.owed if not any(owed is each for each in returned[-1:])]
    broker.settle_debts(channel)
    broker.fired("PUBLISH-007")


ANSWERS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="close-behind-error-unanswered",
        requirement="CONN-030",
        statement="When a client's connection.close crosses the one that an error on a channel brings about, it is not"
        " answered.",
        source="rabbit_reader:handle_exception in state closing sends connection.close; maybe_close no close-ok then",
        methods=("connection.close",),
        applies=_closes_behind_error,
        process=_leave_unanswered,
    ),
    DefectTransition(
        name="queue-mode-is-taken",
        requirement="QUEUE-013",
        statement="An x-queue-mode is taken, though the release notes of 4.3.0 say that a declare with one fails: up to"
        " 4.3.5 the modes of old, in 4.3.6 any.",
        source="v4.3.5 rabbit_amqqueue:check_queue_mode; rabbit_classic_queue:capabilities",
        dialects=("rabbitmq-4.3",),
        methods=("queue.declare",),
        applies=_has_mode_of_old,
        process=_take_any_mode,
    ),
    DefectTransition(
        name="reply-to-nobody-not-returned",
        requirement="PUBLISH-007",
        strength=Strength.ARGUABLE,
        statement="A mandatory message to the reply address of a consumer that is gone is neither delivered nor"
        " returned.",
        source="v4.3.5 rabbit_volatile_queue:new_target takes every address that a process can be read from",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        methods=("basic.publish",),
        applies=_replies_to_nobody,
        process=_return_nothing,
    ),
)
