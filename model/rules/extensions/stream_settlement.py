"""RabbitMQ's streams: what settling means where nothing is ever given back (ACK-021, STREAM-006, STREAM-007).

Requirements:

* ACK-012: Ack after queue deletion. Acking a delivery whose queue was deleted is accepted silently; the tag is
  consumed. [rabbit_channel.erl]
* ACK-013: reject. reject(tag,requeue) = nack without multiple; reject(false) drops or dead-letters. In amqp-0-9-1: as
  stated for reject; basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher
  confirms; AMQP 0-9-1 basic.reject]
* ACK-014: nack multiple. nack(tag,true,requeue) applies to all outstanding <= tag; (0,true) to all. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms]
* ACK-021: Reject on a stream. nack/reject on a stream is hard 540 in 3.10; accepted as a credit return from 4.0
  (nothing is requeued). In rabbitmq-3: 540. In rabbitmq-4.0: accepted. In rabbitmq-4.3: accepted.
  [rabbit_stream_queue:settle]
* QOS-004: Window slides on ack. Each ack/nack/reject(false) of a delivery frees one slot; multiple frees several; a
  requeued message may come back to the same consumer. In amqp-0-9-1: as stated; the window is that of the channel and
  basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.qos]
* STREAM-006: Credit granularity. A consumer is handed messages as long as it has fewer unacknowledged ones than its
  prefetch limit, and settling each one, in whatever way, lets one more come. Up to 3.13 a chunk (messages that were
  written together) that was begun is handed over whole, beyond the limit if it is longer, and the excess counts; what
  begins a chunk waits for credit. In rabbitmq-3: whole chunks. In rabbitmq-4.0: one by one. In rabbitmq-4.3: one by
  one. [rabbit_stream_queue:stream_entries, settle; osiris_writer:handle_batch]
* STREAM-007: Recover on a stream. basic.recover and basic.recover-async settle a stream's deliveries as acknowledging
  does: their credit returns, reading goes on, and nothing is delivered again. In rabbitmq-3: hard 541, INTERNAL_ERROR.
  [rabbit_stream_queue:settle; rabbit_channel:internal_requeue]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.transaction import Outcome, Ruling
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.rules.basic.requeue import by_consumer, give_back, return_order
from amqpspec.model.rules.basic.settlement import Settled
from amqpspec.model.rules.common.lookup import queue_text
from amqpspec.model.rules.extensions.dead_letter import discard_message


def check_rejected(broker: Broker, channel: Channel, settled: Settled, ruling: Ruling) -> None:
    """ACK-021: nack and reject are refused with 540, or taken as a return of credit (rabbit_stream_queue:settle)."""
    of_streams = [entry for _, entry in settled if _is_of_stream(entry)]
    if of_streams and not broker.dialect.stream_reject:
        first = min((entry.queue.name for entry in of_streams), key=str.encode)
        is_requeued = ruling.outcome is Outcome.REQUEUED
        _hold_again(broker, channel, settled, first, requeue=is_requeued, failed=ruling.failed)
        where = queue_text(broker, channel, first)
        raise ProtocolError("ACK-021", 540, f"basic.nack and basic.reject not supported by stream queues {where}")
    for entry in of_streams:
        broker.fired("ACK-021")
        if entry.consumer is not None:
            entry.consumer.reason = "ACK-021"


def _is_of_stream(entry: Unacknowledged) -> bool:
    """ACK-012: that of a stream that is deleted is settled without anybody being told."""
    return entry.queue.type is QueueType.STREAM and not entry.queue.deleted


def _hold_again(
    broker: Broker,
    channel: Channel,
    settled: Settled,
    first: str,
    *,
    requeue: bool,
    failed: bool,
) -> None:
    """The queues are told one by one in the order of their names (rabbit_channel:foreach_per_queue).

    What the stream's refusal comes before is still held when the connection ends, and goes back to its queue then.
    """
    told: dict[Queue, Settled] = {}
    for tag, entry in settled:
        if entry.queue.name.encode() >= first.encode():
            channel.unacknowledged[tag] = entry
        else:
            told.setdefault(entry.queue, []).append((tag, entry))
    channel.unacknowledged = dict(sorted(channel.unacknowledged.items()))
    counts = not broker.dialect.quorum_nack_has_not_failed
    for queue, entries in told.items():
        broker.touch(channel, queue)
        if requeue:
            give_back(broker, queue, return_order(queue, entries), "ACK-013", failed=counts, holder=channel.key)
        else:
            for _, entry in entries:
                broker.drop(queue, entry.message, "ACK-013")
            for message in by_consumer(entries):
                discard_message(broker, queue, message, channel.key, failed)
        # its consumer has room now, and may be handed more before the channel ends (model.rules.basic.unseen)
        broker.refresh(queue)


def check_recovered(broker: Broker, channel: Channel, settled: Settled) -> None:
    """STREAM-007: recovering deliveries of a stream returns their credit; where nack is refused the channel crashes."""
    of_streams = [entry.queue.name for _, entry in settled if _is_of_stream(entry)]
    if of_streams and not broker.dialect.stream_reject:
        first = min(of_streams, key=str.encode)
        _hold_again(broker, channel, settled, first, requeue=True, failed=True)
        raise ProtocolError("STREAM-007", 541, "", identifiers=(0, 0))


def return_credit(broker: Broker, entries: Sequence[Unacknowledged], requirement: str) -> None:
    """STREAM-006: each settled delivery lets its consumer be handed one more, however it is settled."""
    by_recovery = requirement.startswith("RECOVER")
    returned = Counter(entry.consumer for entry in entries if _is_of_stream(entry) and entry.consumer is not None)
    for consumer, credit in returned.items():
        if by_recovery:
            broker.fired("STREAM-007")
        if requirement not in ("ACK-013", "ACK-014"):
            consumer.reason = "STREAM-007" if by_recovery else "STREAM-006"
        queue = consumer.queue
        was_full = 0 < consumer.prefetch <= consumer.outstanding + credit
        if was_full and consumer.next_offset < len(queue.log) and consumer in queue.consumers:
            broker.fired("STREAM-006")
            if not broker.dialect.stream_serves_chunks:
                broker.fired("QOS-004")
