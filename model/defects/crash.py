"""The commonest kind of known defect: a process of the broker crashes over an input."""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.connection.closing import break_connection


def crash_with(requirement: str) -> Callable[[Broker, Method], None]:
    """The channel's process crashes over the input: the connection closes with 541."""

    def process_(broker: Broker, method: Method) -> None:
        broker.stamp += 1
        broker.fired(requirement)
        break_connection(broker, broker.channels[(method.connection, method.channel)], internal_error())

    return process_


def internal_error(reply_text: object = "INTERNAL_ERROR") -> Expected:
    arguments = {"reply_code": 541, "reply_text": reply_text, "class_id": 0, "method_id": 0}
    return Expected("connection.close", arguments, ("CHAN-007",), counted=False)


def break_some_time(broker: Broker, channel: ChannelKey, reply_text: object = "INTERNAL_ERROR") -> None:
    """At some time from now on the channel crashes and its connection closes with 541; before that the others end."""
    connection = broker.connections[channel[0]]
    if connection.state is not ConnectionState.OPEN:
        return
    # ahead of its connection, which another one may have broken as well
    broker.teardowns.insert(0, ChannelCrash(*channel))
    if not any(isinstance(owed, Expected) and owed.method == "connection.close" for owed in connection.owed):
        broker.teardowns.append(ConnectionTeardown(connection.name))
        connection.owed.append(internal_error(reply_text))
        broker.debtors[(connection.name, 0)] = None
