"""Frames on channel 0, and the end of the TCP connection."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.state import Connection, ConnectionState, Expected
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches, unexpected
from amqpspec.model.outputs.replies import take_expected
from amqpspec.model.promises.capabilities import missing
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import NO_HEARTBEAT, Frame
from amqpspec.model.rules.connection.blocking import requirement_of
from amqpspec.model.rules.connection.closing import end_connection

#: Seconds by which clocks may differ, of the two sides and of those who look at them.
CLOCK_TOLERANCE = 0.05


def observe_on_connection(broker: Broker, frame: Frame) -> Mismatches:
    connection = broker.connections.get(frame.connection)
    if connection is None:
        return unexpected("CONN-001", f"{frame.method} on a connection that is not open")
    if connection.state is ConnectionState.FOREIGN:
        return NONE
    if frame.method in ("socket.closed", "socket.garbage"):
        return _observe_end(broker, connection, frame)
    for owed in connection.owed:
        if isinstance(owed, Expected) and owed.method == frame.method:
            return _take(broker, connection, owed, frame)
    if connection.may_announce_end and frame.method == "connection.close":
        if connection.state is ConnectionState.OPEN:
            end_connection(broker, connection)
            connection.may_end = True
        connection.may_announce_end = False
        connection.state = ConnectionState.CLOSING
        return NONE
    if connection.owed and isinstance(connection.owed[0], Expected):
        return unexpected(connection.owed[0].requirements[0], f"{frame.method} in place of {connection.owed[0].method}")
    if frame.method == "connection.close":
        # an error that the model wanted on a channel, or none at all
        for channel in broker.channels.values():
            first = channel.owed[0] if channel.owed else None
            if channel.connection == connection.name and isinstance(first, Expected) and first.counted:
                return unexpected(first.requirements[0], f"connection.close in place of {first.method}")
        return unexpected(broker.reason or "CHAN-007", frame.method)
    if frame.method in ("connection.blocked", "connection.unblocked"):
        return unexpected(requirement_of(connection), frame.method)
    return unexpected("CONN-026" if connection.state.in_handshake else "CONN-019", frame.method)


def _take(broker: Broker, connection: Connection, owed: Expected, frame: Frame) -> Mismatches:
    wrong = take_expected(broker, connection, owed, frame)
    if frame.method == "connection.close" and connection.state is ConnectionState.OPEN:
        # it was owed while the channels went on
        end_connection(broker, connection)
        connection.state = ConnectionState.CLOSING
        connection.may_end = True
    elif frame.method == "connection.start":
        connection.server_properties = frame.arguments.get("server_properties", {})
        connection.mechanisms = tuple(str(frame.arguments.get("mechanisms", "")).split())
        if frame.arguments.get("version_major") == 8:
            connection.state = ConnectionState.FOREIGN
        elif absent := missing(connection.server_properties, broker.dialect):
            detail = f"not advertised: {', '.join(absent)}"
            wrong += (Mismatch("CAP-001", Shape.WRONG_ARGUMENT, detail, False, "all of them true"),)
    elif frame.method == "connection.tune":
        connection.offered = {name: frame.arguments.get(name, 0) for name in owed.arguments}
    return wrong


def _observe_end(broker: Broker, connection: Connection, frame: Frame) -> Mismatches:
    owed = connection.owed[0] if connection.owed else None
    if frame.arguments.get("reason") == NO_HEARTBEAT:
        return unexpected("CONN-022", f"{frame.method} as the broker was silent for two heartbeats")
    if isinstance(owed, Expected) and owed.method == "socket.closed" and frame.method == "socket.closed":
        if frame.time - connection.heard < owed.not_before - CLOCK_TOLERANCE:
            return unexpected(owed.requirements[0], f"{frame.method} before its time")
        take_expected(broker, connection, owed, frame)
        _end(broker, connection)
        return NONE
    if connection.owed == [] and (connection.may_end or _is_too_late(broker, connection, frame)):
        _end(broker, connection)
        return NONE
    if isinstance(owed, Expected):
        return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
    for channel in broker.channels.values():
        if channel.connection == connection.name and channel.owed and isinstance(channel.owed[0], Expected):
            return unexpected(channel.owed[0].requirements[0], f"{frame.method} in place of {channel.owed[0].method}")
    return unexpected(broker.reason or "CONN-020", frame.method)


def _is_too_late(broker: Broker, connection: Connection, frame: Frame) -> bool:
    """Has the client taken longer for the handshake than the broker allows?"""
    patience = broker.dialect.handshake_timeout
    waited = frame.time - connection.began + CLOCK_TOLERANCE
    return connection.state.in_handshake and patience is not None and waited >= patience


def _end(broker: Broker, connection: Connection) -> None:
    """The TCP connection is over, whatever there still was on it."""
    if connection.state is ConnectionState.OPEN:
        end_connection(broker, connection)
    connection.state = ConnectionState.CLOSED
    connection.may_end = True
    connection.owed.clear()
    broker.debtors.pop((connection.name, 0), None)
