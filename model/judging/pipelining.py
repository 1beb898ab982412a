"""Requests sent before the replies to earlier ones have come (CHAN-004, CHAN-019, CONSUME-004/5, CANCEL-005/6,
QOS-014).

Their rules only allow: whatever order the replies come in is right. So what exercises them is the sending.
"""

from __future__ import annotations

from collections.abc import Sequence

from amqpspec.model.broker.broker import Broker, crossed_by_cancel
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Arrival, Queue
from amqpspec.model.protocol.methods import TraceEvent

#: Methods whose replies the channel itself sends, in their order. Those to consume and cancel come from the queue.
ANSWERED_BY_CHANNEL = frozenset(
    {
        "basic.get", "basic.qos", "basic.recover", "channel.flow", "confirm.select", "exchange.bind",
        "exchange.declare", "exchange.delete", "exchange.unbind", "queue.bind", "queue.declare", "queue.delete",
        "queue.purge", "queue.unbind",
    }
)  # fmt: skip


def note_pipelined(broker: Broker, pending: Sequence[TraceEvent], event: TraceEvent) -> None:
    """`event` is being sent while `pending` inputs need not be processed yet; replies may be owed."""
    if event.name == "channel.open":
        if any(other.name == "channel.close" and _on_same_channel(other, event) for other in pending):
            broker.fired("CHAN-004")
        return
    if event.name in ("basic.cancel", "queue.delete"):
        broker.fired(*_crossings(broker, pending, event))
    if event.name == "queue.delete":
        _note_deletion(broker, event)
    if event.name == "basic.qos" and _deliveries_come(broker, pending, event):
        broker.fired("QOS-014")
    if event.name == "basic.consume" and _races_to_be_active(broker, pending, event):
        broker.fired("SAC-005")
    consumed = _unanswered(broker, pending, event, "basic.consume")
    cancelled = _unanswered(broker, pending, event, "basic.cancel")
    tag = event.arguments.get("consumer_tag", "")
    if event.name == "basic.cancel" and tag in consumed:
        broker.fired("CONSUME-005")
    elif event.name == "basic.consume" and tag in cancelled:
        broker.fired("CONSUME-004")
    elif event.name in ANSWERED_BY_CHANNEL and not event.arguments.get("nowait") and (consumed or cancelled):
        broker.fired("CHAN-019")


def _crossings(broker: Broker, pending: Sequence[TraceEvent], event: TraceEvent) -> set[str]:
    """CANCEL-005, CANCEL-006: a consumer that asked to be told is cancelled, and its queue deleted, at one time."""
    other = "queue.delete" if event.name == "basic.cancel" else "basic.cancel"
    pairs = ((event, each) if other == "queue.delete" else (each, event) for each in pending if each.name == other)
    found: set[str] = set()
    for cancel, delete in pairs:
        channel = broker.channels.get((cancel.connection, cancel.channel))
        consumer = None if channel is None else channel.consumers.get(cancel.arguments.get("consumer_tag", ""))
        if consumer is None or not broker.connections[cancel.connection].is_told_of_cancels:
            continue
        if consumer.queue is broker.queues.get(delete.arguments.get("queue", "")):
            found.add(crossed_by_cancel(consumer.queue))
    return found


def _note_deletion(broker: Broker, delete: TraceEvent) -> None:
    """What may yet come to the queue need not be counted, though it comes before the queue is gone."""
    queue = _queue_of(broker, delete)
    if queue is not None:
        on_their_way = (each.position for each in queue.unproven if each.arrival is Arrival.PUBLISHED)
        position = min(on_their_way, default=queue.next_position)
        noted = broker.known_before_deletion
        noted[queue.name] = min(position, noted.get(queue.name, position))


def _races_to_be_active(broker: Broker, pending: Sequence[TraceEvent], event: TraceEvent) -> bool:
    """Is somebody else about to be the first consumer of the queue, which has a single active one?"""
    queue = _queue_of(broker, event)
    if queue is None or not queue.single_active_consumer or queue.consumers:
        return False
    return any(
        other.name == "basic.consume" and not _on_same_channel(other, event) and _queue_of(broker, other) is queue
        for other in pending
    )


def _deliveries_come(broker: Broker, pending: Sequence[TraceEvent], event: TraceEvent) -> bool:
    """Are messages under way to consumers on the frame's channel?"""
    channel = broker.channels.get((event.connection, event.channel))
    queues = {consumer.queue for consumer in channel.consumers.values()} if channel is not None else set()
    keys = {
        other.arguments.get("routing_key", "")
        for other in pending
        if other.name == "basic.publish" and not other.arguments.get("exchange")
    }
    return any(queue in broker.deliverable or queue.name in keys for queue in queues)


def _queue_of(broker: Broker, event: TraceEvent) -> Queue | None:
    channel = broker.channels.get((event.connection, event.channel))
    last = channel.last_queue if channel is not None else None
    return broker.queues.get(event.arguments.get("queue", "") or last or "")


def _on_same_channel(one: TraceEvent, other: TraceEvent) -> bool:
    return (one.connection, one.channel) == (other.connection, other.channel)


def _unanswered(broker: Broker, pending: Sequence[TraceEvent], event: TraceEvent, method: str) -> set[object]:
    """Consumer tags of requests of that method on the frame's channel whose reply is still to come."""
    key = (event.connection, event.channel)
    tags: set[object] = {
        other.arguments.get("consumer_tag", "")
        for other in pending
        if (other.connection, other.channel) == key and other.name == method and not other.arguments.get("nowait")
    }
    channel = broker.channels.get(key)
    if channel is not None:
        for owed in channel.owed:
            if isinstance(owed, Expected) and owed.method == f"{method}-ok":
                tags.add(owed.arguments["consumer_tag"])
    return tags
