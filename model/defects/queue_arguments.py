"""Arguments of queue.declare that crash the channel instead of being refused (rabbit_amqqueue, before and in
check_arguments).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process

#: Dialects whose brokers refuse a type that is a text, and unknown (rabbit_queue_type:discover).
_TEXT_IS_REFUSED = ("rabbitmq-4.3",)


def _declared_table(broker: Broker, method: Method) -> dict[str, Any] | None:
    """The argument table of a queue.declare that is not passive, on an open channel."""
    channel = broker.open_channel(method)
    if channel is None or method.arguments.get("passive"):
        return None
    return method.arguments.get("arguments") or {}


def _unknown_type_for_server_name(broker: Broker, method: Method) -> bool:
    if method.arguments.get("queue"):
        return False
    table = _declared_table(broker, method)
    if not table or "x-queue-type" not in table:
        return False
    named_type = table["x-queue-type"]
    if isinstance(named_type, str) and broker.dialect.name in _TEXT_IS_REFUSED:
        return False
    return named_type not in [queue_type.value for queue_type in QueueType]


def _age_without_number(broker: Broker, method: Method) -> bool:
    if not method.arguments.get("arguments"):
        return False
    age = (_declared_table(broker, method) or {}).get("x-max-age")
    return isinstance(age, str) and not age[:1].isdecimal() and method.arguments.get("queue") not in broker.queues


def _has_mode_of_old(broker: Broker, method: Method) -> bool:
    if not method.arguments.get("arguments") or method.arguments.get("queue") in broker.queues:
        return False
    table = _declared_table(broker, method) or {}
    is_classic = table.get("x-queue-type", "classic") == "classic"
    return is_classic and isinstance(table.get("x-queue-mode"), str) and not broker.dialect.queue_arguments.queue_modes


def _take_any_mode(broker: Broker, method: Method) -> None:
    dialect = broker.dialect
    modes = (str(method.arguments["arguments"]["x-queue-mode"]),)
    broker.dialect = replace(dialect, queue_arguments=replace(dialect.queue_arguments, queue_modes=modes))
    process(broker, method)
    broker.dialect = dialect


QUEUE_ARGUMENT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="server-named-unknown-type-breaks",
        requirement="QUEUE-013",
        strength=Strength.CONVENTIONAL,
        statement="queue.declare without a name and with an x-queue-type that does not exist crashes the channel, and"
        " the connection closes with 541. In 4.3 only an x-queue-type that is no text does.",
        source="rabbit_amqqueue:is_server_named_allowed asks rabbit_queue_type:discover before any check",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("queue.declare",),
        applies=_unknown_type_for_server_name,
        process=crash_with("QUEUE-013"),
    ),
    DefectTransition(
        name="queue-mode-is-taken",
        requirement="QUEUE-013",
        strength=Strength.PROMISED,
        statement="An x-queue-mode is taken, though the release notes of 4.3.0 say that a declare with one fails: up to"
        " 4.3.5 the modes of old, in 4.3.6 any.",
        source="v4.3.5 rabbit_amqqueue:check_queue_mode; rabbit_classic_queue:capabilities",
        dialects=("rabbitmq-4.3",),
        methods=("queue.declare",),
        applies=_has_mode_of_old,
        process=_take_any_mode,
    ),
    DefectTransition(
        name="age-without-number-breaks",
        requirement="QUEUE-013",
        strength=Strength.CONVENTIONAL,
        statement="An x-max-age that does not begin with a digit crashes the channel, and the connection closes with"
        " 541.",
        source="v4.0.5 rabbit_amqqueue:check_max_age, list_to_integer of no digits; mended in 4.2.7 and 4.3.1",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("queue.declare",),
        applies=_age_without_number,
        process=crash_with("QUEUE-013"),
        versions=(versions("3.10.0", "4.2.6"), versions("4.3.0", "4.3.0")),
    ),
)
