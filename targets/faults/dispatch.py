"""Faults of dispatching: which consumer is served (areas SAC and PRIORITY)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from amqpspec.model.broker.dispatch import contenders, highest, priority
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

DISPATCH = Chapter()
on_input, in_broker = DISPATCH.on_input, DISPATCH.in_broker

# -------------------------------------------------------------------------------- priorities and turns


@in_broker("consumer-priority-ignored", "PRIORITY-001", "All consumers of a queue are alike.")
class PriorityIgnored(ServedBroker):
    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        if queue.type is QueueType.STREAM:
            return super().recipients(queue)
        return iter(self.with_room(queue))


@in_broker("consumer-priority-reversed", "PRIORITY-001", "The consumer of the lowest priority is served first.")
class PriorityReversed(ServedBroker):
    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        if queue.type is QueueType.STREAM:
            return super().recipients(queue)
        return iter(sorted(self.with_room(queue), key=priority))


@in_broker("lower-priority-never-served", "PRIORITY-001", "While a higher priority is there the lower gets nothing.")
class LowerNeverServed(ServedBroker):
    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        best = highest(contenders(self, queue))
        return (each for each in super().recipients(queue) if queue.type is QueueType.STREAM or each in best)


@in_broker("full-consumer-holds-up-queue", "PRIORITY-002", "All wait for the consumer whose turn it is to have room.")
class FullConsumerHoldsUp(ServedBroker):
    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        next_ones = [] if queue.type is QueueType.STREAM else highest(contenders(self, queue))
        return super().recipients(queue) if not next_ones or self.has_room(next_ones[0]) else iter(())


@in_broker("newer-consumers-starve", "PRIORITY-002", "The oldest consumer gets everything that it has room for.")
class NewerStarve(ServedBroker):
    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        return iter(sorted(super().recipients(queue), key=lambda consumer: consumer.created))


# ------------------------------------------------------------------------------ the single active consumer


@in_broker("second-active-consumer", "SAC-001", "The messages go to all consumers, though one only may be active.")
class SecondActive(ServedBroker):
    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        if queue.single_active_consumer and queue.consumers and queue.messages:
            queue.active.is_quiescing = False
            queue.active.consumer = queue.consumers[queue.messages[0].position % len(queue.consumers)]
        return super().recipients(queue)


@in_broker("newcomer-becomes-active", "SAC-001", "A new consumer becomes the active one at once.")
class NewcomerActive(ServedBroker):
    def elect(self, queue: Queue, requirement: str) -> None:
        super().elect(queue, requirement)
        if requirement == "SAC-001" and queue.single_active_consumer:
            queue.active.consumer, queue.active.is_quiescing = queue.consumers[-1], False


class _NobodyFollows(ServedBroker):
    #: the end of the active consumer that nobody follows
    after = ""

    def elect(self, queue: Queue, requirement: str) -> None:
        if requirement == self.after and queue.active.consumer not in queue.consumers:
            queue.active.consumer = None
        else:
            super().elect(queue, requirement)


@in_broker("nobody-follows-cancelled", "SAC-002", "When the active consumer is cancelled no other becomes active.")
class NobodyFollowsCancelled(_NobodyFollows):
    after = "SAC-002"


@in_broker("nobody-follows-lost", "SAC-003", "When the active consumer's channel ends no other becomes active.")
class NobodyFollowsLost(_NobodyFollows):
    after = "SAC-003"


@in_broker("newest-follows-cancelled", "SAC-002", "The newest consumer follows the cancelled one.")
class NewestFollows(ServedBroker):
    def elect(self, queue: Queue, requirement: str) -> None:
        was_active = queue.active.consumer in queue.consumers
        super().elect(queue, requirement)
        if requirement == "SAC-002" and not was_active and queue.consumers and queue.single_active_consumer:
            queue.active.consumer = queue.consumers[-1]


@on_input("failover-drops-messages", "SAC-002", "With the active consumer all ready messages go.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    if consumer is not None and consumer.queue.active.consumer is consumer:
        broker.remove_ready(consumer.queue, "SAC-002")
    proceed(method)


@on_input(
    "lost-messages-come-last", "SAC-003", "What a lost active consumer held comes behind the rest.", "channel.close"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    consumers = channel.consumers.values()
    left = {consumer.queue: None for consumer in consumers if consumer.queue.active.consumer is consumer}
    proceed(method)
    for queue in left:
        queue.messages = deque(sorted(queue.messages, key=lambda message: message.redelivered))
        queue.returned = 0


@in_broker("takeover-at-once", "SAC-004", "A consumer of higher priority takes over from one that holds messages.")
class TakeoverAtOnce(ServedBroker):
    def elect(self, queue: Queue, requirement: str) -> None:
        super().elect(queue, requirement)
        if queue.active.is_quiescing:
            queue.active.consumer, queue.active.is_quiescing = highest(queue.consumers)[0], False


@in_broker("takeover-never", "SAC-004", "The active consumer stays, whatever the priority of the others.")
class TakeoverNever(ServedBroker):
    def elect(self, queue: Queue, requirement: str) -> None:
        active = queue.active.consumer
        super().elect(queue, requirement)
        if active in queue.consumers:
            queue.active.consumer, queue.active.is_quiescing = active, False


@in_broker("classic-takeover", "SAC-004", "In a classic queue the one of highest priority takes over as well.")
class ClassicTakeover(ServedBroker):
    def elect(self, queue: Queue, requirement: str) -> None:
        super().elect(queue, requirement)
        if queue.type is QueueType.CLASSIC and queue.single_active_consumer and queue.consumers:
            queue.active.consumer = highest(queue.consumers)[0]
