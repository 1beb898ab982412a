"""RabbitMQ's streams: what settling means where nothing is ever given back (ACK-021, STREAM-006, STREAM-007).

Requirements:

* ACK-012: Ack after queue deletion. Acking a delivery whose queue was deleted is accepted silently; the tag is
  consumed. [rabbit_channel.erl]
* ACK-021: Reject on a stream. nack/reject on a stream is accepted as a credit return: nothing is requeued. In
  rabbitmq-3: broken up to 3.12: hard 540. [rabbit_stream_queue:settle]
* QOS-004: Window slides on ack. Each ack/nack/reject(false) of a delivery frees one slot; multiple frees several; a
  requeued message may come back to the same consumer. In amqp-0-9-1: as stated; the window is that of the channel and
  basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.qos]
* STREAM-006: Credit granularity. A consumer is handed messages as long as it has fewer unacknowledged ones than its
  prefetch limit, and settling each one, in whatever way, lets one more come. In rabbitmq-3: broken: a chunk (messages
  that were written together) that was begun is handed over whole. [rabbit_stream_queue:stream_entries, settle;
  osiris_writer:handle_batch]
* STREAM-007: Recover on a stream. basic.recover and basic.recover-async settle a stream's deliveries as acknowledging
  does: their credit returns, reading goes on, and nothing is delivered again. In rabbitmq-3: broken up to 3.12: hard
  541. [rabbit_stream_queue:settle; rabbit_channel:handle_method basic.recover_async]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.promises.queue_types import QueueType


def is_of_stream(entry: Unacknowledged) -> bool:
    """ACK-012: that of a stream that is deleted is settled without anybody being told."""
    return entry.queue.type is QueueType.STREAM and not entry.queue.deleted


def return_credit(broker: Broker, entries: Sequence[Unacknowledged], ruling: Ruling, requirement: str) -> None:
    """STREAM-006: each settled delivery lets its consumer be handed one more, however it is settled. ACK-021: so does
    one that is rejected (rabbit_stream_queue:settle).
    """
    returned = Counter(entry.consumer for entry in entries if is_of_stream(entry) and entry.consumer is not None)
    for consumer, credit in returned.items():
        if requirement.startswith("RECOVER"):
            consumer.reason = "STREAM-007"
            broker.fired("STREAM-007")
        elif ruling.outcome is Outcome.ACKNOWLEDGED:
            consumer.reason = "STREAM-006"
        else:
            consumer.reason = "ACK-021"
            broker.fired(*("ACK-021",) * credit)
        queue = consumer.queue
        was_full = 0 < consumer.prefetch <= consumer.outstanding + credit
        if was_full and consumer.next_offset < len(queue.log) and consumer in queue.consumers:
            broker.fired("STREAM-006", "QOS-004")
