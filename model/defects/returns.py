"""Known defects (`model.defects.transitions`) of what is given back to a quorum queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.internal_events import Teardown
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects.delivery_inputs import DELIVERY_EVENTS, DELIVERY_METHODS, brings_deliveries
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import delivery_limit, was_dropped_at_limit
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.inputs import process

NAME = "returns beyond the delivery limit"


@dataclass(slots=True)
class ReturnsMemory:
    #: how many of a consumer's deliveries were dropped when it gave them back
    dropped: dict[Consumer, int] = field(default_factory=dict)


class ReturnsBeyondLimit(Guest):
    """Matters where a quorum queue has a delivery limit."""

    name = NAME

    def new_memory(self) -> ReturnsMemory:
        return ReturnsMemory()

    def queue_declared(self, broker: Broker, queue: Queue) -> None:
        if queue.type is QueueType.QUORUM and delivery_limit(broker, queue) is not None:
            arm(broker, NAME)

    def deliveries_given_back(self, broker: Broker, queue: Queue, entries: Sequence[Unacknowledged]) -> None:
        for entry in entries:
            if entry.consumer in queue.consumers and was_dropped_at_limit(entry.message):
                dropped = broker.remembered(NAME).dropped
                dropped[entry.consumer] = dropped.get(entry.consumer, 0) + 1

    @once_awake
    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        broker.remembered(NAME).dropped.pop(consumer, None)

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        for consumer in queue.consumers:
            broker.remembered(NAME).dropped.pop(consumer, None)

    def fingerprint(self, broker: Broker) -> object:
        dropped = broker.remembered(NAME).dropped
        return tuple(sorted((consumer.channel, consumer.tag, many) for consumer, many in dropped.items()))


def _memory(broker: Broker) -> ReturnsMemory:
    memory: ReturnsMemory = broker.remembered(NAME)
    return memory


def _credited_twice(broker: Broker, event: Method | Teardown) -> Iterator[Consumer]:
    """The consumers with a limit whose delivery the input gives back once too often, one time for each of these."""
    channel = broker.open_channel(event)
    if channel is None:
        return
    if isinstance(event, Teardown) or not event.arguments.get("requeue"):
        return
    everything = event.name.startswith("basic.recover")
    for tag in list(channel.unacknowledged) if everything else tags_meant(channel, event):
        entry = channel.unacknowledged[tag]
        consumer = entry.consumer
        if consumer is not None and consumer.prefetch and consumer in entry.queue.consumers and _goes(broker, entry):
            yield consumer


def _goes(broker: Broker, entry: Unacknowledged) -> bool:
    queue = entry.queue
    if queue.deleted or queue.type is not QueueType.QUORUM:
        return False
    limit = delivery_limit(broker, queue)
    return limit is not None and entry.message.delivery_count + 1 > limit


def _grown(broker: Broker) -> Iterator[Consumer]:
    """Consumers whose limit has grown before, which shows when there is something to deliver to them."""
    for consumer in _memory(broker).dropped:
        channel = broker.channels.get(consumer.channel)
        if consumer.prefetch and channel is not None and channel.consumers.get(consumer.tag) is consumer:
            yield consumer


def _is_credited_twice(broker: Broker, event: Method | Teardown) -> bool:
    if not brings_deliveries(broker, event):
        return False
    return any(True for _ in _grown(broker)) or any(True for _ in _credited_twice(broker, event))


def _credit_twice(broker: Broker, event: Method | Teardown) -> None:
    process(broker, event)
    for consumer in list(_grown(broker)):
        consumer.prefetch += _memory(broker).dropped.pop(consumer)
        broker.refresh(consumer.queue)


RETURN_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="exceeded-limit-gives-room-twice",
        requirement="QOS-006",
        strength=Strength.PROMISED,
        statement="For each message that a consumer gives back beyond the delivery limit its own limit grows by one.",
        source="v3.10.9 rabbit_fifo:return gives credit for all that is returned, and rabbit_fifo:complete gave it"
        " before for what exceeded the limit",
        dialects=("rabbitmq-3",),
        methods=DELIVERY_METHODS,
        internal_events=DELIVERY_EVENTS,
        guest=NAME,
        applies=_is_credited_twice,
        process=_credit_twice,
        # what is handed over beyond the limit while the consumer ends shows when it is delivered again
        shows_within=ANY_NUMBER,
    ),
)
