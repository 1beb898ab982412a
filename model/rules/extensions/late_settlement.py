"""Deliveries that have timed out are settled late: from 4.3 on (area TIMEOUT).

Source: RabbitMQ guide, consumer timeouts. RabbitMQ: rabbit_fifo:maybe_untimeout. What has timed out is no more the
client's: `model.rules.extensions.timeout_cancels_consumer`.

Requirements:

* ACK-007: Double ack. Acking twice is 406. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP
  0-9-1 basic.ack]
* TIMEOUT-016: Acknowledging late brings no consumer back. When all that timed out is acknowledged, together (multiple),
  one by one, or by tx.commit, the consumer of which the client was told that it is gone stays gone: nothing is
  delivered under its tag. Only a broker that announces accept_consumer_cancel_ok may serve it again, when everything is
  settled and never before, as long as the client has not answered and a short time has not passed. In rabbitmq-4.3:
  broken up to 4.3.6: served again. [RabbitMQ guide: consumer cancel notification (the consumption has stopped);
  RabbitMQ guide: consumer timeouts (resumed only after all is settled: of a consumer that there is)]
* TIMEOUT-017: Rejecting late brings no consumer back. As TIMEOUT-016, by late basic.nack or basic.reject with
  requeue=false; nothing becomes of the message, which is in its queue again, or another client's. In rabbitmq-4.3:
  broken up to 4.3.6: served again. [RabbitMQ guide: consumer cancel notification; RabbitMQ guide: consumer timeouts]
* TIMEOUT-018: Giving back late brings no consumer back. As TIMEOUT-016, by late basic.nack or basic.reject with
  requeue=true, or basic.recover. In rabbitmq-4.3: broken up to 4.3.6: may be served again later. [RabbitMQ guide:
  consumer cancel notification; RabbitMQ guide: consumer timeouts]
* TIMEOUT-019: Late settlement is accepted silently. To settle a timed-out tag is no error, alone, with multiple or by
  tx.commit, even if the message was meanwhile delivered to, or acked by, another consumer; it does not settle that
  delivery. With multiple it settles all outstanding deliveries of the channel up to and including that tag, as ever.
  [RabbitMQ guide: consumer timeouts (timed-out messages are settled by the client yet); RabbitMQ guide: consumer
  acknowledgements (multiple: all outstanding tags up to and including it)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, TimedOut
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.rules.basic.settlement import Settled

#: By how the client settles what has timed out, the requirement by which that brings back no consumer.
_GONE_BY = {Outcome.ACKNOWLEDGED: "TIMEOUT-016", Outcome.DISCARDED: "TIMEOUT-017", Outcome.REQUEUED: "TIMEOUT-018"}


def settle_before(broker: Broker, channel: Channel, tags: Sequence[int], held: Settled, ruling: Ruling) -> None:
    """What has timed out of that which the client settles at once: a queue hears of some before what is `held`, of the
    others after it: consumer by consumer (rabbit_channel:foreach_per_queue).
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
    """What a queue hears of after the rest of what is settled at once."""
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

    Its consumer is gone, and stays so when all is settled (TIMEOUT-016, TIMEOUT-017, TIMEOUT-018).
    """
    entry = channel.timed_out.pop(tag)
    channel.note_over(tag, again="ACK-007")
    broker.comes_under(channel, "TIMEOUT-019")
    broker.touch(channel, entry.queue)
    if any(entry.message is held.message for each in broker.channels.values() for held in each.unacknowledged.values()):
        entry.message.reason = "TIMEOUT-019"  # if it comes back from who has it now
    consumer = entry.consumer
    _note_unchanged(entry.queue)
    if consumer is None or entry.queue.deleted or channel.consumers.get(consumer.tag) is not consumer:
        return
    if not any(late.consumer is consumer for late in channel.timed_out.values()):
        consumer.reason = _GONE_BY[ruling.outcome]
        if entry.queue.messages:
            broker.fired(consumer.reason)


def _note_unchanged(queue: Queue) -> None:
    if not queue.deleted and not queue.unproven:
        queue.reason = "TIMEOUT-019"
