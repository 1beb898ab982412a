"""The numbers of a queue that took too long to tell them: none of each (rabbit_quorum_queue:stat, {ok, 0, 0})."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TraceEvent

#: Seconds that a quorum queue has to tell its numbers.
COUNTING_SECONDS = 0.25


def is_late_and_empty(broker: Broker, declare_ok: TraceEvent) -> bool:
    """Does the answer say of a quorum queue that it has nothing, so late that the queue may not have said it?"""
    queue = broker.queues.get(declare_ok.arguments.get("queue", ""))
    if queue is None or queue.type is not QueueType.QUORUM:
        return False
    is_none = not declare_ok.arguments.get("message_count") and not declare_ok.arguments.get("consumer_count")
    return is_none and declare_ok.time - broker.now >= COUNTING_SECONDS
