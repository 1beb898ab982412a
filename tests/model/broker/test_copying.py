"""A copied state is equal to the original, and shares nothing with it that the model changes."""

from __future__ import annotations

import copy
import sys
import threading
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker import copying
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.owed import PendingGet
from amqpspec.model.broker.queues import Binding, Consumer, Exchange, Gone, Message, Queue
from amqpspec.model.broker.routing import Routes
from amqpspec.model.broker.transaction import Publication, Transaction
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.model.protocol.patterns import Pattern
from amqpspec.model.rules.inputs import process

#: Changed in place by the model; everything else is replaced as a whole.
RECORDS = (
    Broker, Channel, Connection, Consumer, Message, PendingGet, Publication, Queue, Routes,
    Transaction, Unacknowledged,
)  # fmt: skip
SHARED = (Binding, Content, Dialect, Exchange, Gone, Pattern, Enum)

COMMANDS = """
a.1 queue.declare c durable
a.1 queue.declare q durable x-queue-type=quorum
a.1 queue.declare s durable x-queue-type=stream
a.1 exchange.declare x fanout
a.1 queue.bind q x
a.1 exchange.declare y topic auto-delete alternate-exchange=x
a.1 exchange.bind x y routing-key=k
a.1 exchange.bind y x
a.1 exchange.bind x x
a.1 confirm.select
a.1 basic.publish c body=m1
a.1 basic.publish c body=m2
a.1 basic.publish q body=m3
a.1 basic.publish q body=m4
a.1 basic.publish s body=m5
b.1 basic.qos 1
b.1 basic.consume q consumer-tag=t
b.1 basic.consume c consumer-tag=u
b.1 basic.cancel u
a.2 basic.get c
a.2 basic.nack 1 requeue
a.2 basic.get c
b.2 tx.select
b.2 basic.publish k exchange=x body=m7
"""


@pytest.fixture
def broker() -> Broker:
    """Ready, unacknowledged and settled messages, a cancelled consumer, and inputs whose replies are owed."""
    plan = Plan(dialect_named("rabbitmq-4.3"))
    for line in COMMANDS.strip().splitlines():
        plan.carry_out(parse_command(line))
    for method, arguments in (
        ("basic.publish", {"routing_key": "c"}),
        ("queue.declare", {"queue": "c", "passive": True}),
        ("basic.consume", {"queue": "q", "consumer_tag": "v"}),
        ("basic.get", {"queue": "c"}),
    ):
        content = Content({}, b"m6") if method == "basic.publish" else None
        process(plan.broker, Method("a", 1, method, arguments, sent=True, content=content))
    return plan.broker


def objects(value: Any, path: str, found: dict[int, tuple[str, Any]]) -> dict[int, tuple[str, Any]]:
    """Everything that the model changes, by identity, with the way to it."""
    if isinstance(value, SHARED) or id(value) in found:
        return found
    if isinstance(value, RECORDS):
        found[id(value)] = (path, value)
        names = vars(value) if isinstance(value, Broker) else value.__slots__
        for name in names:
            # tables that came over the wire are never changed
            if name not in ("arguments", "capabilities", "server_properties", "offered"):
                objects(getattr(value, name), f"{path}.{name}", found)
    elif isinstance(value, dict | Counter):
        found[id(value)] = (path, value)
        for key, item in value.items():
            objects(key, f"{path} key", found)
            objects(item, f"{path}[{key!r:.20}]", found)
    elif isinstance(value, list | deque):
        found[id(value)] = (path, value)
        for item in value:
            objects(item, f"{path}[]", found)
    elif isinstance(value, tuple):
        for item in value:
            objects(item, f"{path}()", found)
    elif hasattr(value, "effect"):
        objects(value.effect, f"{path}.effect", found)
    return found


def test_copy_is_equal(broker: Broker) -> None:
    assert fingerprint(copy_broker(broker)) == fingerprint(broker) == fingerprint(copy.deepcopy(broker))
    assert copy_broker(broker).bookkeeping.exercised == broker.bookkeeping.exercised


def test_copy_shares_nothing_that_changes(broker: Broker) -> None:
    original = objects(broker, "broker", {})
    copied = objects(copy_broker(broker), "broker", {})
    assert sorted(path for path, _ in original.values()) == sorted(path for path, _ in copied.values())
    assert [copied[same][0] for same in original.keys() & copied.keys()] == []
    kinds = {type(value) for _, value in original.values()}
    assert kinds.issuperset(RECORDS), "the state does not hold a record of each kind"


def test_several_threads_may_make_the_first_copy(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that wait are judged side by side: whoever comes second waits until what copies is complete."""
    interval = sys.getswitchinterval()
    monkeypatch.setattr(copying, "_COMPLETE", {})
    monkeypatch.setattr(copying, "_COPIERS", {name: it for name, it in copying._COPIERS.items() if not _is_made(name)})
    begin = threading.Barrier(8)

    def first_copy(_: int) -> Broker:
        begin.wait()
        return copy_broker(broker)

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            copies = list(pool.map(first_copy, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert {fingerprint(each) for each in copies} == {fingerprint(broker)}


def _is_made(name: str) -> bool:
    return name.rpartition("_")[2].isdigit()
