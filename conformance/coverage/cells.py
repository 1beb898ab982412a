"""The cells: which one a command visits, and which there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from amqpspec.conformance.coverage.columns import GROUPS
from amqpspec.conformance.coverage.rows import EVERY_GROUP, GROUPS_OF, METHODS
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.basic.publish import routes_of

#: Only where basic.qos can limit a whole channel.
_SHARED = frozenset({"shared limit with room", "shared limit used up"})
_ACTIVE, _PRIORITIES, _REPLIES = ("x-single-active-consumer",), ("x-max-priority",), ("direct_reply_to",)
#: A column or a part of a row that needs an extension: any of these; (): it is RabbitMQ's alone.
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "quorum": (),
    "stream": ("streams",),
    "single active consumer": _ACTIVE,
    "active alone": _ACTIVE,
    "active and waiting": _ACTIVE,
    "priorities": _PRIORITIES,
    "of a priority": _PRIORITIES,
    "of a priority above the maximum": _PRIORITIES,
    "full": ("x-max-length", "x-max-length-bytes"),
    "a request": _REPLIES,
    "to an address of replies": _REPLIES,
    "replies": _REPLIES,
    "confirms": ("publisher_confirms",),
    "confirm.select": ("publisher_confirms",),
    "basic.nack": ("basic.nack",),
}

#: What cannot be: there is no queue, or no priority of it.
_IMPOSSIBLE = frozenset(
    (row, "no queue")
    for row in ("queue.declare again", "basic.publish of a priority", "basic.publish of a priority above the maximum")
)


class Cell(NamedTuple):
    #: a method, with its arguments where these make a difference
    row: str
    group: str
    column: str

    def __str__(self) -> str:
        return f"{self.row}: {self.column}"


def cells_of(broker: Broker, event: TraceEvent) -> Iterator[Cell]:
    """The cells that are visited if the frame is sent to a broker in that state; none where no row has it."""
    if not isinstance(event, Method) or event.name not in METHODS:
        return
    channel = broker.open_channel(event)
    if channel is None:
        return
    queue = _queue(broker, channel, event)
    _, variant = METHODS[event.name]
    row = _row(event.name, variant(event.arguments, event, queue))
    for group in _groups(event.name, row):
        column = GROUPS[group][1](broker, channel, queue)
        if column is not None:
            yield Cell(row, group, column)


def all_cells(dialects: Collection[Dialect]) -> Iterator[Cell]:
    """The cells that brokers of one of these dialects can be in."""
    shared = any(each.channel_prefetch for each in dialects)
    extended = any(each.extensions for each in dialects)
    absent = {part for part, needs in _NEEDS.items()
              if not extended and not any(each.has(name) for each in dialects for name in needs)}  # fmt: skip
    absent |= set() if shared else _SHARED
    for method, (variants, _) in METHODS.items():
        for variant in variants:
            if not absent.isdisjoint((method, variant)):
                continue
            row = _row(method, variant)
            for group in _groups(method, row):
                for column in GROUPS[group][0]:
                    if column not in absent and (row, column) not in _IMPOSSIBLE:
                        yield Cell(row, group, column)


def _row(method: str, variant: str) -> str:
    return f"{method} {variant}" if variant else method


def _groups(method: str, row: str) -> tuple[str, ...]:
    return GROUPS_OF.get(row) or GROUPS_OF.get(method) or EVERY_GROUP


def _queue(broker: Broker, channel: Channel, method: Method) -> Queue | None:
    """The queue that it is about: which it names, or its exchange leads to, else of the delivery or consumer that it
    names, else of what the channel has.
    """
    arguments = method.arguments
    if method.name == "basic.publish":
        return _destination(broker, method)
    if "queue" in arguments:
        return broker.queues.get(arguments["queue"] or channel.last_queue or "")
    entry = channel.unacknowledged.get(arguments.get("delivery_tag", 0))
    if entry is not None:
        return entry.queue
    consumer = channel.consumers.get(arguments.get("consumer_tag", ""))
    if consumer is not None:
        return consumer.queue
    held = next(iter(channel.unacknowledged.values()), None)
    consuming = next(iter(channel.consumers.values()), None)
    return held.queue if held is not None else consuming.queue if consuming is not None else None


def _destination(broker: Broker, method: Method) -> Queue | None:
    """The first one, where there are several."""
    exchange, key = method.arguments.get("exchange", ""), method.arguments.get("routing_key", "")
    if not exchange:
        return broker.queues.get(key)
    known = broker.exchanges.get(exchange)
    if known is None or method.content is None:
        return None
    return next(iter(routes_of(broker, known, key, method.content).queues), None)
