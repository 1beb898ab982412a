"""What of a state is not compared: all that two states may differ in that compare as equal.

Which fields these are follows from what each is said to be where it is declared (`model.broker.field_kinds`); who adds
a field has nothing to do here. Stamps are numbers of inputs: of them only the order is taken.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.field_kinds import Kind, kind_of
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.protocol.methods import TraceEvent

#: Fields that only count what was shown, or that the step which is over has left behind.
_LEFT_OUT = frozenset({"exercised", "refuted", "measurements", "counting", "now"})
#: Fields that hold the number of an input.
_STAMPS = frozenset({"stamp", "created", "led_anew_at"})
#: Fields of the broker whose records are gone through one by one.
_RECORDS = ("channels", "connections", "queues")

#: The order of what is told of a stamp.
_STAMP = "stamp"


def beside(broker: Broker) -> Hashable:
    """Equal for states that differ in nothing at all but in numbers of inputs with the same order."""
    return tuple([value for _, value in told(broker)])


def told(broker: Broker) -> list[tuple[str, Hashable]]:
    """The same, with the names of the fields."""
    found = list(_all(broker))
    stamps = {each: place for place, each in enumerate(sorted({each[1] for each in found if each[0] == _STAMP}))}
    return [(_STAMP, stamps[each[1]]) if each[0] == _STAMP else each for each in found]


def _all(broker: Broker) -> Iterator[tuple[str, Any]]:
    yield from _told(broker)
    yield from _told(broker.bookkeeping)
    for _, connection in sorted(broker.connections.items()):
        yield from _told(connection)
        yield from _records(connection.owed)
    for _, channel in sorted(broker.channels.items()):
        yield from _told(channel)
        yield from _records(channel.owed)
        yield from _records(each for _, each in sorted(channel.consumers.items()))
        yield from _records(each for _, each in sorted(channel.may_still_be_served.items()))
        yield from _records(entry.message for entry in channel.unacknowledged.values())
        yield from _records(late.message for late in channel.timed_out.values())
        for copies in channel.unconfirmed.values():
            yield from _records(message for _, message in copies)
    for _, queue in sorted(broker.queues.items()):
        yield from _told(queue)
        yield from _told(queue.active)
        yield from _records(queue.messages)
        yield from _records(queue.log)
        if queue.policies is not None:
            yield from _told(queue.policies)


def _records(records: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for each in records:
        yield from _told(each)


def _told(record: Any) -> Iterator[tuple[str, Any]]:
    for name in _names(type(record)):
        value = getattr(record, name)
        yield (_STAMP, value) if name in _STAMPS else (name, _plain(value))


@cache
def _names(record: type) -> tuple[str, ...]:
    """The fields of such a record that are not compared, and that do not follow from others."""
    return tuple(each.name for each in fields(record) if _is_beside(record, each))


def _is_beside(record: type, declared: Field[Any]) -> bool:
    if declared.name in _LEFT_OUT or declared.name == "bookkeeping" or declared.name in _RECORDS:
        return False
    if record.__name__ == "Bookkeeping":
        return True
    return kind_of(declared) in (Kind.BLAME, Kind.APART) and declared.type not in ("Dialect",)


def _plain(value: Any) -> Hashable:
    """Records of the state by their names: what is in them is told elsewhere."""
    if value is None or isinstance(value, (str, int, float, bytes, bool, Enum)):
        return value
    if isinstance(value, Queue):
        return value.name, value.deleted
    if isinstance(value, Consumer):
        return value.channel, value.tag
    if isinstance(value, Message):
        return value.content.body, value.reason
    if isinstance(value, (list, tuple, deque)):
        return tuple([_plain(each) for each in value])
    if isinstance(value, (set, frozenset)):
        return frozenset(map(_plain, value))
    if isinstance(value, (dict, Counter)):
        return tuple(sorted([(_plain(key), _plain(each)) for key, each in value.items()], key=repr))
    if isinstance(value, TraceEvent):
        return str(value)
    if is_dataclass(value):
        return (type(value).__name__, *(_plain(getattr(value, each.name)) for each in fields(value)))
    return repr(value)
