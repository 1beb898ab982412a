"""Chapter connection: as much of its life cycle as the other chapters need (0-9-1 section 1.4; area CONN)."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.rules.closing import end_connection, fail_channel_zero
from model.state import Connection, ConnectionState, Expected


def connection_input(broker: Broker, connection: Connection, frame: Frame) -> None:
    """Process a client frame on channel 0, or the loss of the client (`socket.abort`).

    `connection.teardown` no client sends: the broker ends the channels of a connection that an error broke.
    """
    if frame.method == "connection.teardown":
        if connection.state is ConnectionState.OPEN:
            end_connection(broker, connection)
    elif frame.method == "socket.abort":
        end_connection(broker, connection)
        connection.state = ConnectionState.CLOSED
        connection.owed.clear()
        connection.may_end = True
        broker.debtors.pop((connection.name, 0), None)
    elif connection.state is ConnectionState.HANDSHAKE:
        _handshake(broker, connection, frame)
    elif connection.state is ConnectionState.OPEN:
        _running(broker, connection, frame)
    elif frame.method == "connection.close":
        _owe(broker, connection, Expected("connection.close-ok", {}, ("CONN-020",)))


def _handshake(broker: Broker, connection: Connection, frame: Frame) -> None:
    if frame.method == "connection.start-ok":
        capabilities = frame.arguments.get("client_properties", {}).get("capabilities", {})
        connection.capabilities = capabilities if isinstance(capabilities, dict) else {}
    elif frame.method == "connection.tune-ok":
        connection.channel_max = frame.arguments.get("channel_max", 0)
    elif frame.method == "connection.open":
        connection.vhost = frame.arguments.get("virtual_host", "/")
        connection.state = ConnectionState.OPEN
        _owe(broker, connection, Expected("connection.open-ok", {}, ("CONN-001",), counted=False))


def _running(broker: Broker, connection: Connection, frame: Frame) -> None:
    if frame.method == "connection.close":
        # CONN-020: the exclusive queues are deleted before close-ok is sent
        end_connection(broker, connection)
        connection.state = ConnectionState.CLOSED
        connection.may_end = True
        _owe(broker, connection, Expected("connection.close-ok", {}, ("CONN-020",), counted=broker.counting))
    elif frame.method == "connection.update-secret":
        _owe(broker, connection, Expected("connection.update-secret-ok", {}, ("CONN-024",), counted=broker.counting))
    else:
        error = ProtocolError("CONN-019", 504, "unexpected method in connection state running")
        fail_channel_zero(broker, connection, frame, error)


def _owe(broker: Broker, connection: Connection, expected: Expected) -> None:
    connection.owed.append(expected)
    broker.debtors[(connection.name, 0)] = None
