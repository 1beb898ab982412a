"""The commonest kind of known defect: a process of the broker crashes over an input."""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.state import Expected
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.connection.closing import break_connection


def crash_with(requirement: str) -> Callable[[Broker, Frame], None]:
    """The channel's process crashes over the input: the connection closes with 541."""

    def process_(broker: Broker, frame: Frame) -> None:
        broker.stamp += 1
        broker.fired(requirement)
        break_connection(broker, broker.channels[(frame.connection, frame.channel)], internal_error())

    return process_


def internal_error(reply_text: object = "INTERNAL_ERROR") -> Expected:
    arguments = {"reply_code": 541, "reply_text": reply_text, "class_id": 0, "method_id": 0}
    return Expected("connection.close", arguments, ("CHAN-007",), counted=False)
