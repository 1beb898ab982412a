"""Exclusive consumers of quorum queues and streams.

RabbitMQ hands the flag of basic.consume on to the queue type. Classic queues act on it (rabbit_amqqueue_process:
check_exclusive_access); in rabbit_quorum_queue:consume and rabbit_stream_queue:consume exclusive_consume only enters
the metrics. A queue that has not refused one consumer refuses none from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.channel_limiter import limiter_of
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process

NAME = "exclusive consumers"


@dataclass(slots=True)
class ExclusiveConsumersMemory:
    #: queues that were seen not to act on the flag
    ignoring: dict[Queue, None] = field(default_factory=dict)


class ExclusiveConsumers(Guest):
    """Knows the queues that take further consumers beside an exclusive one."""

    name = NAME

    def new_memory(self) -> ExclusiveConsumersMemory:
        return ExclusiveConsumersMemory()

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        broker.remembered(NAME).ignoring.pop(queue, None)

    @once_awake
    def heeds_exclusive(self, broker: Broker, queue: Queue) -> bool | None:
        return False if queue in broker.remembered(NAME).ignoring else None

    def fingerprint(self, broker: Broker) -> object:
        return tuple(sorted(queue.name for queue in broker.remembered(NAME).ignoring))


def _memory(broker: Broker) -> ExclusiveConsumersMemory:
    memory: ExclusiveConsumersMemory = broker.remembered(NAME)
    return memory


def _consumes_exclusively_beside(broker: Broker, method: Method) -> Queue | None:
    """The queue that would have to refuse it, and was not seen before not to."""
    channel = broker.open_channel(method)
    if channel is None:
        return None
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is QueueType.CLASSIC or not queue.consumers:
        return None
    is_exclusive = method.arguments.get("exclusive") or any(consumer.exclusive for consumer in queue.consumers)
    return queue if is_exclusive and queue not in _memory(broker).ignoring else None


def _consume_all_the_same(broker: Broker, method: Method) -> None:
    queue = _consumes_exclusively_beside(broker, method)
    if queue is not None:
        _memory(broker).ignoring[queue] = None
    # a limit that RabbitMQ has lifted (QOS-010) does not stand in the way of it either
    channel = broker.channels[(method.connection, method.channel)]
    limiter = limiter_of(broker, channel)
    limiter.is_followed |= not limiter.limit
    process(broker, method)
    broker.fired("CONSUME-008")


EXCLUSIVE_CONSUMER_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="exclusive-consumer-ignored",
        requirement="CONSUME-008",
        strength=Strength.PROMISED,
        statement="Quorum queues and streams take the exclusive flag of basic.consume and do not act on it.",
        source="rabbit_quorum_queue:consume, rabbit_stream_queue:consume (exclusive_consume only enters the metrics)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.consume",),
        applies=lambda broker, method: _consumes_exclusively_beside(broker, method) is not None,
        process=_consume_all_the_same,
        shows_within=ANY_NUMBER,  # where its connection breaks at once, what it was handed shows later
    ),
)
