"""Who takes part in a soak: queues, publishers and consumers. It follows from seed, dialect and names alone."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.queue_types import QueueType

TRANSIENT, PERSISTENT = 1, 2


class Style(Enum):
    """How a consumer settles."""

    #: each delivery by itself, at once
    SINGLE = "single"
    #: many at a time, with multiple
    MULTIPLE = "multiple"
    #: acknowledges, rejects, gives back, singly and multiple, as it happens
    MIXED = "mixed"
    #: holds hundreds, then acknowledges them one by one
    HOARDING = "hoarding"
    #: asks with basic.get
    GETTING = "getting"
    #: reads a stream
    READING = "reading"


@dataclass(frozen=True, slots=True)
class SoakQueue:
    """`key`: by which it is bound to the exchange of the soak."""

    name: str
    key: str
    type: QueueType
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def is_limited(self) -> bool:
        """Does it refuse what is too much?"""
        return "x-max-length" in self.arguments


@dataclass(frozen=True, slots=True)
class PublisherPlan:
    """`queues`: names of those that a message of it goes to. `window`: publishes that wait for their confirms at most.
    """

    name: str
    exchange: str
    key: str
    queues: tuple[str, ...]
    delivery_mode: int
    window: int


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    name: str
    queue: str
    style: Style
    prefetch: int


@dataclass(frozen=True, slots=True)
class SoakPlan:
    prefix: str
    seed: int
    exchange: str
    #: a fanout exchange, to which one queue of each type is bound
    everywhere: str
    queues: tuple[SoakQueue, ...]
    publishers: tuple[PublisherPlan, ...]
    consumers: tuple[ConsumerPlan, ...]

    def queue(self, name: str) -> SoakQueue:
        return next(each for each in self.queues if each.name == name)


def plan_of(seed: int, dialect: Dialect, prefix: str, types: tuple[QueueType, ...] = ()) -> SoakPlan:
    """The plan. `types`: of queues; (): all that the dialect has."""
    chosen = random.Random(f"plan {seed}")
    types = types or (tuple(QueueType) if dialect.extensions else (QueueType.CLASSIC,))
    exchange, everywhere = f"{prefix}-x", f"{prefix}-fanout"
    queues = [SoakQueue(f"{prefix}-{type.value}", type.value, type, _arguments(type)) for type in types]
    main = list(queues)
    if dialect.extensions and QueueType.CLASSIC in types:
        limit = {"x-max-length": chosen.choice((20, 50, 100)), "x-overflow": "reject-publish"}
        queues.append(SoakQueue(f"{prefix}-limited", "limited", QueueType.CLASSIC, limit))
    publishers: list[PublisherPlan] = []
    consumers: list[ConsumerPlan] = []

    def publisher(exchange: str, key: str, names: tuple[str, ...], mode: int = PERSISTENT) -> None:
        window = chosen.choice((10, 50, 200))
        publishers.append(PublisherPlan(f"p{len(publishers) + 1}", exchange, key, names, mode, window))

    def consumer(queue: SoakQueue, style: Style, *prefetches: int) -> None:
        prefetch = chosen.choice(prefetches)
        consumers.append(ConsumerPlan(f"c{len(consumers) + 1}", queue.name, style, prefetch))

    for queue in queues:
        publisher(exchange, queue.key, (queue.name,))
        if queue.type is QueueType.STREAM:
            consumer(queue, Style.READING, 10, 100)
            consumer(queue, Style.READING, 300)
            continue
        consumer(queue, Style.MIXED, 5, 20, 50)
        if queue not in main:
            continue
        publisher("", queue.name, (queue.name,))
        consumer(queue, Style.SINGLE, 1, 10)
        consumer(queue, Style.MULTIPLE, 50, 200)
        consumer(queue, Style.HOARDING, 500, 1000)
        consumer(queue, Style.GETTING, 0)
        if queue.type is QueueType.CLASSIC:
            publisher(exchange, queue.key, (queue.name,), TRANSIENT)
    if len(main) > 1:
        publisher(everywhere, "", tuple(queue.name for queue in main))
    return SoakPlan(prefix, seed, exchange, everywhere, tuple(queues), tuple(publishers), tuple(consumers))


def _arguments(type: QueueType) -> dict[str, Any]:
    return {} if type is QueueType.CLASSIC else {"x-queue-type": type.value}
