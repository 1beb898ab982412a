"""Processing an input: which rule a client's frame comes under, and what happens to frames that no rule admits.

Requirements:

* CHAN-001: Method on a channel that is not open. Any method on an unopened channel id is a HARD error 504.
  [rabbit_channel.erl:handle_method state=starting; AMQP 0-9-1 class channel]
* CHAN-005: After a soft error the channel ignores everything but close/close-ok. After sending channel.close the server
  drops all methods on that channel until channel.close-ok; a crossing client channel.close is answered with close-ok.
  [rabbit_channel.erl:handle_exception; rabbit_reader.erl:handle_frame closing; AMQP 0-9-1 class channel]
* CHAN-006: channel.open before close-ok. channel.open on a channel the server has closed, before sending close-ok, is
  hard error 504. [rabbit_reader.erl:handle_frame]
* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503. In
  amqp-0-9-1: an error of the connection, its code is not named. [rabbit_channel.erl:handle_method catch-all]
"""

from __future__ import annotations

from typing import TypeGuard

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.internal_events import Input, InternalEvent
from amqpspec.model.broker.openness import spread
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.errors import FrameError, ProtocolError, SilentEnd
from amqpspec.model.protocol.methods import (
    CONTENT_METHODS,
    ClockWait,
    HeaderEvent,
    Method,
    OperatorAction,
    RawFrame,
    SocketEvent,
    TraceEvent,
)
from amqpspec.model.rules.connection.assembly import assembled
from amqpspec.model.rules.connection.blocking import hold_back, released, requirement_of
from amqpspec.model.rules.connection.closing import fail, fail_frame
from amqpspec.model.rules.connection.connection import closing_input, connection_input, second_header, socket_input
from amqpspec.model.rules.connection.ending import abandon_connection
from amqpspec.model.rules.connection.frames import admit_channel, frame_input
from amqpspec.model.rules.connection.handshake import handshake_input, refuse_silently
from amqpspec.model.rules.internal_events import come_about
from amqpspec.model.rules.operator.operator import operate
from amqpspec.model.rules.other_ways import in_settled_way
from amqpspec.model.rules.table import RULES
from amqpspec.model.rules.tx.tx import check_not_committing


def process(broker: Broker, event: Input, credit: str = "") -> None:
    """Process one input, or what the broker does by itself; the state changes at once. Never raises for anything that a
    client can send.

    `credit`: see `Bookkeeping.credit`.
    """
    broker.stamp += 1
    broker.bookkeeping.credit = credit
    if isinstance(event, InternalEvent):
        come_about(broker, event)
        return
    now = event.time
    if now:
        broker.now = now
        if now > broker.latest:
            broker.latest = now
        if now < broker.busy_since:
            broker.busy_since = now
    if isinstance(event, Method):
        _process_of_client(broker, event)
    elif isinstance(event, OperatorAction):
        operate(broker, event)
        for each in list(broker.connections.values()):
            for held in released(broker, each):
                process(broker, held, requirement_of(each))
    elif not isinstance(event, ClockWait):
        _process_of_client(broker, event)


def _process_of_client(broker: Broker, event: TraceEvent) -> None:
    connection = broker.connections.get(event.connection)
    if connection is None:
        connection = broker.connections[event.connection] = Connection(event.connection)
    if event.name != "socket.silence":
        connection.heard = event.time
    if (broker.alarm or connection.blocked) and hold_back(broker, connection, event):
        return
    if isinstance(event, SocketEvent):
        socket_input(broker, connection, event)
    elif connection.out_of_step:
        return
    elif connection.state is not ConnectionState.OPEN:
        if connection.state.in_handshake:
            handshake_input(broker, connection, event)
        elif isinstance(event, Method) and event.channel == 0:
            closing_input(broker, connection, event)
        # whatever else follows a close is ignored (0-9-1 section 1.4.2.9)
    elif isinstance(event, Method) and event.channel == 0:
        connection_input(broker, connection, event)
    elif isinstance(event, (Method, RawFrame)):
        _frame_input(broker, connection, event)
    elif isinstance(event, HeaderEvent):
        second_header(broker, connection, event)


def _frame_input(broker: Broker, connection: Connection, frame: Method | RawFrame) -> None:
    try:
        understood = frame_input(broker, connection, frame) if isinstance(frame, RawFrame) else frame
        if understood is not None:
            _on_channel(broker, connection, understood)
    except FrameError as error:
        fail_frame(broker, connection, frame, error)
    except SilentEnd as error:
        abandon_connection(broker, connection)
        refuse_silently(broker, connection, error.requirement)


def _on_channel(broker: Broker, connection: Connection, frame: Method | RawFrame) -> None:
    """Raises `FrameError` and `SilentEnd`."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None:
        channel = broker.channel(frame.connection, frame.channel)
    if channel.state is ChannelState.CLOSED:
        admit_channel(broker, connection, channel)
    begun = channel.assembly
    try:
        method = frame if begun is None and _is_whole(frame) else assembled(broker, channel, frame)
        if method is None:
            return
        frame = method
        if channel.state is not ChannelState.OPEN and not _admitted(broker, channel, method):
            return
        rule = RULES.get(method.name)
        if rule is None:
            raise ProtocolError("CHAN-011", 503, "unimplemented method")
        if channel.transaction is not None:
            check_not_committing(broker, channel, method)
        if broker.dialect.text.settled:
            in_settled_way(broker, channel, method, rule)
        else:
            rule(broker, channel, method)
        if broker.has_open:
            spread(broker)
    except (FrameError, SilentEnd):
        raise
    except ProtocolError as error:
        fail(broker, channel, frame if begun is None else begun.method, error)


def _is_whole(frame: Method | RawFrame) -> TypeGuard[Method]:
    return isinstance(frame, Method) and (frame.content is not None or frame.name not in CONTENT_METHODS)


def _admitted(broker: Broker, channel: Channel, method: Method) -> bool:
    """May this method be processed on a channel that is not open?"""
    if channel.state is ChannelState.CLOSING:
        if method.name == "channel.open":
            raise ProtocolError("CHAN-006", 504, "second 'channel.open' seen")
        if method.name in ("channel.close", "channel.close-ok"):
            return True
        broker.fired("CHAN-005")
        return False
    if method.name == "channel.open":
        return True
    owed = broker.connections[channel.connection].owed
    if any(isinstance(each, Expected) and each.method == "connection.close" for each in owed):
        # it is for the channel whose error ends the connection (model.rules.connection.closing: break_connection)
        return False
    raise ProtocolError("CHAN-001", 504, "expected 'channel.open'")
