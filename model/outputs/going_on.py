"""Going on after a frame that is wrong: where it is clear all the same in what state the broker is now.

A broker that ends the whole connection, where an error of one of its channels was due or a consumer, or where the
connection was to end in another way, has ended it: what it held goes back, and the other connections are not concerned.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.model.rules.connection.ending import end_connection

#: What is owed on channel 0 where the connection is about to end.
_ENDS = ("connection.close", "connection.close-ok", "socket.closed")
#: What is owed on another channel, where nothing is left of the method that it answers when the connection has ended:
#: an error of the channel, and in the text a consumer that was not made: RabbitMQ's defects each know how they go on.
_GONE_WITH_IT = ("channel.close", "basic.consume-ok")


def end_connection_if_clear(broker: Broker, event: TraceEvent) -> bool:
    """If the frame, which is wrong, shows that the broker has ended the connection, end it: is that so?"""
    if event.channel or event.name not in ("connection.close", "socket.closed"):
        return False
    connection = broker.connections.get(event.connection)
    if connection is None or not _is_about_to_end(broker, connection):
        return False
    if connection.state is ConnectionState.OPEN:
        end_connection(broker, connection)
    connection.state = ConnectionState.CLOSED if event.name == "socket.closed" else ConnectionState.CLOSING
    connection.may_end = True
    connection.owed.clear()
    broker.debtors.pop((connection.name, 0), None)
    return True


def _is_about_to_end(broker: Broker, connection: Connection) -> bool:
    """Does the law have the connection end now, or is all that is owed gone with it?"""
    first = connection.owed[0] if connection.owed else None
    if first is not None:
        return isinstance(first, Expected) and first.method in _ENDS
    if connection.state is not ConnectionState.OPEN:
        return False
    gone = _GONE_WITH_IT[:1] if broker.dialect.extensions else _GONE_WITH_IT
    owing = [each for key, each in broker.channels.items() if key[0] == connection.name and each.owed]
    return bool(owing) and all(
        isinstance(owed, Expected) and owed.method in gone for each in owing for owed in each.owed[:1]
    )
