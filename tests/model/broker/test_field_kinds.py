"""Whatever field of the state's records is changed, the fingerprint is another one, unless its kind says otherwise."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from amqpspec.model.broker import fingerprint as fingerprints
from amqpspec.model.broker.administration import Policy, User
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Admission, Assembly, Channel, ChannelState, Lost, TimedOut, Unacknowledged
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.effects import DeletionAnswered
from amqpspec.model.broker.field_kinds import NOT_COMPARED, declared_kind, view_of
from amqpspec.model.broker.fingerprint import VIEWS, fingerprint
from amqpspec.model.broker.measurement import Due
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import CHOSEN_TAG, Binding, Consumer, Dropping, Exchange, Message, Policies, Queue
from amqpspec.model.broker.routing import Routes
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.broker.transaction import Publication, Transaction
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method


def state() -> tuple[Broker, dict[str, Any]]:
    """A broker in which every field matters, and a record of each class that is seen of it."""
    broker = Broker(dialect_named("rabbitmq-4.3"))
    deadline = Deadline(1.0, 2.0, 3.0)
    content = Content({"priority": 1}, b"m")
    method = Method("a", 1, "basic.publish", {"routing_key": "q"}, True, content, 1.0)
    message = Message(content, "", "q", 3, deadline=deadline)
    message.transit_group, message.stamp = 1, 5
    queue = Queue("q", QueueType.QUORUM, arguments={"x-single-active-consumer": True, "x-expires": 9})
    shared = Queue("p")
    first, second, third = (
        Consumer(tag, ("a", 1), each, False, 1) for tag, each in (("s", queue), ("t", shared), ("u", shared))
    )
    gone = Consumer("gone", ("a", 1), queue, False, 1)
    queue.active.consumer, queue.active.previous, queue.active.became_by = first, gone, "SAC-003"
    queue.active.previous_may_hold_before = message.stamp
    queue.consumers, shared.consumers = [first], [second, third]
    queue.messages, queue.log = deque([message]), [Message(content, "", "q", 1)]
    queue.unproven = {message: None}
    dropping = Dropping(Message(content, "", "q", 1), Message(content, "", "q", 2))
    queue.dropping = [dropping]
    publication = Publication(Message(content, "", "q", 0), Routes({queue: "PUBLISH-002"}, perhaps=(queue,)), False)
    ruling = Ruling(Outcome.ACKNOWLEDGED)
    effect = DeletionAnswered(("a", 1), ("t",), "")
    expected = Expected("basic.return", {"reply_code": 312}, (), content=content, due=Due("R", deadline), effect=effect)
    get = PendingGet(queue, False, 4)
    lost = Lost(gone, Message(content, "", "q", 1), Message(content, "", "q", 1))
    channel = broker.channels[("a", 1)] = Channel(
        "a", 1, ChannelState.OPEN,
        consumers={"s": first, "t": second, "u": third}, channel_prefetch=1,
        unacknowledged={1: Unacknowledged(Message(content, "", "q", 1), queue, first, deadline=deadline)},
        timed_out={2: TimedOut(queue, first, message)}, owed=[expected, get], lost=[lost],
        unconfirmed={1: ((queue, message),)}, transaction=Transaction([publication], [(ruling, (1,))]),
        assembly=Assembly(method), may_still_be_served={"gone": gone},
        ended_consumers={f"{CHOSEN_TAG}1": "CANCEL-007"}, admissions={queue: Admission.ADMITTED},
    )  # fmt: skip
    connection = broker.connections["a"] = Connection("a", held=[method])
    broker.queues |= {"q": queue, "p": shared}
    binding = Binding("q", "k")
    exchange = broker.exchanges["x"] = Exchange("x", "direct", bindings=(binding,))
    policy, user = Policy("q"), User("u", "p")
    queue.policies = Policies({"x-expires": 9})
    broker.policies["/", "p"], broker.users["u"] = policy, user
    records = (
        broker, deadline, expected.due, content, method, message, queue, queue.active, second, dropping, publication,
        publication.routes, ruling, channel.transaction, expected, get, lost, channel, channel.unacknowledged[1],
        channel.timed_out[2], channel.assembly, connection, binding, exchange, policy, user,
        queue.policies,
    )  # fmt: skip
    return broker, {type(record).__name__: record for record in records}


def other(kind: Any, value: Any, records: dict[str, Any]) -> Any:
    """Another value of the type, which differs in what is seen of it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is not None and NoneType in arguments else other(arguments[0], value, records)
    if origin in (dict, Mapping):
        if value:
            return {}
        return {other(arguments[0], None, records): other(arguments[1], None, records)}
    if origin in (list, deque, tuple, set, frozenset):
        if value and not (origin is tuple and arguments[-1] is not Ellipsis):
            return origin()
        if origin is tuple and arguments[-1] is not Ellipsis:
            parts = value or [None] * len(arguments)
            return tuple(other(each, part, records) for each, part in zip(arguments, parts, strict=True))
        return origin([other(arguments[0], None, records)])
    if kind is NoneType or kind is Any or kind is object:
        return None if value is not None else "something"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(each for each in kind if each is not value)
    if kind in (bool, int, float):
        if kind is bool or not isinstance(value, int | float):
            return kind(not value)
        return kind(0 if value == NEVER else value + 1)
    if kind in (str, bytes):
        more = kind(b"x") if kind is bytes else "x"
        return (value + more) if isinstance(value, kind) else more
    if kind is Queue:
        return Queue("another")
    if kind is Consumer:
        return Consumer("another", ("a", 1), Queue("q"), False, 1)
    if kind is Message:
        return Message(Content({}, b"another"), "", "q", 9)
    assert is_dataclass(kind) and isinstance(kind, type), kind
    record = records[kind.__name__]
    name, hint = next(
        (each.name, get_type_hints(kind)[each.name]) for each in fields(kind) if declared_kind(each) not in NOT_COMPARED
    )
    return record if value is None else replace(record, **{name: other(hint, getattr(record, name), records)})


def all_fields() -> Iterator[tuple[str, str]]:
    for name, record in state()[1].items():
        for each in fields(record):
            yield name, each.name


def declared(record: object, name: str) -> Field[Any]:
    return next(each for each in fields(record) if each.name == name)  # type: ignore[arg-type]


@pytest.mark.parametrize(("record", "name"), list(all_fields()))
def test_a_field_is_compared_unless_it_says_otherwise(record: str, name: str) -> None:
    broker, records = state()
    before = fingerprint(broker)
    changed = records[record]
    field = declared(changed, name)
    hint = get_type_hints(type(changed))[name]
    is_left_out = declared_kind(field) in NOT_COMPARED and hint not in (int, float)
    value = object() if is_left_out else other(hint, getattr(changed, name), records)
    object.__setattr__(changed, name, value)
    assert (fingerprint(broker) == before) is (declared_kind(field) in NOT_COMPARED)


def test_every_record_that_is_seen_has_been_changed() -> None:
    broker, records = state()
    fingerprint(broker)
    seen = {record for record, _ in fingerprints._MADE if record.__module__.startswith("amqpspec.model.broker")}
    assert seen <= {type(record) for record in records.values()}


def test_every_view_has_a_field_and_every_field_its_view() -> None:
    views = {view_of(each) for record in state()[1].values() for each in fields(record)}
    assert views - {""} == VIEWS.keys()


def test_what_cannot_be_compared_has_to_be_declared() -> None:
    with pytest.raises(TypeError, match="say by its declaration"):
        fingerprints._seen(Callable[[], None], "it.f", {})
