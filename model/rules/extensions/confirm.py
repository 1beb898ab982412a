"""RabbitMQ's extension confirm.select (area CONFIRM; guide: publisher confirms)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.state import Channel
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.answer import answer


def select(broker: Broker, channel: Channel, frame: Frame) -> None:
    """CONFIRM-001: repeating it changes nothing. CAP-002: the client need not have said that it understands this."""
    if not broker.dialect.extensions:
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    if channel.transaction is not None:
        raise ProtocolError("CONFIRM-015", 406, "cannot switch from tx to confirm mode")
    if channel.confirming:
        channel.selected_again = channel.published
    channel.confirming = True
    untold = not broker.connections[channel.connection].capabilities.get("publisher_confirms")
    answer(broker, channel, frame, "confirm.select-ok", {}, *(("CAP-002",) if untold else ()), "CONFIRM-001")
