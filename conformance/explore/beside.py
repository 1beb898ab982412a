"""What of a state is not compared: all that two states may differ in that compare as equal.

Which fields these are follows from what each is said to be where it is declared (`model.broker.field_kinds`); who adds
a field has nothing to do here. Stamps are numbers of inputs: of them only the order is taken.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any

from amqpspec.model.broker.bookkeeping import Bookkeeping
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.field_kinds import Kind, declared_kind
from amqpspec.model.broker.queues import ActiveConsumer, Consumer, Message, Policies, Queue
from amqpspec.model.protocol.methods import TraceEvent

#: Fields that only count what was shown, or that are alike in all states of a world.
_LEFT_OUT = frozenset(
    {"exercised", "refuted", "measurements", "counting", "now", "dialect", "capabilities", "server_properties",
     "bookkeeping"}
)  # fmt: skip
#: Fields that hold the number of an input.
_STAMPS = frozenset({"stamp", "created", "led_anew_at"})
#: Types of which the values are as they are.
_SCALAR = frozenset({"str", "int", "float", "bool", "bytes", "str | None", "float | None", "range"})

#: Gives the values of a record that are not compared, and adds its stamps to the list.
_Looks = Callable[[Any, list[int]], tuple[Hashable, ...]]


def beside(broker: Broker) -> Hashable:
    """Equal for states that differ in nothing at all but in numbers of inputs with the same order."""
    stamps: list[int] = []
    values = tuple([looks(record, stamps) for looks, record in _records(broker)])
    if not stamps:
        return values
    order = {stamp: place for place, stamp in enumerate(sorted(set(stamps)))}
    return values, tuple([order[stamp] for stamp in stamps])


def differing(one: Broker, other: Broker) -> list[str]:
    """The names of the fields that are not compared and differ."""
    found: dict[str, None] = {}
    for (looks, record), (_, its) in zip(_records(one), _records(other), strict=False):
        names = _names(type(record))
        for name, value, of_other in zip(names, looks(record, []), looks(its, []), strict=False):
            if value != of_other:
                found[f"{type(record).__name__}.{name}"] = None
    return list(found)


def _records(broker: Broker) -> Iterator[tuple[_Looks, Any]]:
    looks = _looks
    yield looks(type(broker)), broker
    yield looks(Bookkeeping), broker.bookkeeping
    of_message, of_consumer = looks(Message), looks(Consumer)
    for _, connection in sorted(broker.connections.items()):
        yield looks(Connection), connection
        for owed in connection.owed:
            yield looks(type(owed)), owed
    for _, channel in sorted(broker.channels.items()):
        yield looks(Channel), channel
        for owed in channel.owed:
            yield looks(type(owed)), owed
        for consumers in (channel.consumers, channel.may_still_be_served):
            for _, each in sorted(consumers.items()):
                yield of_consumer, each
        for entry in channel.unacknowledged.values():
            yield of_message, entry.message
        for late in channel.timed_out.values():
            yield of_message, late.message
        for copies in channel.unconfirmed.values():
            for _, message in copies:
                yield of_message, message
    for _, queue in sorted(broker.queues.items()):
        yield looks(Queue), queue
        yield looks(ActiveConsumer), queue.active
        for messages in (queue.messages, queue.log):
            for message in messages:
                yield of_message, message
        if queue.policies is not None:
            yield looks(Policies), queue.policies


def _names(record: Any) -> tuple[str, ...]:
    """The fields of such a record that are not compared, and that do not follow from others; no stamps."""
    return tuple(each.name for each in fields(record) if _is_beside(record, each) and each.name not in _STAMPS)


def _looks(record: type) -> _Looks:
    made = _LOOKS.get(record)
    if made is None:
        made = _LOOKS[record] = _make_looks(record)
    return made


_LOOKS: dict[type, _Looks] = {}


def _make_looks(record: Any) -> _Looks:
    """Made of source text, as it is called for each record of each state."""
    kinds = {each.name: each.type for each in fields(record)}
    parts = [
        f"it.{name}" if kinds[name] in _SCALAR else f"(plain(it.{name}) if it.{name} else None)"
        for name in _names(record)
    ]
    stamps = [f"    stamps.append(it.{name})" for name in kinds if name in _STAMPS and not issubclass(record, Broker)]
    source = ["def looks(it, stamps):", *stamps, f"    return ({''.join(f'{part}, ' for part in parts)})"]
    names: dict[str, Any] = {"plain": _plain}
    exec("\n".join(source), names)
    made: _Looks = names["looks"]
    return made


def _is_beside(record: type, declared: Field[Any]) -> bool:
    if declared.name in _LEFT_OUT:
        return False
    if record is Bookkeeping:
        return True
    return declared_kind(declared) in (Kind.BLAME, Kind.APART)


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
