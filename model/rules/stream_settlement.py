"""RabbitMQ's streams: what settling a delivery means where nothing is ever requeued (ACK-021)."""

from __future__ import annotations

from model.broker import Broker
from model.errors import ProtocolError
from model.queues import QueueType
from model.rules.lookup import queue_text
from model.rules.settlement import Settled
from model.state import Channel


def check_stream(broker: Broker, channel: Channel, settled: Settled) -> None:
    """nack and reject on a stream: refused with 540, or taken as a return of credit (rabbit_stream_queue:settle)."""
    for _, entry in settled:
        if entry.queue.type is not QueueType.STREAM:
            continue
        if not broker.dialect.stream_reject:
            raise ProtocolError(
                "ACK-021",
                540,
                "basic.nack and basic.reject not supported by stream queues "
                f"{queue_text(broker, channel, entry.queue.name)}",
            )
        broker.fired("ACK-021")
        if entry.consumer is not None:
            entry.consumer.reason = "ACK-021"
