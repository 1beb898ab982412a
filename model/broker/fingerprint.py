"""A value that is equal for equal states: to merge explanations, and to know states that the explorer has seen.

How a record is seen follows from the types of its fields and from what each is said to be (`model.broker.field_kinds`):
for each class the code is made once, when the first one is seen. Who adds a field to a record has nothing to do here.

* A record that something else holds is referred to by its name (`REFERENCES`); any other is seen with all its fields.
* Dictionaries and sets are seen without their order, lists with it.
* A field with a view is seen as the function of that name has it, which is given the whole record (`VIEWS`).

Requirements:

* CANCEL-001: Client cancel. basic.cancel is answered by cancel-ok; after cancel-ok no basic.deliver with that tag is
  sent. [RabbitMQ guide: consumer cancel notification; rabbit_channel.erl:cancel_consumer comment; AMQP 0-9-1
  basic.cancel]
* CONFIRM-012: Confirm survives queue deletion. If a target queue is deleted while confirms are pending, the messages
  are confirmed all the same: acked or, as no queue has them any more, nacked. [rabbit_channel.erl:handle_eol acks;
  rabbit_fifo_client:enqueue ({error, {shutdown, delete}} on registering) makes it a nack; guide on confirms: basic.nack
  is for what the broker could not handle]
* SAC-003: Failover on channel close. Unacked messages of the closed channel are delivered first to the next consumer,
  redelivered=true. [rabbit test suite single_active_consumer_SUITE]
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.broker_state import PREDECLARED_EXCHANGES, TRACE_EXCHANGE
from amqpspec.model.broker.channels import Channel, Lost, TimedOut
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.dispatch import priority, service_is_unknown
from amqpspec.model.broker.effects import DeletionAnswered
from amqpspec.model.broker.field_kinds import is_compared, view_of
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import CHOSEN_TAG, ActiveConsumer, Consumer, Exchange, Message, Queue
from amqpspec.model.broker.routing import Routes
from amqpspec.model.promises.queue_types import QueueType

#: Gives what is compared of a record of the broker's.
View = Callable[[Any, Broker], Hashable]

#: What stands for a record in those that refer to it, as source text.
REFERENCES: dict[type, str] = {
    Queue: "({0}.name, {0}.deleted)",
    Consumer: "({0}.channel, {0}.tag)",
}


#: Fields of the broker in which states that are much alike differ most often, the cheapest to look at first.
_TELLING = ("channels", "queues")


def fingerprint(broker: Broker) -> Hashable:
    """Everything that can make a difference to what is permitted later; nothing that only words failures."""
    return view_as(type(broker))(broker, broker)


def parts_of_fingerprint(broker: Broker) -> tuple[View, ...]:
    """Views that are all equal exactly where fingerprints are: who compares them one after another can stop at a
    difference.
    """
    record = type(broker)
    parts = _PARTS.get(record)
    if parts is None:
        rest = frozenset(each.name for each in fields(record)).difference(_TELLING)
        only = [frozenset({name}) for name in _TELLING]
        parts = _PARTS[record] = tuple([_make(record, "", each) for each in (*only, rest)])
    return parts


_PARTS: dict[type, tuple[View, ...]] = {}


# --------------------------------------------------------------------------------------------- fields with views


def _connections(broker: Broker, _: Broker) -> Hashable:
    return _all_by_key(broker.connections, view_as(Connection), broker)


def _channels(broker: Broker, _: Broker) -> Hashable:
    return _all_by_key(broker.channels, view_as(Channel), broker)


def _queues(broker: Broker, _: Broker) -> Hashable:
    return _all_by_key(broker.queues, view_as(Queue), broker), _held_groups(broker)


def _held_groups(broker: Broker) -> Hashable:
    """Groups in transit of what clients hold: a classic queue puts what comes back among those that it came with."""
    held: dict[Queue, list[Message]] = {}
    for key in sorted(broker.channels):
        for entry in broker.channels[key].unacknowledged.values():
            if entry.queue.type is QueueType.CLASSIC and not entry.queue.deleted:
                held.setdefault(entry.queue, []).append(entry.message)
    found = []
    for queue in sorted(held, key=_queue_name):
        groups = Counter([each.transit_group for each in (*queue.messages, *held[queue])])
        places = {message.transit_group: place for place, message in enumerate(queue.messages)}
        present = queue.transit_group if queue.unproven else None
        shared: dict[int, int] = {}
        for place, message in enumerate(held[queue]):
            group = message.transit_group
            if group == present or groups[group] > 1:
                number = shared.setdefault(group, len(shared))
                found.append((queue.name, place, number, group == present, places.get(group, -1)))
    return tuple(found)


def _queue_name(queue: Queue) -> str:
    return queue.name


def _exchanges(broker: Broker, _: Broker) -> Hashable:
    known = {
        name: each
        for name, each in broker.exchanges.items()
        if each.bindings or (name not in PREDECLARED_EXCHANGES and name != TRACE_EXCHANGE)
    }
    return _all_by_key(known, view_as(Exchange), broker) if known else ()


def _all_by_key(records: Mapping[Any, Any], view: View, broker: Broker) -> Hashable:
    return tuple([view(records[key], broker) for key in sorted(records)])


def _not_before(broker: Broker, _: Broker) -> Hashable:
    """It is over when that moment is."""
    return broker.not_before if broker.not_before > broker.latest else 0.0


def _bindings(exchange: Exchange, _: Broker) -> Hashable:
    return tuple(
        sorted([(each.to_exchange, each.destination, each.routing_key, each.identity) for each in exchange.bindings])
    )


def _reached(routes: Routes, _: Broker) -> Hashable:
    return tuple([(queue.name, queue.deleted) for queue in routes.queues])


def _perhaps(routes: Routes, _: Broker) -> Hashable:
    return tuple([(queue.name, queue.deleted) for queue in routes.perhaps])


def _own_consumers(channel: Channel, broker: Broker) -> Hashable:
    return _all_by_key(channel.consumers, view_as(Consumer), broker)


def _limit(channel: Channel, _: Broker) -> Hashable:
    """Nothing is left of a limit that is none any more."""
    return (channel.counted_below_tag, channel.under_way, channel.counts_anew) if channel.channel_prefetch else None


def _oldest(channel: Channel, _: Broker) -> Hashable:
    """Of what is delivered later, the time begins later."""
    for entry in channel.unacknowledged.values():
        if entry.deadline is not None:
            return channel.oldest_tag, channel.oldest_by, channel.oldest_since
    return None


def _unconfirmed(channel: Channel, _: Broker) -> Hashable:
    """Where the copies of a message are makes no difference to its confirm, unless a queue is gone (CONFIRM-012)."""
    return tuple(
        [
            (
                number,
                any(message.refused_by for _, message in copies),
                any(queue.deleted or queue.open_by for queue, _ in copies),
            )
            for number, copies in channel.unconfirmed.items()
        ]
    )


def _effect(expected: Expected, _: Broker) -> Hashable:
    """The frame says what follows from it, but for who is told of a deletion."""
    return expected.effect.tags if isinstance(expected.effect, DeletionAnswered) else None


def _timed_out(channel: Channel, broker: Broker) -> Hashable:
    """In the order in which it was noticed: what that has shown differs."""
    see = view_as(TimedOut)
    return tuple([(tag, see(late, broker)) for tag, late in channel.timed_out.items()])


def _leaving(channel: Channel, broker: Broker) -> Hashable:
    """Those that are gone, and what may be under way to each."""
    see = view_as(Consumer)
    return tuple(
        [
            (see(each, broker), _under_way(each, broker))
            for _, each in sorted(channel.may_still_be_served.items(), key=lambda item: item[0])
        ]
    )


def _dropped_at_deletion(queue: Queue, broker: Broker) -> Hashable:
    see = view_as(Message)
    return tuple([see(message, broker) for message in queue.dropped_at_deletion])


def _under_way(consumer: Consumer, broker: Broker) -> Hashable:
    see = view_as(Message)
    queue = consumer.queue
    dropped = [message for message in queue.dropped_at_deletion if message.stamp == consumer.stamp]
    return tuple([see(message, broker) for message in [*dropped, *queue.log]])


def _position_limit(get: PendingGet, broker: Broker) -> Hashable:
    """Else it says no more than which of the messages have been published later: of those that clients hold as well,
    which may come back.
    """
    queue, limit = get.queue, get.position_limit
    if queue.dropping:
        return limit
    held = [
        entry.message.position >= limit
        for key in sorted(broker.channels)
        for entry in broker.channels[key].unacknowledged.values()
        if entry.queue is queue
    ]
    return sum(m.position >= limit for m in queue.messages), tuple(held)


def _ready(queue: Queue, broker: Broker) -> Hashable:
    """Groups in transit by the order in which they appear: their numbers only tell them apart."""
    groups: dict[int, int] = {}
    see = view_as(Message, "ready")
    return tuple([(see(each, broker), groups.setdefault(each.transit_group, len(groups))) for each in queue.messages])


def _growing_group(queue: Queue, _: Broker) -> Hashable:
    """The present group goes on growing as long as one of it is on its way."""
    present = queue.transit_group
    growing = [
        (message.transit_group == present) - (message.transit_group == -present) for message in queue.messages
    ]
    return len(queue.unproven), tuple(growing), queue.transit_group_via if growing else None


def _log(queue: Queue, broker: Broker) -> Hashable:
    """The place in it is that of a message, and it does not matter who else has had it."""
    see = view_as(Message, "in a log")
    return tuple([(see(message, broker), message.arrival.value) for message in queue.log])


def _expiry(queue: Queue, _: Broker) -> Hashable:
    if "x-expires" not in queue.in_force:
        return None
    return queue.uses, queue.settled_use, queue.expiring_use, queue.idle_since, queue.idle_by


def _has_timed_out(queue: Queue, _: Broker) -> Hashable:
    """How often makes no difference."""
    return queue.timeouts > 0


def _consumers(queue: Queue, broker: Broker) -> Hashable:
    """Whose turn it is, is nobody's business but the broker's, unless there is an order or one has been overtaken."""
    consumers = queue.consumers
    if queue.single_active_consumer:
        return tuple([(each.channel, each.tag) for each in consumers])
    if len(consumers) == 1 or service_is_unknown(broker, queue):
        return tuple(sorted([(each.channel, each.tag) for each in consumers]))
    waiting = [
        (each.channel, each.tag, priority(each), each.is_doubtful, tuple(sorted(each.overtaken_by)))
        for each in consumers
    ]
    return tuple(sorted(waiting))


def _active(queue: Queue, broker: Broker) -> Hashable:
    if not queue.single_active_consumer:
        return None
    active = queue.active
    return view_as(ActiveConsumer)(active, broker), _before_active(queue), _since_active(queue)


def _before_active(queue: Queue) -> Hashable:
    """What the one before may hold unseen: what is ready and was so then."""
    active = queue.active
    if active.previous is None:
        return None
    return tuple([message.stamp < active.previous_may_hold_before for message in queue.messages])


def _since_active(queue: Queue) -> Hashable:
    """What came back when the one before ended, which is to be served first (SAC-003)."""
    active = queue.active
    if active.consumer is None or active.became_by != "SAC-003":
        return None
    return tuple([message.stamp == active.consumer.stamp for message in queue.messages])


def _follows_lost(active: ActiveConsumer, _: Broker) -> Hashable:
    """What decides is whether what the one before had held is to be served first (SAC-003)."""
    return active.became_by == "SAC-003"


def _previous_active(active: ActiveConsumer, _: Broker) -> Hashable:
    """Which messages it may hold says the view of the queue."""
    previous = active.previous
    return None if previous is None else (previous.channel, previous.tag)


def _deaths(message: Message, _: Broker) -> Hashable:
    return tuple(map(_table, message.deaths))


def _lost(channel: Channel, broker: Broker) -> Hashable:
    """Has each gone back to its queue, and was its consumer announced? They are in no order."""
    see = view_as(Lost)
    told = [
        (
            see(each, broker),
            each.message in each.consumer.queue.messages,
            each.consumer.announced,
        )
        for each in channel.lost
    ]
    return frozenset(Counter(told).items())


def _ended(channel: Channel, _: Broker) -> Hashable:
    """Those of which the client is about to be told; and which tags cannot be one that it is to learn."""
    told = [each.arguments.get("consumer_tag") for each in channel.owed if isinstance(each, Expected)]
    return tuple(
        sorted([
            (tag, by == "CANCEL-001")
            for tag, by in channel.ended_consumers.items()
            if tag in told or tag.startswith(CHOSEN_TAG)
        ])
    )  # fmt: skip


VIEWS: dict[str, View] = {
    view.__name__.removeprefix("_"): view
    for view in (
        _connections, _channels, _queues, _exchanges, _not_before, _bindings, _reached, _perhaps,
        _own_consumers, _limit, _oldest, _unconfirmed, _timed_out, _leaving, _dropped_at_deletion, _position_limit,
        _ready, _growing_group, _log, _expiry, _has_timed_out, _consumers, _active, _follows_lost, _previous_active,
        _deaths, _lost, _ended, _effect,
    )
}  # fmt: skip

# ------------------------------------------------------------------------------------------- the code of records

_MADE: dict[tuple[type, str], View] = {}


def view_as(record: type, way: str = "") -> View:
    """What is compared of such a record, where it is seen in that way."""
    view = _MADE.get((record, way))
    if view is None:
        view = _MADE[(record, way)] = _make(record, way)
    return view


def _make(record: type, way: str, only: frozenset[str] | None = None) -> View:
    """Made of source text: a tuple of all that is compared, or of those fields `only`."""
    hints = get_type_hints(record)
    names: dict[str, Any] = {"table": _table, "by_type": _by_type}
    parts: dict[str, str] = {}
    for each in fields(record):
        if is_compared(each, way) and (only is None or each.name in only):
            value, view = f"it.{each.name}", view_of(each)
            seen = f"{_name(VIEWS[view], names)}(it, broker)" if view else _seen(hints[each.name], value, names)
            if view and get_origin(hints[each.name]) in (dict, list, deque, tuple):
                seen = f"({seen} if {value} else ())"  # of a collection that is empty there is no view
            parts.setdefault(f"view {view}" if view else each.name, seen)
    source = f"def view(it, broker):\n    return ({', '.join(parts.values())},)"
    exec(source, names)
    made: View = names["view"]
    return made


def _seen(kind: Any, value: str, names: dict[str, Any]) -> str:
    """Source text of what is compared of a value of that type, given as source text; `names` gets what that needs."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        kinds = [each for each in arguments if each is not NoneType]
        seen = _seen(kinds[0], value, names) if len(kinds) == 1 else f"by_type({value}, broker)"
        return value if seen == value else f"(None if {value} is None else {seen})"
    if origin in (dict, Mapping, Counter) and arguments[1] is Any:
        return f"(table({value}) if {value} else '')"
    if origin in (dict, Counter):
        pair = ", ".join(_seen(each, name, names) for each, name in zip(arguments, ("k", "v"), strict=True))
        return f"(tuple(sorted([({pair}) for k, v in {value}.items()])) if {value} else ())"
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [_seen(each, f"{value}[{place}]", names) for place, each in enumerate(arguments)]
        is_plain = all(part == f"{value}[{place}]" for place, part in enumerate(parts))
        return value if is_plain else f"({', '.join(parts)},)"
    if origin in (list, tuple, deque, set, frozenset):
        each = _seen(arguments[0], "each", names)
        if origin in (set, frozenset):
            return value if each == "each" and origin is frozenset else f"frozenset([{each} for each in {value}])"
        if each == "each":
            return value if origin is tuple else f"tuple({value})"
        return f"(tuple([{each} for each in {value}]) if {value} else ())"
    if kind in REFERENCES:
        return REFERENCES[kind].format(value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return value if issubclass(kind, StrEnum) else f"{value}._value_"
    if is_dataclass(kind):
        return f"{_name(view_as(kind), names)}({value}, broker)"  # type: ignore[arg-type]
    if kind in (int, float, str, bool, bytes):
        return value
    if kind is Any or kind is object:
        return f"by_type({value}, broker)"
    raise TypeError(f"values of {kind} cannot be compared: say by its declaration what the field is")


def _name(function: View, names: dict[str, Any]) -> str:
    name = f"f{id(function)}"
    names[name] = function
    return name


#: The texts of tables, by their identity: nobody changes a table, and the same one is in many states.
_TEXTS: dict[int, tuple[Mapping[str, Any], str]] = {}
_MOST_TEXTS = 1024


def _table(table: Mapping[str, Any]) -> str:
    """Of names and values of all types, which came over the wire or are patterns."""
    known = _TEXTS.get(id(table))
    if known is None or known[0] is not table:
        if len(_TEXTS) >= _MOST_TEXTS:
            _TEXTS.clear()
        known = _TEXTS[id(table)] = table, repr(sorted(table.items(), key=_first))
    return known[1]


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _by_type(value: Any, broker: Broker) -> Hashable:
    """A value of which only its own type says how it is seen."""
    return (type(value).__name__, view_as(type(value))(value, broker)) if is_dataclass(value) else repr(value)
