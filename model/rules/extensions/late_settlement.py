"""Deliveries that have timed out are settled late: from 4.3 on (area TIMEOUT).

Seed: RabbitMQ guide, consumer timeouts. RabbitMQ: rabbit_fifo:maybe_untimeout. What has timed out is no more the
client's: `model.rules.extensions.consumer_timeout`.

Requirements:

* TIMEOUT-016: Recovery by acknowledging. When all that timed out is acknowledged the consumer is handed messages again,
  under the tag that the basic.cancel named; not before. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-017: Recovery by nack or reject without requeue. As TIMEOUT-016, by late basic.nack or basic.reject with
  requeue=false; nothing becomes of the message, which is in its queue again, or another client's. [RabbitMQ guide:
  consumer timeouts]
* TIMEOUT-018: Recovery by nack, reject or recover with requeue. As TIMEOUT-016, by late basic.nack or basic.reject with
  requeue=true, or basic.recover. In rabbitmq-4.3: the consumer is not served any more. [RabbitMQ guide: consumer
  timeouts; observed otherwise]
* TIMEOUT-019: Late ack is accepted silently. Acking a timed-out tag is no error even if the message was meanwhile
  delivered to, or acked by, another consumer; it does not settle that delivery. [RabbitMQ guide: consumer timeouts]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, TimedOut
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.transaction import Outcome, Ruling
from amqpspec.model.rules.basic.settlement import Settled

#: By how the client settles late, the requirement by which its consumer is served again.
_RECOVERED_BY = {Outcome.DONE: "TIMEOUT-016", Outcome.DISCARDED: "TIMEOUT-017", Outcome.REQUEUED: "TIMEOUT-018"}


def settle_before(broker: Broker, channel: Channel, tags: Sequence[int], held: Settled, ruling: Ruling) -> None:
    """What has timed out of that which the client settles at once: a queue hears of some before what is `held`, of the
    others behind it, by which their consumer may be served again: consumer by consumer
    (rabbit_channel:foreach_per_queue).
    """
    if not channel.timed_out:
        return
    first: dict[Queue, str] = {}
    for _, entry in held:
        name = entry.consumer.tag if entry.consumer is not None else ""
        first[entry.queue] = min(first.get(entry.queue, name), name)
    late = [tag for tag in tags if tag in channel.timed_out]
    _settle_all_late(broker, channel, [tag for tag in late if not _is_behind(channel.timed_out[tag], first)], ruling)


def _is_behind(entry: TimedOut, first: Mapping[Queue, str]) -> bool:
    return entry.consumer is not None and entry.queue in first and first[entry.queue] < entry.consumer.tag


def settle_behind(broker: Broker, channel: Channel, tags: Sequence[int], ruling: Ruling) -> None:
    """What a queue hears of behind the rest of what is settled at once."""
    behind = [tag for tag in tags if tag in channel.timed_out]
    if behind:
        broker.stamp += 1
        _settle_all_late(broker, channel, behind, ruling)


def _settle_all_late(broker: Broker, channel: Channel, tags: Iterable[int], ruling: Ruling) -> None:
    """As many as the client settles at once: by queue and consumer tag (rabbit_channel:foreach_per_queue)."""

    def queue_then_consumer(tag: int) -> tuple[str, bool, str, int]:
        entry = channel.timed_out[tag]
        return entry.queue.name, entry.consumer is not None, entry.consumer.tag if entry.consumer else "", tag

    for tag in sorted(tags, key=queue_then_consumer):
        _settle_late(broker, channel, tag, ruling)


def _settle_late(broker: Broker, channel: Channel, tag: int, ruling: Ruling) -> None:
    """The client settles what has timed out: this has no effect on the message (TIMEOUT-019), which is not the client's
    any more.

    When all that timed out is settled its consumer is served again (TIMEOUT-016, TIMEOUT-017, TIMEOUT-018).
    """
    entry = channel.timed_out.pop(tag)
    channel.settled.append(tag)
    broker.fired("TIMEOUT-019")
    broker.blame(channel, "TIMEOUT-019")
    broker.touch(channel, entry.queue)
    if any(entry.message is held.message for each in broker.channels.values() for held in each.unacknowledged.values()):
        entry.message.reason = "TIMEOUT-019"  # if it comes back from who has it now
    consumer = entry.consumer
    if consumer is None or entry.queue.deleted or channel.consumers.get(consumer.tag) is not consumer:
        _note_unchanged(broker, entry.queue)
        return
    consumer.timed_out -= 1
    requirement = _RECOVERED_BY[ruling.outcome]
    consumer.reason = requirement
    if consumer.timed_out:
        _note_unchanged(broker, entry.queue)
        return
    consumer.stamp = broker.stamp
    consumer.is_doubtful, consumer.overtaken_by = True, frozenset()
    if entry.queue.messages:
        broker.fired(requirement)
    broker.elect(entry.queue, requirement)
    broker.refresh(entry.queue)


def _note_unchanged(broker: Broker, queue: Queue) -> None:
    if not queue.deleted and not queue.unproven:
        queue.reason = "TIMEOUT-019"
