"""Arguments of queue.declare that crash the channel instead of being refused (rabbit_amqqueue, before and in
check_arguments).
"""

from __future__ import annotations

from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method

#: Dialects whose brokers refuse a type that is a text, and unknown (rabbit_queue_type:discover).
_TEXT_IS_REFUSED = ("rabbitmq-4.3",)


def _declared_table(broker: Broker, method: Method) -> dict[str, Any] | None:
    """The argument table of a queue.declare that is not passive, on an open channel."""
    channel = broker.channels.get((method.connection, method.channel))
    if channel is None or channel.state is not ChannelState.OPEN or method.arguments.get("passive"):
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
