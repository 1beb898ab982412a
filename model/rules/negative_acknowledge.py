"""RabbitMQ's extension basic.nack: reject for many (area ACK; guide: consumer acknowledgements)."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.rules.settlement import collect, finish, requeue
from model.rules.stream_settlement import check_stream
from model.state import Channel


def nack(broker: Broker, channel: Channel, frame: Frame) -> None:
    """ACK-014. Whether it counts as a failed delivery is QUORUM-002."""
    if not broker.dialect.extensions:
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    multiple = bool(frame.arguments.get("multiple"))
    settled = collect(broker, channel, frame.arguments.get("delivery_tag", 0), multiple, "ACK-014", "ACK-014")
    check_stream(broker, channel, settled)
    if frame.arguments.get("requeue"):
        requeue(broker, channel, settled, "ACK-014", failed=not broker.dialect.quorum_nack_keeps_count)
    else:
        finish(broker, channel, settled, "ACK-014")
