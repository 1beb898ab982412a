"""Chapter connection: its life cycle once it is open, and its ends (0-9-1 section 1.4; area CONN).

Requirements:

* CONN-014: Frame larger than negotiated frame-max. A frame that says that its payload exceeds frame-max is a hard error
  501 at once, whatever its type, before any of the payload; nothing more is read. RabbitMQ tolerates the 8 octets by
  which frame-max minus 8 is exceeded then. [rabbit_reader.erl:handle_input frame_header; AMQP 0-9-1 4.2]
* CONN-019: Connection method out of state. On channel 0 of an open connection anything but connection.close and
  update-secret is hard error 504: another step of the handshake, close-ok, any method of another class. Methods of the
  class connection on a channel come under CHAN-011. In amqp-0-9-1: 503, 504 or another error of the connection; on
  close-ok the TCP connection may end. [rabbit_reader.erl:handle_method0]
* CONN-020: Client-initiated close. connection.close is answered by connection.close-ok and the socket closes; all
  exclusive queues of the connection are already deleted when close-ok arrives. [rabbit_reader.erl:handle_method0
  connection.close; AMQP 0-9-1 class connection]
* CONN-022: Heartbeat timeout. With negotiated heartbeat h, a client that sends nothing is disconnected (bare socket
  close) after about 2-3 h. The broker sends heartbeats as well: a client that hears nothing for two intervals may give
  it up. [rabbit_reader.erl:heartbeat; rabbit_heartbeat; AMQP 0-9-1 class connection]
* CONN-024: connection.update-secret. connection.update-secret on channel 0 is answered by update-secret-ok (extension
  10/70). [rabbit_reader.erl:handle_method0 connection.update_secret]
* CONN-028: The end after close-ok. When the client has answered the server's connection.close with close-ok, the server
  closes the socket. [AMQP 0-9-1 class connection, close-ok; rabbit_reader.erl:handle_method0 connection.close_ok]
* CONN-029: Handshake timeout. A client that has not come through the handshake after 10 s is disconnected.
  [rabbit_reader.erl:handle_other handshake_timeout; handshake_timeout in rabbit's environment]
* CONN-030: Crossing closes. A client's connection.close that crosses the server's, or is sent after it, is answered by
  close-ok. [AMQP 0-9-1 section 1.4.2.9, close; rabbit_reader.erl:handle_method0 connection.close]
* SERVER-002: The server's frames can be read. All that the server sends are frames as the specification defines them:
  of a known type, of the size that they say and no larger than was agreed, with their last octet, contents whole and in
  their order, and a method with all of its arguments and nothing after them. [AMQP 0-9-1 sections 4.2.1, grammar;
  4.2.3, general frame format; 4.2.4, method payloads; 4.2.5, data fields]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.errors import FrameError, ProtocolError
from amqpspec.model.protocol.methods import HeaderEvent, Method, SocketEvent
from amqpspec.model.rules.basic.cancel import recheck_consumers
from amqpspec.model.rules.connection.closing import fail_channel_zero, fail_frame
from amqpspec.model.rules.connection.ending import abandon_connection, end_connection
from amqpspec.model.rules.connection.handshake import connect, owe, owe_end, refuse_silently

#: Octets of a protocol header that stand where those of a frame's size do.
_SIZE = slice(6, 14)


def socket_input(broker: Broker, connection: Connection, event: SocketEvent) -> None:
    """Process what becomes of the TCP connection, by the client's doing."""
    if event.name == "socket.open":
        connect(broker, event)
    elif event.name == "socket.abort":
        abandon_connection(broker, connection)
        connection.state = ConnectionState.CLOSED
        connection.owed.clear()
        connection.may_end = True
        broker.debtors.pop((connection.name, 0), None)
    elif event.name == "socket.silence":
        _silence(broker, connection, event.time)


def connection_input(broker: Broker, connection: Connection, method: Method) -> None:
    """Process a method on channel 0 of a connection that is open."""
    if method.name == "connection.close":
        # CONN-020: the exclusive queues are deleted before close-ok is sent
        end_connection(broker, connection)
        connection.state = ConnectionState.CLOSED
        connection.may_end = True
        # an error on a channel may have broken the connection before
        requirement = "CONN-030" if connection.owed else "CONN-020"
        # SERVER-002: after close-ok all has been read
        owe(broker, connection, "connection.close-ok", {}, (requirement, "SERVER-002"))
    elif method.name == "connection.update-secret":
        owe(broker, connection, "connection.update-secret-ok", {}, ("CONN-024",))
        if broker.dialect.rechecks_consumers:
            recheck_consumers(broker, connection)
    elif method.name == "connection.close-ok" and broker.dialect.text.close_ok_may_end_it:
        end_connection(broker, connection)
        refuse_silently(broker, connection, "CONN-019")
    else:
        is_settled = method.name == "connection.open"  # the choice `second-open`
        wrong = "unexpected method in connection state running"
        error = ProtocolError("CONN-019", 504, wrong, unsettled_code=not is_settled)
        fail_channel_zero(broker, connection, method, error)


def closing_input(broker: Broker, connection: Connection, method: Method) -> None:
    """Closes may cross: the client's is answered all the same, and after its close-ok the TCP connection ends."""
    if connection.state not in (ConnectionState.CLOSING, ConnectionState.CLOSED):
        return
    if method.name == "connection.close":
        owe(broker, connection, "connection.close-ok", {}, ("CONN-030",))
    elif method.name == "connection.close-ok":
        if connection.state is ConnectionState.CLOSED:
            broker.fired("CONN-028")  # it has come already, as it may
        elif not any(isinstance(owed, Expected) and owed.method == "socket.closed" for owed in connection.owed):
            owe_end(broker, connection, "CONN-028")


def second_header(broker: Broker, connection: Connection, event: HeaderEvent) -> None:
    """The octets are read as a frame that is too large (rabbit_reader:handle_input)."""
    octets = event.arguments.get("octets", "").ljust(14, "0")
    size, limit = int(octets[_SIZE], 16), connection.frame_max - 8
    text = f"type {int(octets[:2], 16)}, all octets = <<>>: {{frame_too_large,{size},{limit}}}"
    fail_frame(broker, connection, event, FrameError("CONN-014", 501, text, fatal=True))


def _silence(broker: Broker, connection: Connection, now: float) -> None:
    """The client sends no more heartbeats: after two intervals the broker may hang up, after three it must have.

    rabbit_heartbeat:start_heartbeat_receiver looks once an interval, and wants to have seen nothing new twice. Before
    the connection is open there are no heartbeats; there the handshake has its time.
    """
    if connection.state is ConnectionState.OPEN and connection.heartbeat:
        interval = float(connection.heartbeat)
        # there were heartbeats up to now, which are not recorded
        connection.heard = max(connection.heard, now - interval)
        owe_end(broker, connection, "CONN-022", patience=3 * interval, not_before=2 * interval)
    elif connection.state.in_handshake and broker.dialect.handshake_timeout is not None:
        owe_end(broker, connection, "CONN-029", patience=broker.dialect.handshake_timeout)
