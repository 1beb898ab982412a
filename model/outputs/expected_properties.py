"""What properties the deliveries of a message have: those published, and the headers that its queue type adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import Int64


def expected_properties(broker: Broker, queue: Queue, message: Message, by_get: bool) -> Mapping[str, Any]:
    """The properties as published, and the headers that the queue type adds."""
    if queue.type is QueueType.CLASSIC:
        return message.content.properties
    added: dict[str, Any] = {}
    properties = message.content.properties
    if queue.type is QueueType.STREAM:
        added["x-stream-offset"] = Int64(message.position)
        if broker.dialect.stream_names_delivery_mode and properties.get("delivery_mode") != 2:
            properties = {**properties, "delivery_mode": 1}
    else:
        dialect = broker.dialect
        # what a dead letter brings along shows until it is given back (rabbit_fifo_client:add_delivery_count_header)
        count = message.delivery_count or message.failures
        acquired = message.acquired_count or message.failures
        if count or (by_get and dialect.quorum_count_on_first_get):
            added["x-delivery-count"] = Int64(count)
        if acquired and dialect.quorum_acquired_count:
            added["x-acquired-count"] = Int64(acquired)
    if not added:
        return properties
    return {**properties, "headers": {**properties.get("headers", {}), **added}}
