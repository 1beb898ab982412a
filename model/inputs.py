"""Processing an input: which rule a client's frame comes under, and what happens to frames that no rule admits."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.rules import RULES
from model.rules.closing import fail
from model.rules.connection import connection_input
from model.state import Channel, ChannelState, Connection, ConnectionState


def process(broker: Broker, frame: Frame) -> None:
    """Process one client frame; the state changes at once. Never raises for anything that a client can send."""
    broker.stamp += 1
    connection = broker.connections.get(frame.connection)
    if connection is None:
        connection = broker.connections[frame.connection] = Connection(frame.connection)
    if frame.channel == 0:
        connection_input(broker, connection, frame)
        return
    if connection.state is not ConnectionState.OPEN:
        return  # whatever follows a close is ignored (0-9-1 section 1.4.2.8)
    channel = broker.channel(frame.connection, frame.channel)
    try:
        if channel.state is not ChannelState.OPEN and not _admitted(broker, channel, frame):
            return
        rule = RULES.get(frame.method)
        if rule is None:
            raise ProtocolError("CHAN-011", 503, "unimplemented method")
        rule(broker, channel, frame)
    except ProtocolError as error:
        fail(broker, channel, frame, error)


def _admitted(broker: Broker, channel: Channel, frame: Frame) -> bool:
    """May this method be processed on a channel that is not open?"""
    if channel.state is ChannelState.CLOSING:
        if frame.method == "channel.open":
            raise ProtocolError("CHAN-006", 504, "second 'channel.open' seen")
        if frame.method in ("channel.close", "channel.close-ok"):
            return True
        broker.fired("CHAN-005")
        return False
    if frame.method != "channel.open":
        raise ProtocolError("CHAN-001", 504, "expected 'channel.open'")
    return True
