"""The log of a stream, as far as a client can tell: where its chunks begin, and which message a consumer is owed.

Messages that reach a stream together are written as one chunk (osiris_writer:handle_batch). Where the chunks begin
shows in one thing only: the offset `last` means the last chunk (STREAM-008).

Requirements:

* STREAM-003: Non-destructive, offset header. Reading a stream takes nothing away: every consumer is handed the same
  messages, in the order of the log, also after others have acknowledged them. Deliveries carry x-stream-offset (from 0,
  a long-long-int), and redelivered is always false. [RabbitMQ guide: streams; rabbit_stream_queue:stream_entries]
* STREAM-008: Where an offset begins. x-stream-offset says where reading begins: first (the oldest message), last (the
  last chunk), next (what is published from now on), a number (the message of that offset; beyond the end nothing until
  there is one), a time stamp or an interval back from now (the first chunk written since then). Below 0 is the oldest
  message. [RabbitMQ guide: streams (consuming); rabbit_stream_queue:parse_offset_arg; osiris_log:init_offset_reader]
"""

from __future__ import annotations

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.queues import Arrival, Consumer, Message, Queue


def append(queue: Queue, message: Message, now: float) -> None:
    """A message comes to the end of the log. It begins a chunk if the one before it is known to be written."""
    if not queue.log:
        queue.chunk_starts[0] = True
        queue.log_began = now
    elif queue.log[-1].arrival is Arrival.PROVEN:
        queue.chunk_starts[len(queue.log)] = True
    queue.log.append(message)


def stored(queue: Queue, offset: int) -> None:
    """The message of that offset has been seen to be in the log; so those before it are there as well."""
    if queue.open_by:
        return  # its log is not kept
    while offset >= 0 and queue.log[offset].arrival is not Arrival.PROVEN:
        queue.log[offset].arrival = Arrival.PROVEN
        offset -= 1


def known_chunks(broker: BrokerState) -> tuple[tuple[str, tuple[tuple[int, bool], ...]], ...]:
    """What is known of where chunks begin and do not, by the names of the streams."""
    queues = ((name, queue.chunk_starts) for name, queue in broker.queues.items() if queue.chunk_starts)
    return tuple((name, tuple(sorted(starts.items()))) for name, starts in queues)


def know_no_more_than(broker: BrokerState, other: BrokerState) -> None:
    """Forget where chunks begin, as far as the other state, which is equal otherwise, knows it differently or not."""
    for name, queue in broker.queues.items():
        if queue.chunk_starts:
            known = other.queues[name].chunk_starts
            queue.chunk_starts = {at: begins for at, begins in queue.chunk_starts.items() if known.get(at) is begins}


def begins_at(consumer: Consumer, offset: int) -> bool:
    """May this be the first offset that the consumer is handed?"""
    starts = consumer.queue.chunk_starts
    if not consumer.next_offset <= offset <= consumer.latest_offset:
        return False
    if consumer.next_offset == consumer.latest_offset:
        return True
    if consumer.arguments.get("x-stream-offset") == "last":
        later = range(offset + 1, consumer.latest_offset + 1)
        if any(starts.get(other) for other in later):
            return False
    return starts.get(offset) is not False


def begin_reading_at(consumer: Consumer, offset: int) -> None:
    """The consumer, whose first offset was the broker's choice, was handed this one: it begins a chunk."""
    starts = consumer.queue.chunk_starts
    starts[offset] = True
    if consumer.arguments.get("x-stream-offset") == "last":
        for other in range(offset + 1, consumer.latest_offset + 1):
            starts[other] = False


def first_owed(consumer: Consumer) -> int:
    """The offset that the consumer is handed next, the earliest one if the broker has the choice."""
    for offset in range(consumer.next_offset, consumer.latest_offset):
        if offset < len(consumer.queue.log) and begins_at(consumer, offset):
            return offset
    return consumer.latest_offset


def may_have_begun(consumer: Consumer) -> bool:
    """Is it the broker's choice whether it reads a message that is there, or waits for the next one?"""
    return consumer.next_offset < consumer.latest_offset == len(consumer.queue.log)


def missing_requirement(consumer: Consumer) -> str:
    """What is broken if the consumer is not handed the message that it is owed next."""
    offset = first_owed(consumer)
    if consumer.queue.log[offset].acquired_count:
        return consumer.reason if consumer.has_begun else "STREAM-003"  # others had it before
    if not consumer.has_begun and "x-stream-offset" in consumer.arguments:
        return "STREAM-008"
    return consumer.reason
