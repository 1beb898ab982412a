"""RabbitMQ's extension basic.nack: reject for many (area ACK; guide: consumer acknowledgements)."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.rules.settlement import Wording, collect, discard, requeue
from model.rules.stream_settlement import check_stream
from model.state import Channel

NACK = Wording(single="ACK-013", several="ACK-014", everything="ACK-014", nothing="ACK-004")


def nack(broker: Broker, channel: Channel, frame: Frame) -> None:
    """ACK-014, and for one delivery the same as reject (ACK-013). Whether it counts as failed is QUORUM-002.

    CAP-002: the client need not have said that he understands it.
    """
    if not broker.dialect.extensions:
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    settled, requirement = collect(broker, channel, frame, NACK)
    check_stream(broker, channel, settled, requeue=bool(frame.arguments.get("requeue")))
    if not broker.connections[channel.connection].capabilities.get("basic.nack"):
        broker.fired("CAP-002")
    if frame.arguments.get("requeue"):
        requeue(broker, channel, settled, requirement, failed=not broker.dialect.quorum_nack_keeps_count)
    else:
        discard(broker, channel, settled, requirement, failed=not broker.dialect.quorum_nack_keeps_count)
