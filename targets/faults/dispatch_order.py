"""Faults of the order in which a queue hands out messages that have priorities (PRIORITY-003, QUORUM-005)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.message_order import HIGHEST
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

DISPATCH_ORDER = Chapter()
on_input, in_broker = DISPATCH_ORDER.on_input, DISPATCH_ORDER.in_broker
Properties = Mapping[str, Any]
_GIVING_BACK = ("basic.nack", "basic.reject", "basic.recover", "basic.recover-async", "channel.close")


def _has_priorities(queue: Queue) -> bool:
    """Is it a classic queue with priorities?"""
    return queue.type is QueueType.CLASSIC and "x-max-priority" in queue.arguments


def _named(message: Message) -> int | None:
    named: int | None = message.content.properties.get("priority")
    return named


def _to_the_end(queue: Queue, message: Message) -> None:
    queue.messages.remove(message)
    queue.messages.append(message)


class _Misread(ServedBroker):
    """Takes messages for others than they are, to find their places."""

    def enqueue(self, queue: Queue, message: Message) -> None:
        right = message.content
        message.content = replace(right, properties=self.misread(queue, right.properties))
        super().enqueue(queue, message)
        message.content = right

    def misread(self, queue: Queue, properties: Properties) -> Properties:
        raise NotImplementedError


# -------------------------------------------------------------------------------------------- classic queues


@in_broker("priority-ignored", "PRIORITY-003", "A classic queue with priorities hands out in order of publishing.")
class PriorityIgnored(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if _has_priorities(queue):
            _to_the_end(queue, message)


@in_broker("priority-newest-first", "PRIORITY-003", "Of one priority, the newest message is handed out first.")
class PriorityNewestFirst(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if _has_priorities(queue):
            queue.messages.remove(message)
            place = sum(1 for other in queue.messages if other.priority > message.priority)
            queue.messages.insert(place, message)


@in_broker("priority-above-maximum-is-none", "PRIORITY-003", "A priority above the queue's maximum counts as none.")
class PriorityAboveMaximumIsNone(_Misread):
    def misread(self, queue: Queue, properties: Properties) -> Properties:
        too_high = _has_priorities(queue) and properties.get("priority", 0) > queue.arguments["x-max-priority"]
        return {**properties, "priority": 0} if too_high else properties


@in_broker("priority-without-asking", "PRIORITY-003", "A classic queue without priorities orders by priority.")
class PriorityWithoutAsking(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if queue.type is QueueType.CLASSIC and not _has_priorities(queue):
            queue.messages.remove(message)
            place = sum(1 for other in queue.messages if (_named(other) or 0) >= (_named(message) or 0))
            queue.messages.insert(place, message)


@on_input(
    "priority-lost-on-requeue",
    "PRIORITY-003",
    "A classic queue puts what is given back among its messages of no priority.",
    *_GIVING_BACK,
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    before = {queue: set(queue.messages) for queue in broker.queues.values()}
    proceed(method)
    for queue, known in before.items():
        for message in [other for other in queue.messages if other not in known]:
            if _has_priorities(queue):
                _to_the_end(queue, message)


# --------------------------------------------------------------------------------------------- quorum queues


@in_broker("quorum-priority-ignored", "QUORUM-005", "A quorum queue hands out its messages in order of publishing.")
class QuorumPriorityIgnored(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if queue.type is QueueType.QUORUM:
            _to_the_end(queue, message)


@in_broker("quorum-priority-none-is-lowest", "QUORUM-005", "A quorum queue takes a message without priority last.")
class QuorumPriorityNoneIsLowest(_Misread):
    def misread(self, queue: Queue, properties: Properties) -> Properties:
        return {"priority": 0, **properties}


@in_broker("quorum-priority-reversed", "QUORUM-005", "A quorum queue hands out the lowest priority first.")
class QuorumPriorityReversed(_Misread):
    def misread(self, queue: Queue, properties: Properties) -> Properties:
        if queue.type is not QueueType.QUORUM or "priority" not in properties:
            return properties
        return {**properties, "priority": max(HIGHEST - properties["priority"], 0)}


@on_input(
    "quorum-requeue-by-priority",
    "QUORUM-005",
    "A quorum queue sorts what is given back by priority, in place of putting it in front.",
    *_GIVING_BACK,
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    for queue in broker.queues.values():
        if queue.type is QueueType.QUORUM and queue.returned:
            queue.messages = deque(sorted(queue.messages, key=lambda message: -message.priority))
            queue.returned = 0
