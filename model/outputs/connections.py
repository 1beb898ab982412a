"""Frames on channel 0, and the end of the TCP connection.

Requirements:

* CAP-001: Server capabilities table. connection.start capabilities: publisher_confirms, exchange_exchange_bindings,
  basic.nack, consumer_cancel_notify, connection.blocked, consumer_priorities, authentication_failure_close,
  per_consumer_qos, direct_reply_to all true. [rabbit_reader.erl:server_capabilities; RabbitMQ guide: consumer cancel
  notification]
* CHAN-007: Soft and hard error classes. Soft (channel) codes: 311,312(return only),313,403,404,405,406. Hard
  (connection) codes: 320,402,501,502,503,504,505,506,530,540,541. The class-id/method-id of the close are those of the
  offending method, or 0/0 when the failure was not caused by a decoded method. [AMQP 0-9-1 1.1 constants;
  rabbit_framing_amqp_0_9_1:lookup_amqp_exception]
* CONN-001: Protocol header accepted. Sending 8 bytes "AMQP" 0 0 9 1 makes the server answer connection.start with
  version-major 0, version-minor 9, locales "en_US" and a mechanisms list that contains PLAIN and AMQPLAIN (order not
  fixed). In amqp-0-9-1: as stated, with mechanisms and locales of the server's choice. [AMQP 0-9-1 4.2.2;
  rabbit_reader.erl:handshake]
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
* CONN-023: Operator close. rabbitmqctl close_connection/close_all_connections, node stop, and deletion of the vhost or
  the user close with hard code 320, also a connection that an alarm has blocked. In amqp-0-9-1: code 320, with a text
  of the server's choice. [rabbit_reader.erl:handle_other {shutdown,..}; AMQP 0-9-1 class connection]
* CONN-026: Method out of turn in the handshake. Until connection.open-ok only the next step of the handshake is
  accepted, connection.close included. Anything else before tune-ok is the end without a frame; after it, a method on
  channel 0 is hard error 504 and a frame on another channel 505. [rabbit_reader.erl:handle_method0, handle_frame,
  handle_exception]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.outputs.going_on import end_connection_if_clear
from amqpspec.model.outputs.malformed import malformed
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches, unexpected
from amqpspec.model.outputs.replies import is_refused_by, take_expected
from amqpspec.model.promises.capabilities import missing
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import NO_HEARTBEAT, SocketEvent, Table, TraceEvent
from amqpspec.model.rules.connection.blocking import requirement_of
from amqpspec.model.rules.connection.ending import abandon_connection, end_channels, end_connection
from amqpspec.model.rules.connection.handshake import let_in
from amqpspec.model.rules.operator.faults import FORCED, STOPPED
from amqpspec.model.rules.operator.nodes import end_with_node, may_end_with_node

#: Seconds by which clocks may differ, of the two sides and of those who look at them.
CLOCK_TOLERANCE = 0.05


def observe_on_connection(broker: Broker, event: TraceEvent) -> Mismatches:
    connection = broker.connections.get(event.connection)
    if connection is None:
        return unexpected("CONN-001", f"{event.name} on a connection that is not open")
    if connection.state is ConnectionState.FOREIGN:
        return NONE
    if connection.state is ConnectionState.SECURING:
        if event.name != "connection.tune":
            return NONE
        let_in(broker, connection)
    if broker.down_by and (known := _observe_going_down(broker, connection, event)) is not None:
        return known
    if may_end_with_node(broker, connection) and _observe_end_with_node(broker, connection, event):
        return NONE
    if isinstance(event, SocketEvent):
        return _observe_end(broker, connection, event)
    for owed in connection.owed:
        if isinstance(owed, Expected) and owed.method == event.name:
            return _take(broker, connection, owed, event)
    if connection.may_announce_end and event.name == "connection.close":
        if connection.state is ConnectionState.OPEN:
            end_connection(broker, connection)
            connection.may_end = True
        connection.may_announce_end = False
        connection.state = ConnectionState.CLOSING
        return NONE
    if event.name == "connection.close" and _may_end_for_a_channel(broker, connection):
        end_connection_if_clear(broker, event)
        return NONE
    if connection.owed and isinstance(connection.owed[0], Expected):
        return unexpected(connection.owed[0].requirements[0], f"{event.name} in place of {connection.owed[0].method}")
    if event.name == "connection.close":
        # an error that the model wanted on a channel, or none at all
        for channel in broker.channels.values():
            first = channel.owed[0] if channel.owed else None
            if channel.connection != connection.name or not isinstance(first, Expected):
                continue
            if first.counted or is_refused_by(first, event):
                return unexpected(first.requirements[0], f"connection.close in place of {first.method}")
        return unexpected(broker.bookkeeping.reason or "CHAN-007", event.name)
    if event.name in ("connection.blocked", "connection.unblocked"):
        return unexpected(requirement_of(connection), event.name)
    return unexpected("CONN-026" if connection.state.in_handshake else "CONN-019", event.name)


def _observe_going_down(broker: Broker, connection: Connection, event: TraceEvent) -> Mismatches | None:
    """The broker goes down: the connection ends, after a stop perhaps with code 320 before (CONN-023). None: the frame
    has nothing to do with that.
    """
    if isinstance(event, SocketEvent):
        is_open, connection.state = connection.state is ConnectionState.OPEN, ConnectionState.CLOSED
        connection.owed.clear()
        broker.debtors.pop((connection.name, 0), None)
        if is_open and broker.down_by == STOPPED:
            end_channels(broker, connection)
        return NONE
    is_forced = event.name == "connection.close" and event.arguments.get("reply_code") == FORCED
    if not is_forced or broker.down_by != STOPPED or connection.state is not ConnectionState.OPEN:
        return None
    end_channels(broker, connection)
    connection.state = ConnectionState.CLOSING
    connection.may_end = True
    connection.owed.clear()
    broker.debtors.pop((connection.name, 0), None)
    broker.fired("CONN-023")
    return NONE


def _observe_end_with_node(broker: Broker, connection: Connection, event: TraceEvent) -> bool:
    """Its node goes down, or was away: the connection ends, perhaps with code 320 before. Is that what came?"""
    if isinstance(event, SocketEvent):
        end_with_node(broker, connection)
        return True
    if event.name != "connection.close" or event.arguments.get("reply_code") != FORCED:
        return False
    if connection.state is ConnectionState.OPEN:
        end_with_node(broker, connection)
        connection.state = ConnectionState.CLOSING
    return True


def _may_end_for_a_channel(broker: Broker, connection: Connection) -> bool:
    """Does a channel owe a close for what may as well end the connection?"""
    either = broker.dialect.text.any_close
    if not either or connection.owed:
        return False
    first = [each.owed[0] for key, each in broker.channels.items() if key[0] == connection.name and each.owed]
    return any(
        isinstance(owed, Expected) and owed.method == "channel.close" and owed.requirements[0] in either
        for owed in first
    )


def _take(broker: Broker, connection: Connection, owed: Expected, event: TraceEvent) -> Mismatches:
    wrong = take_expected(broker, connection, owed, event)
    if event.name == "connection.close" and connection.state is ConnectionState.OPEN:
        # it was owed while the channels went on
        end_connection(broker, connection)
        connection.state = ConnectionState.CLOSING
        connection.may_end = True
    elif event.name == "connection.start":
        connection.server_properties = event.arguments.get("server_properties", {})
        if broker.dialect.text.cancel_is_advertised:
            connection.server_properties = _with_all_that_it_has(broker, connection.server_properties)
        connection.mechanisms = tuple(str(event.arguments.get("mechanisms", "")).split())
        if event.arguments.get("version_major") == 8:
            connection.state = ConnectionState.FOREIGN
        elif absent := missing(connection.server_properties, broker.dialect):
            detail = f"not advertised: {', '.join(absent)}"
            wrong += (Mismatch("CAP-001", Shape.WRONG_ARGUMENT, detail, False, "all of them true"),)
    elif event.name == "connection.tune":
        connection.offered = {name: event.arguments.get(name, 0) for name in owed.arguments}
    return wrong


def _observe_end(broker: Broker, connection: Connection, event: TraceEvent) -> Mismatches:
    wrong = malformed(event)
    if wrong is not None:
        return (wrong,)
    owed = connection.owed[0] if connection.owed else None
    if event.arguments.get("reason") == NO_HEARTBEAT:
        return unexpected("CONN-022", f"{event.name} as the broker was silent for two heartbeats")
    if isinstance(owed, Expected) and owed.method == "socket.closed" and event.name == "socket.closed":
        if event.time - connection.heard < owed.not_before - CLOCK_TOLERANCE:
            return unexpected(owed.requirements[0], f"{event.name} before its time")
        take_expected(broker, connection, owed, event)
        _end(broker, connection)
        return NONE
    if connection.owed == [] and (connection.may_end or _is_too_late(broker, connection, event)):
        _end(broker, connection)
        return NONE
    if isinstance(owed, Expected):
        return unexpected(owed.requirements[0], f"{event.name} in place of {owed.method}")
    for channel in broker.channels.values():
        first = channel.owed[0] if channel.owed else None
        # what a barrier waits for is not to blame
        if channel.connection == connection.name and isinstance(first, Expected) and first.counted:
            return unexpected(first.requirements[0], f"{event.name} in place of {first.method}")
    return unexpected(broker.bookkeeping.reason or "CONN-020", event.name)


def _is_too_late(broker: Broker, connection: Connection, event: TraceEvent) -> bool:
    """Has the client taken longer for the handshake than the broker allows?"""
    patience = broker.dialect.handshake_timeout
    waited = event.time - connection.began + CLOCK_TOLERANCE
    return connection.state.in_handshake and patience is not None and waited >= patience


def _end(broker: Broker, connection: Connection) -> None:
    """The TCP connection is over, whatever there still was on it."""
    if connection.state is ConnectionState.OPEN:
        abandon_connection(broker, connection)  # no close came: nothing was waited for
    connection.state = ConnectionState.CLOSED
    connection.may_end = True
    connection.owed.clear()
    broker.debtors.pop((connection.name, 0), None)


def _with_all_that_it_has(broker: Broker, server_properties: Table) -> Table:
    """A broker may have what it does not advertise (`Dialect.announced`)."""
    said = server_properties.get("capabilities")
    table = dict(said) if isinstance(said, dict) else {}
    return {**server_properties, "capabilities": {**table, **dict.fromkeys(broker.dialect.announced, True)}}
