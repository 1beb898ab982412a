"""Frames on channel 0, and the end of the TCP connection."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.mismatch import NONE, Mismatches, unexpected
from model.outputs.replies import take_expected
from model.rules.closing import end_connection
from model.state import Connection, ConnectionState, Expected


def observe_on_connection(broker: Broker, frame: Frame) -> Mismatches:
    connection = broker.connections.get(frame.connection)
    if connection is None:
        connection = broker.connections[frame.connection] = Connection(frame.connection)
    if frame.method in ("socket.closed", "socket.garbage"):
        return _observe_end(broker, connection, frame)
    if connection.state is ConnectionState.HANDSHAKE:
        if frame.method == "connection.start":
            connection.server_properties = frame.arguments.get("server_properties", {})
        return NONE
    for owed in connection.owed:
        if isinstance(owed, Expected) and owed.method == frame.method:
            wrong = take_expected(broker, connection, owed, frame)
            if frame.method == "connection.close" and connection.state is ConnectionState.OPEN:
                # it was owed while the channels went on (model.departures)
                end_connection(broker, connection)
                connection.state = ConnectionState.CLOSING
                connection.may_end = True
            return wrong
    if connection.owed and isinstance(connection.owed[0], Expected):
        return unexpected(connection.owed[0].requirements[0], f"{frame.method} in place of {connection.owed[0].method}")
    if frame.method == "connection.close":
        # an error that the model wanted on a channel, or none at all
        for channel in broker.channels.values():
            first = channel.owed[0] if channel.owed else None
            if channel.connection == connection.name and isinstance(first, Expected) and first.counted:
                return unexpected(first.requirements[0], f"connection.close in place of {first.method}")
        return unexpected(broker.reason or "CHAN-007", frame.method)
    return unexpected("CONN-019", frame.method)


def _observe_end(broker: Broker, connection: Connection, frame: Frame) -> Mismatches:
    if connection.may_end and not connection.owed:
        connection.state = ConnectionState.CLOSED
        return NONE
    if connection.owed and isinstance(connection.owed[0], Expected):
        return unexpected(connection.owed[0].requirements[0], f"{frame.method} in place of {connection.owed[0].method}")
    for channel in broker.channels.values():
        if channel.connection == connection.name and channel.owed and isinstance(channel.owed[0], Expected):
            return unexpected(channel.owed[0].requirements[0], f"{frame.method} in place of {channel.owed[0].method}")
    return unexpected(broker.reason or "CONN-020", frame.method)
