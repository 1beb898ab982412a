"""What a consumer of a stream is handed up to 3.13: a whole chunk, however few messages its limit allows.

A chunk is what was written together (osiris_writer:handle_batch). rabbit_stream_queue:stream_entries handed out all of
it, from 4.0 on what there is credit for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.outputs.stream_deliveries import BEYOND_LIMIT
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method

NAME = "stream chunks"
DIALECTS = ("rabbitmq-3",)


@dataclass(slots=True)
class ChunkMemory:
    #: who is handed the rest of a chunk just now
    served: Consumer | None = None


class StreamChunks(Guest):
    """Knows whether a chunk that was begun may go on."""

    name = NAME

    def new_memory(self) -> ChunkMemory:
        return ChunkMemory()

    def is_served_beyond_limit(self, broker: Broker, consumer: Consumer) -> bool | None:
        memory: ChunkMemory = broker.remembered(NAME)
        served, memory.served = memory.served, None
        return served is consumer or None

    def may_go_on(self, broker: Broker) -> bool | None:
        """A chunk may, as long as nobody knows where the next one begins."""
        return (broker.dialect.name in DIALECTS and any(True for _ in _at_open_chunks(broker))) or None

    def came_to_rest(self, broker: Broker) -> None:
        """What was not handed out beyond a limit begins a chunk."""
        if broker.dialect.name in DIALECTS:
            for consumer in _at_open_chunks(broker):
                consumer.queue.chunk_starts[consumer.next_offset] = True

    def fingerprint(self, broker: Broker) -> object:
        return None  # it is empty but for a moment


def _memory(broker: Broker) -> ChunkMemory:
    memory: ChunkMemory = broker.remembered(NAME)
    return memory


def _at_open_chunks(broker: Broker) -> Iterator[Consumer]:
    for queue in broker.queues.values():
        for consumer in queue.consumers if queue.type is QueueType.STREAM else ():
            is_full = 0 < consumer.prefetch <= consumer.outstanding and consumer.has_begun
            if is_full and consumer.next_offset < len(queue.log) and consumer.next_offset not in queue.chunk_starts:
                yield consumer


def _serves_rest_of_chunk(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    consumer = mismatch.about
    if mismatch.detail != BEYOND_LIMIT or not isinstance(consumer, Consumer) or broker.dialect.name not in DIALECTS:
        return None
    starts, offset = consumer.queue.chunk_starts, consumer.next_offset
    if not consumer.has_begun or starts.get(offset):
        return None
    starts[offset] = False
    _memory(broker).served = consumer
    return (replace(mismatch, fatal=False, defect="stream-serves-chunks"),)


STREAM_CHUNK_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name="stream-serves-chunks",
        requirement="STREAM-006",
        strength=Strength.PROMISED,
        statement="A consumer of a stream that has begun a chunk (messages that were written together) is handed all of"
        " it, beyond its limit if it is longer. The excess counts.",
        source="v3.10.9 rabbit_stream_queue:stream_entries; mended in 4.0",
        dialects=DIALECTS,
        versions=(versions("3.10.0", "3.13.7"),),
        goes_on=_serves_rest_of_chunk,
        is_observed_again=True,
    ),
)
