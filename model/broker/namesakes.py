"""By which numbers queues know the deliveries that they wait for, and what a number means to a queue of the same name.

A channel tells a queue's process what is settled by the numbers that messages have there, and finds the queue by its
name. A queue that was declared anew under the name of a deleted one counts anew (`model.defects.settling`).

RabbitMQ: classic queues number what they take in (rabbit_variable_queue, `next_seq_id`), and hand a message on without
a number when a consumer waits that does not acknowledge (rabbit_amqqueue_process:attempt_delivery). Those with
priorities do so for each priority (rabbit_priority_queue). Quorum queues count what each consumer was handed, each
basic.get being a consumer of its own (rabbit_fifo). To a stream they are offsets (rabbit_stream_queue).
"""

from __future__ import annotations

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.state import Unacknowledged
from amqpspec.model.promises.queue_types import QueueType


def number(queue: Queue, message: Message) -> None:
    """A classic queue takes the message in."""
    if queue.type is QueueType.CLASSIC:
        kind = _kind(queue, message)
        message.number = queue.numbered.get(kind, 0)
        queue.numbered[kind] = message.number + 1


def number_of(queue: Queue, message: Message, consumer: Consumer | None) -> int:
    """The number of a delivery that is being made."""
    if queue.type is QueueType.CLASSIC:
        return message.number
    return consumer.handed if consumer is not None else 0


def note_unnumbered(broker: BrokerState, queue: Queue, message: Message, consumer: Consumer | None) -> None:
    """A message goes to somebody who does not acknowledge: without a number, if that is at once."""
    if consumer is not None and queue.type is QueueType.CLASSIC and message.stamp == broker.stamp:
        queue.numbered[_kind(queue, message)] -= 1


def means(settled: Unacknowledged, living: Queue, entry: Unacknowledged) -> bool:
    """Does the number of a delivery that a channel settles mean another one, of the queue `living`, there?"""
    if settled.number != entry.number or has_priorities(settled.queue) is not has_priorities(living):
        return False
    if has_priorities(living):
        return settled.message.priority == entry.message.priority
    return living.type is not QueueType.QUORUM or _tag(settled) == _tag(entry)


def has_priorities(queue: Queue) -> bool:
    """Are its numbers pairs: of the priority, and of the number in the queue of that priority?"""
    return queue.type is QueueType.CLASSIC and "x-max-priority" in queue.arguments


def _kind(queue: Queue, message: Message) -> int:
    return message.priority if has_priorities(queue) else 0


def _tag(entry: Unacknowledged) -> str | None:
    return entry.consumer.tag if entry.consumer is not None else None
