"""Queues that serve nobody although somebody waits with room, as known defects left them.

What such a queue does next depends on what happens to wake it. So it owes nothing from then on, and may hand what it
has to anybody. A quorum queue is awake again with the first message that it is seen to hand over: that consumer is its
active one. Which defect it was makes no difference here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dispatch import note_active
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType

NAME = "stalled queues"


@dataclass(slots=True)
class StalledMemory:
    #: the stamp of the input since which each of them serves nobody; 0: some earlier one
    since: dict[Queue, int] = field(default_factory=dict)


class StalledQueues(Guest):
    """Says of such a queue that it owes nothing."""

    name = NAME

    def new_memory(self) -> StalledMemory:
        return StalledMemory()

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        broker.remembered(NAME).since.pop(queue, None)

    @once_awake
    def consumer_chosen(self, broker: Broker, queue: Queue, consumer: Consumer) -> None:
        """A queue that serves its active consumer is awake."""
        if is_stalled(broker, queue) and queue.single_active_consumer and queue.type is QueueType.QUORUM:
            del broker.remembered(NAME).since[queue]
            note_active(queue, consumer)

    @once_awake
    def service_is_unknown(self, broker: Broker, queue: Queue) -> bool | None:
        return queue in broker.remembered(NAME).since or None

    @once_awake
    def serves_nobody(self, broker: Broker, queue: Queue) -> bool | None:
        """What has stalled it cannot have woken it as well."""
        return broker.remembered(NAME).since.get(queue) == broker.stamp or None

    def fingerprint(self, broker: Broker) -> object:
        since = broker.remembered(NAME).since
        return tuple(sorted(queue.name for queue in since)) if since else ()


def _memory(broker: Broker) -> StalledMemory:
    memory: StalledMemory = broker.remembered(NAME)
    return memory


def is_stalled(broker: Broker, queue: Queue) -> bool:
    return NAME in broker.memories and queue in _memory(broker).since


def stall(broker: Broker, queues: Iterable[Queue]) -> None:
    """These serve nobody from now on."""
    for queue in queues:
        _memory(broker).since[queue] = broker.stamp
        broker.refresh(queue)


def stalled_before(broker: Broker, queue: Queue) -> None:
    """The queue was stalled before this input, which may have woken it."""
    _memory(broker).since[queue] = 0
