"""Whom a quorum queue serves next among those with room: rabbit_fifo's `service_queue`.

A consumer with room is put there by its x-priority under its key, unless that key is there already
(rabbit_fifo:maybe_queue_consumer; in 3.10 uniq_queue_in). The key of a cancelled one stays there until it comes to the
front. From 4.0 on a new consumer of its tag has the same key only as long as the former one holds something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.dispatch import priority
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method, Table
from amqpspec.model.rules.basic.requeue import former_consumers
from amqpspec.model.rules.inputs import process

NAME = "service queue"

LEAD_TO_DELIVERIES = (
    "basic.publish", "basic.consume", "basic.ack", "basic.nack", "basic.reject", "basic.recover",
    "basic.recover-async", "basic.cancel", "channel.close", "connection.close", "socket.abort",
)  # fmt: skip


@dataclass(slots=True)
class ServiceMemory:
    #: by queue, channel and tag: the x-priority of the consumer that was cancelled last
    former: dict[Queue, dict[tuple[ChannelKey, str], int]] = field(default_factory=dict)
    #: consumers that may have the place of a former one until they were served once, and that one's x-priority
    misplaced: dict[Consumer, int] = field(default_factory=dict)
    #: consumers that have that place, and their own arguments
    own_arguments: dict[Consumer, Table] = field(default_factory=dict)


class ServiceQueue(Guest):
    """Keeps the places of cancelled consumers. Armed when another one may have such a place."""

    name = NAME

    def new_memory(self) -> ServiceMemory:
        return ServiceMemory()

    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        queue = consumer.queue
        if queue.type is not QueueType.QUORUM or not requirement.startswith("CANCEL"):
            return
        broker.remembered(NAME).former.setdefault(queue, {})[(consumer.channel, consumer.tag)] = priority(consumer)

    @once_awake
    def consumer_added(self, broker: Broker, consumer: Consumer) -> None:
        memory: ServiceMemory = broker.remembered(NAME)
        former = memory.former.get(consumer.queue, {}).pop((consumer.channel, consumer.tag), None)
        if former is None or former == priority(consumer) or consumer.queue.single_active_consumer:
            return
        if former_consumers(broker, consumer) or not broker.dialect.lost_consumers_by_creation:
            memory.misplaced[consumer] = former
            arm(broker, NAME)

    @once_awake
    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        """From now on it has its own place."""
        memory: ServiceMemory = broker.remembered(NAME)
        if consumer is None or not (memory.misplaced or memory.own_arguments):
            return
        memory.misplaced.pop(consumer, None)
        if consumer in memory.own_arguments:
            consumer.arguments = memory.own_arguments.pop(consumer)

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        broker.remembered(NAME).former.pop(queue, None)

    @once_awake
    def channel_ended(self, broker: Broker, channel: Channel) -> None:
        memory: ServiceMemory = broker.remembered(NAME)
        for consumer in [*memory.misplaced, *memory.own_arguments]:
            if consumer.channel == channel.key:
                memory.misplaced.pop(consumer, None)
                memory.own_arguments.pop(consumer, None)

    def fingerprint(self, broker: Broker) -> object:
        memory: ServiceMemory = broker.remembered(NAME)
        former = sorted((queue.name, sorted(each.items())) for queue, each in memory.former.items() if each)
        misplaced = [(each.channel, each.tag, place) for each, place in memory.misplaced.items()]
        moved = [(each.channel, each.tag, priority(each)) for each in memory.own_arguments]
        return repr((former, sorted(misplaced), sorted(moved))) if former or misplaced or moved else ()


def _memory(broker: Broker) -> ServiceMemory:
    memory: ServiceMemory = broker.remembered(NAME)
    return memory


def is_misplaced(broker: Broker, consumer: Consumer) -> bool:
    """May it have the place of a former one?"""
    return NAME in broker.memories and consumer in _memory(broker).misplaced


def _misplaced(broker: Broker) -> Iterator[Consumer]:
    misplaced = _memory(broker).misplaced
    for queue in broker.queues.values() if misplaced else ():
        yield from (consumer for consumer in queue.consumers if consumer in misplaced)


def _may_be_misplaced(broker: Broker, method: Method) -> bool:
    if NAME not in broker.memories:
        return False
    if any(True for _ in _misplaced(broker)):
        return True
    if method.name != "basic.consume":
        return False
    key = ((method.connection, method.channel), method.arguments.get("consumer_tag"))
    return any(key in former for former in _memory(broker).former.values())


def _keep_place(broker: Broker, method: Method) -> None:
    memory = _memory(broker)
    for is_before in (True, False):
        for consumer in list(_misplaced(broker)):
            memory.own_arguments[consumer] = consumer.arguments
            consumer.arguments = {**consumer.arguments, "x-priority": memory.misplaced.pop(consumer)}
            broker.refresh(consumer.queue)
        if is_before:
            process(broker, method)


SERVICE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reused-tag-keeps-place",
        requirement="PRIORITY-001",
        strength=Strength.CONVENTIONAL,
        statement="A quorum queue's consumer with the tag of a cancelled one has that one's place among those to be"
        " served, by its x-priority, until it was served once.",
        source="rabbit_fifo:maybe_queue_consumer, in 3.10 uniq_queue_in: the key of the cancelled one is still in"
        " service_queue; in 4.0 and 4.3 only if that one still holds messages",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=LEAD_TO_DELIVERIES,
        guest=NAME,
        begins_with=("basic.consume",),
        applies=_may_be_misplaced,
        process=_keep_place,
    ),
)
