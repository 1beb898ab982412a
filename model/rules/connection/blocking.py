"""Alarms: what a broker that runs out of memory does to those who publish (CAP-003, CAP-004).

rabbit_reader:publish_received, control_throttle: the first content header that a connection sends during an alarm
blocks it: the broker reads nothing more of it, not even the body that follows, until the alarm is over. A client
with the capability connection.blocked is told. A connection that only consumes is not affected.

Requirements:

* CAP-003: connection.blocked with capability. When a memory/disk alarm is set, a connection that publishes gets
  connection.blocked(reason) if it announced connection.blocked, and connection.unblocked when the alarm is over; a
  connection that only consumes gets none until it publishes. From the content header of that publish on nothing is read
  until then. [rabbit_reader.erl:publish_received, maybe_send_blocked_or_unblocked]
* CAP-004: connection.blocked without capability. Without the capability nothing is sent; the socket is simply not read,
  so even unrelated methods on that connection wait until the alarm clears. [rabbit_reader.erl:control_throttle]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.methods import Table, TraceEvent
from amqpspec.model.protocol.patterns import Anything


def set_alarm(broker: Broker) -> None:
    """Nothing happens until a client publishes."""
    broker.alarm = True


def clear_alarm(broker: Broker) -> None:
    """The alarm is over: blocked connections are read again; those that got connection.blocked get unblocked."""
    broker.alarm = False
    for connection in broker.connections.values():
        if not connection.blocked:
            continue
        connection.blocked = False
        if connection.told_of_block:
            _tell(broker, connection, "connection.unblocked", {})


def hold_back(broker: Broker, connection: Connection, event: TraceEvent) -> bool:
    """Keep the event if it is not processed now, because the broker does not read it, or not all of it: is that so?"""
    if connection.state is not ConnectionState.OPEN or event.name == "socket.abort":
        return False
    if not connection.blocked:
        if not broker.alarm or not _has_content_header(broker, event):
            return False
        _block(broker, connection)
        if event.content is None or not event.content.body:
            return False  # it ends with the header
    connection.held.append(event)
    if event.channel:
        broker.blame(broker.channel(connection.name, event.channel), requirement_of(connection))
    return True


def _has_content_header(broker: Broker, event: TraceEvent) -> bool:
    """Is it a publish, or the content header of one whose frames come one by one?"""
    if event.name != "frame.header":
        return event.name == "basic.publish" and event.content is not None
    channel = broker.channels.get((event.connection, event.channel))
    assembly = channel.assembly if channel is not None else None
    return assembly is not None and assembly.missing is None and assembly.method.name == "basic.publish"


def released(broker: Broker, connection: Connection) -> list[TraceEvent]:
    """What was held of a connection that is read again, to be processed now."""
    if connection.blocked or not connection.held:
        return []
    broker.fired(requirement_of(connection))
    events, connection.held = connection.held, []
    return events


def requirement_of(connection: Connection) -> str:
    """The rule that a blocked connection comes under."""
    return "CAP-003" if _understands(connection) else "CAP-004"


def _block(broker: Broker, connection: Connection) -> None:
    connection.blocked = True
    connection.told_of_block = _understands(connection)
    if connection.told_of_block:
        reason = "low on memory"
        arguments = {"reason": reason if broker.dialect.fixed_reply_texts else Anything(reason)}
        _tell(broker, connection, "connection.blocked", arguments)


def _understands(connection: Connection) -> bool:
    return connection.capabilities.get("connection.blocked") is True


def _tell(broker: Broker, connection: Connection, method: str, arguments: Table) -> None:
    connection.owed.append(Expected(method, arguments, ("CAP-003",), counted=broker.bookkeeping.counting))
    broker.debtors[(connection.name, 0)] = None


def blocked_by_others(broker: Broker, event: TraceEvent) -> bool:
    """Is this a connection.blocked for an alarm that no operator of ours has raised?

    A broker that runs short of memory or disk may tell every client that wants to hear it, at any time. What it does
    with their publishes then says nothing about it.
    """
    connection = broker.connections.get(event.connection)
    return connection is not None and not broker.alarm and not connection.blocked and _understands(connection)
