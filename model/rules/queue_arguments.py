"""Arguments of queue.declare: which are right for which queue type, and which must match on redeclaring."""

from __future__ import annotations

from typing import Any

from model.broker import Broker
from model.errors import ProtocolError
from model.rules.lookup import queue_text
from model.state import Channel, Queue, QueueType
from model.wording import value_text

#: Arguments that take part in equivalence (rabbit_amqqueue:assert_args_equivalence); all others are ignored.
COMPARED = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-single-active-consumer",
    "x-consumer-timeout",
    "x-delivery-limit",
    "x-queue-type",
)

#: Arguments that a queue type does not know, among those that the broker does (rabbit_*_queue:capabilities).
UNSUPPORTED: dict[QueueType, tuple[str, ...]] = {
    QueueType.CLASSIC: ("x-delivery-limit", "x-quorum-initial-group-size", "x-max-age", "x-initial-cluster-size"),
    QueueType.QUORUM: ("x-max-priority", "x-max-age", "x-stream-max-segment-size-bytes"),
    QueueType.STREAM: ("x-expires", "x-message-ttl", "x-max-length", "x-max-priority", "x-overflow", "x-delivery-limit",
                       "x-dead-letter-exchange", "x-single-active-consumer"),
}  # fmt: skip

#: The smallest right value of arguments that are whole numbers.
LEAST_VALUE = {"x-expires": 1, "x-message-ttl": 0, "x-max-length": 0, "x-max-length-bytes": 0, "x-consumer-timeout": 0}


def check_arguments(broker: Broker, channel: Channel, wanted: Queue) -> None:
    """QUEUE-013, QUEUE-015, QUEUE-016, QUEUE-017: refuse what the queue type cannot be."""
    where = queue_text(broker, channel, wanted.name)
    for argument, value in wanted.arguments.items():
        reason = _invalid(argument, value)
        if reason is not None:
            raise ProtocolError("QUEUE-013", 406, f"invalid arg '{argument}' for {where}: {reason}")
    unsupported = UNSUPPORTED[wanted.type]
    if wanted.type is QueueType.CLASSIC and not broker.dialect.classic_queue_timeout_argument:
        unsupported += ("x-consumer-timeout",)
    for argument in wanted.arguments:
        if argument in unsupported:
            requirement = "QUEUE-016" if argument == "x-consumer-timeout" else "QUEUE-015"
            raise ProtocolError(
                requirement, 406, f"invalid arg '{argument}' for {where} of queue type rabbit_{wanted.type.value}_queue"
            )
    if wanted.type is not QueueType.CLASSIC:
        _check_properties(where, wanted)


def _check_properties(where: str, wanted: Queue) -> None:
    """QUEUE-017, in the order of rabbit_quorum_queue:declare."""
    if wanted.auto_delete and wanted.type is QueueType.QUORUM:
        raise ProtocolError("QUEUE-017", 406, f"invalid property 'auto-delete' for {where}")
    if wanted.owner is not None:
        raise ProtocolError("QUEUE-017", 406, f"invalid property 'exclusive-owner' for {where}")
    if not wanted.durable:
        raise ProtocolError("QUEUE-017", 406, f"invalid property 'non-durable' for {where}")


def _invalid(argument: str, value: Any) -> str | None:
    """Why the value is wrong, in the broker's words; None if it is right or nobody looks at it."""
    if argument in LEAST_VALUE:
        if isinstance(value, bool) or not isinstance(value, int):
            return f'"expected integer, got {wire_type(value)}"'
        if value < LEAST_VALUE[argument]:
            return "{value_zero,0}" if value == 0 else f"{{value_negative,{value}}}"
    if argument == "x-queue-type" and value not in {t.value for t in QueueType}:
        return f"\"unsupported queue type '{value}'\""
    return None


def wire_type(value: Any) -> str:
    """What RabbitMQ calls the type of a field value; whole numbers are sent as `I` where they fit, else as `l`."""
    if type(value) is int:
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    names = {str: "longstr", bool: "bool", float: "double", bytes: "binary", dict: "table", list: "array"}
    return names.get(type(value), "void")


def check_equivalence(broker: Broker, channel: Channel, queue: Queue, wanted: Queue) -> None:
    """QUEUE-007, QUEUE-010, QUEUE-012; rabbit_amqqueue:assert_equivalence."""
    where = queue_text(broker, channel, queue.name)
    for field, asked, is_so in (
        ("durable", wanted.durable, queue.durable),
        ("auto_delete", wanted.auto_delete, queue.auto_delete),
    ):
        if asked != is_so:
            raise ProtocolError(
                "QUEUE-007",
                406,
                f"inequivalent arg '{field}' for {where}: received '{value_text(asked)}'"
                f" but current is '{value_text(is_so)}'",
            )
    for argument in COMPARED:
        default = "classic" if argument == "x-queue-type" else None
        if wanted.arguments.get(argument, default) == queue.arguments.get(argument, default):
            continue
        requirement = "QUEUE-012" if argument == "x-queue-type" else "QUEUE-010"
        raise ProtocolError(
            requirement,
            406,
            f"inequivalent arg '{argument}' for {where}: {_difference(broker, argument, wanted, queue)}",
        )


def _difference(broker: Broker, argument: str, wanted: Queue, queue: Queue) -> str:
    """`rabbit_misc:assert_args_equivalence1`, where a missing argument is worded differently from a wrong one."""
    default = broker.dialect.default_queue_type_in_errors if argument == "x-queue-type" else None
    received = wanted.arguments.get(argument, default)
    current = queue.arguments.get(argument, default)
    if received is None:
        return f"received none but current is the value '{current}' of type '{wire_type(current)}'"
    if current is None:
        return f"received the value '{received}' of type '{wire_type(received)}' but current is none"
    return f"received '{received}' but current is '{current}'"
