"""What follows for the state when the broker has sent a frame that it owed, as the frame's arguments tell it.

Each effect is called with the broker (`model.broker.broker.Broker`, whose step it makes) and the observed arguments.
They are records, and no closures: a copy of the state has to refer to its own queues and consumers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.protocol.methods import ChannelKey, Table


@dataclass(frozen=True, slots=True)
class ConsumerAnnounced:
    """consume-ok: deliveries may follow, and a tag that the broker chose is known."""

    consumer: Consumer

    def __call__(self, broker: Any, arguments: Table) -> None:
        broker.announce_consumer(self.consumer, arguments["consumer_tag"])


@dataclass(frozen=True, slots=True)
class ConsumerOver:
    """cancel-ok, or the broker's own basic.cancel: the consumer is handed nothing more."""

    channel: ChannelKey
    tag: str

    def __call__(self, broker: Any, arguments: Table) -> None:
        broker.nothing_more(self.channel, self.tag)


@dataclass(frozen=True, slots=True)
class DeletionAnswered:
    """delete-ok: now the consumers of that channel are told. `crossing`: see `Expected`."""

    channel: ChannelKey
    tags: tuple[str, ...]
    crossing: str

    def __call__(self, broker: Any, arguments: Table) -> None:
        broker.tell_of_deletion(self.channel, self.tags, self.crossing)


@dataclass(frozen=True, slots=True)
class QueueNamed:
    """declare-ok: the name of a queue that the broker named."""

    queue: Queue

    def __call__(self, broker: Any, arguments: Table) -> None:
        broker.rename_queue(self.queue, arguments["queue"])


@dataclass(frozen=True, slots=True)
class CountsTold:
    """declare-ok: how many messages are ready, and how many consumers there are."""

    queue: Queue

    def __call__(self, broker: Any, arguments: Table) -> None:
        broker.counts_seen(self.queue, arguments)


@dataclass(frozen=True, slots=True)
class Committed:
    """commit-ok: what the transaction published has arrived."""

    channel: ChannelKey

    def __call__(self, broker: Any, arguments: Table) -> None:
        broker.committed(self.channel)


Effect = ConsumerAnnounced | ConsumerOver | DeletionAnswered | QueueNamed | CountsTold | Committed
