"""How many messages and consumers RabbitMQ says a queue has (rabbit_queue_type:stat, asked by queue.declare).

rabbit_fifo:query_stat gives the size of its map of consumers. In there is whoever has unsettled deliveries, cancelled
consumers and basic.get as well, and the waiting ones of a single-active-consumer queue are not. After 250 ms
rabbit_quorum_queue:stat gives up, and says 0 and 0. rabbit_stream_queue:stat never counts consumers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.dispatch import rests, service_is_unknown
from amqpspec.model.broker.effects import CountsTold
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.model.protocol.patterns import between, matches

NAME = "queue counts"

HOLDERS_COUNTED = "quorum-consumer-count"
TIMED_OUT_COUNTED = "timed-out-consumer-counted"
COUNTS_GIVEN_UP = "late-counts-are-zero"
STREAM_CONSUMERS_NOT_COUNTED = "stream-consumer-count"

#: Seconds that a quorum queue has to tell its numbers.
COUNTING_SECONDS = 0.25

_COUNTS = ("message_count", "consumer_count")


@dataclass(slots=True)
class CountsMemory:
    #: quorum queues: holders of deliveries that settled them and may still be counted
    settling: dict[Queue, int] = field(default_factory=dict)
    #: queues that told no numbers, or may have told none, as they took too long
    untold: dict[Queue, None] = field(default_factory=dict)
    #: the declare-ok that has just come is one that may tell nothing
    is_given_up: bool = False


@dataclass(frozen=True, slots=True)
class CountsToldAsKnown(CountsTold):
    """declare-ok of a queue whose consumers are counted otherwise, by a known defect: so many."""

    defect: str
    consumers: Any
    #: when it was asked (of `TraceEvent.time`), where it may take too long to tell
    asked: float

    def __call__(self, broker: Broker, arguments: Table) -> None:
        memory, queue = _memory(broker), self.queue
        if memory.is_given_up:
            memory.untold[queue] = None
            return
        memory.untold.pop(queue, None)
        known = broker.holders(queue) if queue.type is QueueType.QUORUM else None
        holders = known or 0
        counted = len(queue.consumers) + holders
        if holders and queue.single_active_consumer:
            # who counts holders does not count those who wait to become active
            counted = max(len(queue.consumers), min(len(queue.consumers), 1) + holders)
        if arguments["consumer_count"] <= places(broker, queue, known)[1]:
            memory.settling.pop(queue, None)
        broker.counts_seen(queue, arguments, counted)


class QueueCounts(Guest):
    """Knows what a queue says of itself, beside what is true."""

    name = NAME

    def new_memory(self) -> CountsMemory:
        return CountsMemory()

    def counts_owed(self, broker: Broker, channel: Channel, queue: Queue, method: Method) -> None:
        owed = channel.owed[-1]
        assert isinstance(owed, Expected)
        if queue.type is QueueType.QUORUM:
            settling = broker.remembered(NAME).settling.get(queue, 0)
            counted, most = places(broker, queue)
            # a stalled one may count a consumer that is gone (closed-consumer-keeps-messages)
            is_unknown = service_is_unknown(broker, queue)  # it may count one that is gone
            consumers = between(0 if is_unknown else counted, most + queue.still_counted + settling + is_unknown)
            is_known = len(queue.present_consumers) == len(queue.consumers)
            name = HOLDERS_COUNTED if is_known else TIMED_OUT_COUNTED
            told = CountsToldAsKnown(queue, name, consumers, method.time)
        elif queue.type is QueueType.STREAM and queue.consumers:
            told = CountsToldAsKnown(queue, STREAM_CONSUMERS_NOT_COUNTED, 0, NEVER)
        else:
            return
        owed.effect = told  # the frame has been owed just now, and no other state has it yet

    def debt_paid(self, broker: Broker, holder: Channel | Connection, expected: Expected, method: Method) -> None:
        told = expected.effect
        if not isinstance(told, CountsToldAsKnown):
            return
        broker.remembered(NAME).is_given_up = _is_given_up(told, method)
        count = method.arguments.get("consumer_count")
        is_right = matches(expected.arguments["consumer_count"], count)
        if expected.counted and is_right and not matches(told.consumers, count):
            broker.bookkeeping.refuted.add(told.defect)

    def deliveries_settled(
        self, broker: Broker, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], requirement: str
    ) -> None:
        for _, entry in settled:
            _settle(broker, entry.queue, 1)

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        _settle(broker, entry.queue, 1)

    def deliveries_taken_back(self, broker: Broker, queue: Queue, many: int) -> None:
        _settle(broker, queue, many)

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        memory: CountsMemory = broker.remembered(NAME)
        memory.settling.pop(queue, None)
        memory.untold.pop(queue, None)

    def fingerprint(self, broker: Broker) -> object:
        memory: CountsMemory = broker.remembered(NAME)
        return (
            tuple(sorted((queue.name, many) for queue, many in memory.settling.items())),
            tuple(sorted(queue.name for queue in memory.untold)),
        )


def _memory(broker: Broker) -> CountsMemory:
    memory: CountsMemory = broker.remembered(NAME)
    return memory


def _settle(broker: Broker, queue: Queue, many: int) -> None:
    if queue.type is QueueType.QUORUM and not queue.deleted:
        settling = _memory(broker).settling
        settling[queue] = settling.get(queue, 0) + many


def places(broker: Broker, queue: Queue, holders: int | None = None) -> tuple[int, int]:
    """Least and most that a quorum queue may count as consumers when all is at rest: those that it may serve, and those
    that hold something (`holders`: how many, if that is known).
    """
    late = 0
    counted = len(queue.consumers)
    if queue.single_active_consumer:
        # those that have timed out wait to become active, or may still hold something
        late = sum(rests(broker, each) for each in queue.consumers)
        counted = 1 if late < len(queue.consumers) else 0
    counted += broker.holders(queue) if holders is None else holders
    return counted, counted + late


def untold_queues(broker: Broker) -> list[str]:
    """Names of queues that took too long to tell how much they hold when they were asked last."""
    return [queue.name for queue in _memory(broker).untold]


def _is_given_up(told: CountsToldAsKnown, method: Method) -> bool:
    """Are they the numbers of a queue that was too late to tell its own?"""
    is_none = not method.arguments.get("message_count") and not method.arguments.get("consumer_count")
    return is_none and method.time - told.asked >= COUNTING_SECONDS


def _named(mismatch: Mismatch, name: str) -> Mismatches:
    """In answers to a barrier it says nothing: what a sequence is about shows it or does not."""
    return (replace(mismatch, defect=name),) if mismatch.about.counted else ()


def _told(mismatch: Mismatch) -> CountsToldAsKnown | None:
    effect = mismatch.about.effect if isinstance(mismatch.about, Expected) else None
    return effect if isinstance(effect, CountsToldAsKnown) else None


def _counts_otherwise(broker: Broker, method: Method, mismatch: Mismatch, name: str) -> Mismatches | None:
    told = _told(mismatch)
    if told is None or told.defect != name or mismatch.argument != "consumer_count" or _is_given_up(told, method):
        return None
    return _named(mismatch, name) if matches(told.consumers, method.arguments.get("consumer_count")) else None


def _gives_up(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    told = _told(mismatch)
    if told is None or mismatch.argument not in _COUNTS or not _is_given_up(told, method):
        return None
    return _named(mismatch, COUNTS_GIVEN_UP)


COUNT_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=HOLDERS_COUNTED,
        requirement="QUEUE-026",
        strength=Strength.PROMISED,
        statement="A quorum queue counts whoever holds messages of it as a consumer (cancelled consumers, basic.get),"
        " and does not count the waiting consumers of a single-active-consumer queue.",
        source="rabbit_fifo:query_stat, the size of its map of consumers",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        names=lambda broker, method, mismatch: _counts_otherwise(broker, method, mismatch, HOLDERS_COUNTED),
    ),
    OutputDefect(
        name=TIMED_OUT_COUNTED,
        requirement="TIMEOUT-014",
        strength=Strength.PROMISED,
        statement="A consumer of which the client was told by basic.cancel that it is gone is still counted.",
        source="rabbit_fifo:query_stat; rabbit_channel:handle_queue_actions released, which leaves it at its queue",
        dialects=("rabbitmq-4.3",),
        versions=(versions("4.3.0", "4.3.6"),),
        names=lambda broker, method, mismatch: _counts_otherwise(broker, method, mismatch, TIMED_OUT_COUNTED),
    ),
    OutputDefect(
        name=COUNTS_GIVEN_UP,
        requirement="QUEUE-001",
        strength=Strength.PROMISED,
        statement="A quorum queue that has not told its numbers within 250 ms is said to have no messages and no"
        " consumers.",
        source="rabbit_quorum_queue:stat, {ok, 0, 0} for a timeout of rabbit_fifo_client:stat",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        names=_gives_up,
    ),
    OutputDefect(
        name=STREAM_CONSUMERS_NOT_COUNTED,
        requirement="QUEUE-026",
        strength=Strength.PROMISED,
        statement="A stream counts none of its consumers: declare-ok says 0.",
        source="rabbit_stream_queue:stat",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        names=lambda broker, method, mismatch: _counts_otherwise(
            broker, method, mismatch, STREAM_CONSUMERS_NOT_COUNTED
        ),
    ),
)
