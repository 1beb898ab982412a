"""Processing an input: which rule a client's frame comes under, and what happens to frames that no rule admits.

Requirements:

* CHAN-001: Method on a channel that is not open. Any method on an unopened channel id is a HARD error 504.
  [rabbit_channel.erl:handle_method state=starting; AMQP 0-9-1 class channel]
* CHAN-005: After a soft error the channel ignores everything but close/close-ok. After sending channel.close the server
  drops all methods on that channel until channel.close-ok; a crossing client channel.close is answered with close-ok.
  [rabbit_channel.erl:handle_exception; rabbit_reader.erl:handle_frame closing; AMQP 0-9-1 class channel]
* CHAN-006: channel.open before close-ok. channel.open on a channel the server has closed, before sending close-ok, is
  hard error 504. [rabbit_reader.erl:handle_frame]
* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503.
  [rabbit_channel.erl:handle_method catch-all]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import Input, InternalEvent
from amqpspec.model.broker.state import Channel, ChannelState, Connection, ConnectionState, Expected
from amqpspec.model.protocol.errors import FrameError, ProtocolError, SilentEnd
from amqpspec.model.protocol.methods import CONTENT_METHODS, OPERATOR, Frame
from amqpspec.model.rules.connection.assembly import assembled
from amqpspec.model.rules.connection.blocking import is_held, released, requirement_of
from amqpspec.model.rules.connection.closing import abandon_connection, fail, fail_frame
from amqpspec.model.rules.connection.connection import connection_input
from amqpspec.model.rules.connection.frames import SINGLE_FRAMES, admit_channel, frame_input
from amqpspec.model.rules.connection.handshake import handshake_input, refuse_silently
from amqpspec.model.rules.internal_events import come_about
from amqpspec.model.rules.operator.operator import operate
from amqpspec.model.rules.table import RULES
from amqpspec.model.rules.tx.tx import check_not_committing

#: What the client does without a frame that is read.
_NOT_READ = frozenset({"socket.open", "socket.abort", "socket.silence"})


def process(broker: Broker, event: Input, credit: str = "") -> None:
    """Process one input, or what the broker does by itself; the state changes at once. Never raises for anything that a
    client can send.

    What the operator does and `clock.wait` come on the connection `OPERATOR`, which is none. `credit`: `Broker.credit`.
    """
    broker.stamp += 1
    broker.credit = credit
    if isinstance(event, InternalEvent):
        come_about(broker, event)
        return
    frame = event
    if frame.time:
        broker.now = frame.time
        broker.latest = max(broker.latest, frame.time)
        broker.stirred = min(broker.stirred, frame.time)
    if frame.connection == OPERATOR:
        operate(broker, frame)
        for each in list(broker.connections.values()):
            for held in released(broker, each):
                process(broker, held, requirement_of(each))
        return
    connection = broker.connections.get(frame.connection)
    if connection is None:
        connection = broker.connections[frame.connection] = Connection(frame.connection)
    if frame.method != "socket.silence":
        connection.heard = frame.time
    if (broker.alarm or connection.blocked) and is_held(broker, connection, frame):
        return
    if connection.out_of_step and frame.method not in _NOT_READ:
        return
    if frame.channel == 0 and (frame.method not in SINGLE_FRAMES or connection.state is not ConnectionState.OPEN):
        connection_input(broker, connection, frame)
        return
    if connection.state is not ConnectionState.OPEN:
        if connection.state.in_handshake:
            handshake_input(broker, connection, frame)
        return  # whatever follows a close is ignored (0-9-1 section 1.4.2.8)
    try:
        is_single = frame.method in SINGLE_FRAMES
        understood = frame_input(broker, connection, frame) if is_single else frame
        if understood is not None:
            _on_channel(broker, connection, understood, is_single)
    except FrameError as error:
        fail_frame(broker, connection, frame, error)
    except SilentEnd as error:
        abandon_connection(broker, connection)
        refuse_silently(broker, connection, error.requirement)


def _on_channel(broker: Broker, connection: Connection, frame: Frame, is_single: bool) -> None:
    """Raises `FrameError` and `SilentEnd`."""
    channel = broker.channel(frame.connection, frame.channel)
    if channel.state is ChannelState.CLOSED:
        admit_channel(broker, connection, channel)
    begun = channel.assembly
    try:
        if begun is not None or is_single or (frame.content is None and frame.method in CONTENT_METHODS):
            whole = assembled(broker, channel, frame)
            if whole is None:
                return
            frame = whole
        if channel.state is not ChannelState.OPEN and not _admitted(broker, channel, frame):
            return
        rule = RULES.get(frame.method)
        if rule is None:
            raise ProtocolError("CHAN-011", 503, "unimplemented method")
        check_not_committing(broker, channel, frame)
        rule(broker, channel, frame)
    except (FrameError, SilentEnd):
        raise
    except ProtocolError as error:
        fail(broker, channel, frame if begun is None else begun.method, error)


def _admitted(broker: Broker, channel: Channel, frame: Frame) -> bool:
    """May this method be processed on a channel that is not open?"""
    if channel.state is ChannelState.CLOSING:
        if frame.method == "channel.open":
            raise ProtocolError("CHAN-006", 504, "second 'channel.open' seen")
        if frame.method in ("channel.close", "channel.close-ok"):
            return True
        broker.fired("CHAN-005")
        return False
    if frame.method == "channel.open":
        return True
    owed = broker.connections[channel.connection].owed
    if any(isinstance(each, Expected) and each.method == "connection.close" for each in owed):
        # it is for the channel whose error ends the connection (model.rules.connection.closing: break_connection)
        return False
    raise ProtocolError("CHAN-001", 504, "expected 'channel.open'")
