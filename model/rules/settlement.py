"""Settling deliveries: which ones a tag means, shared by ack, reject and nack (area ACK).

rabbit_channel:collect_acks. Seed: RabbitMQ guide, consumer acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.broker import Broker
from model.errors import ProtocolError
from model.rules.requeue import give_back, return_order
from model.state import Channel, Queue, QueueType, Unacknowledged

Settled = list[tuple[int, Unacknowledged]]


def collect(broker: Broker, channel: Channel, tag: int, multiple: bool, single: str, several: str) -> Settled:
    """Take off the channel's unacknowledged deliveries what `tag` means, oldest first.

    `single` and `several` are the requirements for one and for many. ACK-003: tag 0 with `multiple` is everything,
    and may be nothing. Anything else must be outstanding (ACK-005, ACK-006, ACK-007, ACK-008).
    """
    unacknowledged = channel.unacknowledged
    if multiple and tag == 0:
        tags = list(unacknowledged)
        requirement = "ACK-003" if several == "ACK-002" else several
        if not tags:
            requirement = "ACK-003" if several == "ACK-002" else "ACK-004"
        broker.fired(requirement)
    elif tag not in unacknowledged:
        raise ProtocolError(_unknown(broker, channel, tag, multiple), 406, f"unknown delivery tag {tag}")
    elif multiple:
        tags = [other for other in unacknowledged if other <= tag]
        requirement = several
        if len(tags) > 1:
            broker.fired(several)
        if len(tags) < tag - (min(tags) - 1):
            broker.fired("ACK-009")
    else:
        tags = [tag]
        requirement = single
        broker.fired(single)
    channel.reason = requirement
    settled: Settled = []
    for other in tags:
        entry = broker.release(channel, other, requirement)
        if entry.consumer is not None and entry.consumer.tag not in channel.consumers:
            broker.fired("ACK-011")
        if entry.queue.deleted:
            broker.fired("ACK-012")
        settled.append((other, entry))
    return settled


def _unknown(broker: Broker, channel: Channel, tag: int, multiple: bool) -> str:
    """Which requirement forbids this tag."""
    if tag == 0:
        return "ACK-005"
    if tag > 2**62:
        return "ACK-022"
    if multiple:
        return "ACK-008"
    if tag in channel.recovered:
        return "RECOVER-004"
    if tag in channel.automatic:
        return "CONSUME-013"
    if tag in channel.settled:
        return "ACK-007"
    if any(tag in other.unacknowledged for other in broker.channels.values()):
        return "ACK-010"
    return "ACK-006"


def by_queue(settled: Iterable[tuple[int, Unacknowledged]]) -> dict[Queue, Settled]:
    grouped: dict[Queue, Settled] = {}
    for item in settled:
        grouped.setdefault(item[1].queue, []).append(item)
    return grouped


def finish(broker: Broker, channel: Channel, settled: Settled, requirement: str) -> None:
    """The messages are settled for good: acknowledged, or discarded."""
    for _, entry in settled:
        if entry.queue.type is not QueueType.STREAM:
            broker.drop(entry.queue, entry.message, requirement)
    for queue in {entry.queue: None for _, entry in settled}:
        broker.touch(channel, queue)
        broker.refresh(queue)


def requeue(broker: Broker, channel: Channel, settled: Settled, requirement: str, *, failed: bool) -> None:
    """The messages go back to their queues; on a stream only the credit does (ACK-021)."""
    for queue, entries in by_queue(settled).items():
        broker.touch(channel, queue)
        if queue.type is QueueType.STREAM:
            broker.refresh(queue)
        else:
            give_back(broker, queue, return_order(queue, entries), requirement, failed=failed)
