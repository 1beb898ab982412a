"""The model's broker without the doubts that a judge needs: a server knows what it has done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import HISTORY
from amqpspec.model.broker.queues import Arrival, Consumer, Dropping, Message, Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Content
from amqpspec.model.protocol.patterns import AnyMoment


@dataclass(frozen=True, slots=True)
class Publication:
    """A message as it was published, and the names of the queues that it was routed to."""

    exchange: str
    routing_key: str
    content: Content
    queues: tuple[str, ...]


#: Names that it makes up are none of those that a judge makes up for what it has not seen yet.
_FIRST_SERIAL = 10**12


class ServedBroker(Broker):
    """Every message has arrived in its queue at once, so all counts are exact, and no step looks through a queue."""

    is_punctual = True

    def __init__(self, dialect: Dialect, virtual_host: str = "/", own_user: str = "") -> None:
        super().__init__(dialect, virtual_host, own_user)
        self.serial = _FIRST_SERIAL
        self.bookkeeping.counting = False
        #: of faults that have to remember something
        self.memory: dict[Any, Any] = {}
        #: the latest of what was published, where somebody wants to know
        self.publications: deque[Publication] = deque(maxlen=0)
        #: seconds by which its clock is ahead of the day's
        self.ahead: Callable[[], float] = float

    def published(self, pattern: Message, copies: tuple[tuple[Queue, Message], ...]) -> None:
        if self.publications.maxlen:
            names = tuple(queue.name for queue, _ in copies)
            self.publications.append(Publication(pattern.exchange, pattern.routing_key, pattern.content, names))

    def enqueue(self, queue: Queue, message: Message) -> None:
        if message.deaths:
            self._date(message)
        super().enqueue(queue, message)
        self.prove(queue, message)
        if message.deadline is not None:
            message.deadline = message.deadline.begun_by(message.deadline.since)

    def _date(self, message: Message) -> None:
        """The history of the dead letter tells when it died, in seconds."""
        now = (datetime.now(UTC) + timedelta(seconds=self.ahead())).replace(microsecond=0)
        message.deaths = tuple(_dated(death, now) for death in message.deaths)
        properties = message.content.properties
        headers = {**properties["headers"], HISTORY: [_dated(death, now) for death in properties["headers"][HISTORY]]}
        message.content = Content({**properties, "headers": headers}, message.content.body)

    def prove(self, queue: Queue, message: Message, *, by_confirm: bool = False) -> None:
        if message.arrival is not Arrival.PROVEN:
            message.arrival = Arrival.PROVEN
            queue.unproven.pop(message, None)

    def doubt_drop(self, queue: Queue, dropping: Dropping) -> None:
        pass

    def may_begin(self, earliest: int, latest: int) -> tuple[int, int]:
        return earliest, earliest

    def ready_range(self, queue: Queue) -> tuple[int, int]:
        return len(queue.messages), len(queue.messages)

    def remove_consumer(self, consumer: Consumer, requirement: str) -> None:
        super().remove_consumer(consumer, requirement)
        consumer.queue.still_counted = 0

    def cancel(self, consumer: Consumer) -> None:
        """End it as when its queue goes: the client is told if it can take it."""
        self.owe_notice(self.channels[consumer.channel], consumer.tag, "CANCEL-007", "CANCEL-008")
        self.remove_consumer(consumer, "CANCEL-007")

    def forget_connection(self, name: str) -> None:
        """Drop what the model keeps of a connection that is over, also where the model broke down over its end."""
        for queue in self.queues.values():
            for consumer in [each for each in queue.consumers if each.channel[0] == name]:
                queue.consumers.remove(consumer)
                if queue.active.consumer is consumer:
                    queue.active.consumer = None
        self.connections.pop(name, None)
        for key in [key for key in self.channels if key[0] == name]:
            del self.channels[key]
            self.debtors.pop(key, None)
        self.debtors.pop((name, 0), None)


def _dated(death: Any, now: datetime) -> Any:
    is_undated = isinstance(death, dict) and isinstance(death.get("time"), AnyMoment)
    return {**death, "time": now} if is_undated else death
