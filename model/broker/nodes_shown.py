"""What deliveries and confirms show of the requirements of clusters (area CLUSTER).

* CLUSTER-001: Leader change keeps consumers. Quorum consumers continue after leader election; in-flight deliveries may
  be repeated (redelivered=true), never lost. [rabbit_fifo:state_enter leader; rabbit test suite quorum_queue_SUITE]

Requirements:

* CLUSTER-001: Leader change keeps consumers. Quorum consumers continue after leader election; in-flight deliveries may
  be repeated (redelivered=true), never lost. [rabbit_fifo:state_enter leader; rabbit test suite quorum_queue_SUITE]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType

#: The requirements of the area.
FOLLOWED, RESENT, GIVEN_UP, UNANIMOUS, ANY_NODE = (f"CLUSTER-00{number}" for number in range(1, 6))
NEXT_ACTIVE, RETURNED, TIMED_ANEW, MOVED = (f"CLUSTER-00{number}" for number in range(6, 10))
CANCELLED, NOT_FOUND, BACK, MIRRORED, PROMOTED = (f"CLUSTER-01{number}" for number in range(5))


def shown_by_delivery(
    broker: BrokerState, channel: Channel, queue: Queue, message: Message, consumer: Consumer | None
) -> Iterator[str]:
    if _is_elsewhere(queue, channel):
        yield ANY_NODE
    if queue.led_anew_by and consumer is not None and consumer.created < queue.led_anew_at:
        yield queue.led_anew_by
    if queue.has_lost_active and consumer is queue.active.consumer:
        queue.has_lost_active = False
        yield NEXT_ACTIVE
    if message.was_lost and message.redelivered:
        message.was_lost = False
        yield RETURNED
    if queue.has_come_back and message.survived_by:
        yield BACK
    if queue.led_anew_by == PROMOTED and message.stored_by and message.stamp < queue.led_anew_at:
        yield MIRRORED
    if message.redelivered and queue.open_by and queue.type is QueueType.QUORUM and broker.failed:
        yield GIVEN_UP


def shown_by_confirm(channel: Channel, copies: Iterable[tuple[Queue, Message]]) -> Iterator[str]:
    for queue, message in copies:
        if _is_elsewhere(queue, channel):
            yield ANY_NODE
        if message.position in queue.behind:
            yield MIRRORED
        elif queue.led_anew_by in (FOLLOWED, MOVED):
            yield RESENT if queue.led_anew_by == FOLLOWED else queue.led_anew_by


def _is_elsewhere(queue: Queue, channel: Channel) -> bool:
    """Is the queue, or its leader, at another node than the client?"""
    return queue.node not in (0, node_of(channel.connection)) and queue.type is not QueueType.STREAM
