"""A broker that routes wrong is caught, and the rule of routing that it broke is blamed."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.protocol.methods import Content, Method, event_of
from amqpspec.model.rules.inputs import process

DIALECT = dialect_named("rabbitmq-4.3")


class Bench:
    """A judge, and a sound broker whose answers it is given until the test gives it others."""

    def __init__(self, *lines: str) -> None:
        self.acceptor = acceptor_for(DIALECT)
        self.sound = Broker(DIALECT)
        for broker in (self.sound, self.acceptor.broker):
            for name in "ab":
                broker.connections[name] = Connection(name, ConnectionState.OPEN)
        for line in lines:
            self.send(line)
            self.answer()

    def send(self, line: str) -> None:
        command = parse_command(line)
        key = (command.connection, command.channel)
        if key not in self.sound.channels:
            self._send(Method(*key, "channel.open", {}, sent=True))
            self.answer()
        self._send(event_of(*key, command.method, dict(command.arguments), sent=True, content=command.content))

    def _send(self, method: Method) -> None:
        process(self.sound, method)
        self.acceptor.sent(method)

    def answer(self) -> None:
        """Everything that a sound broker sends now."""
        while (event := next(iter(permitted(self.sound)), None)) is not None:
            assert observe(self.sound, event) == ()
            self.acceptor.received(event)
        assert self.acceptor.failures == []

    def receive(self, method: str, body: bytes | None = None, on: str = "b", **arguments: Any) -> None:
        properties = arguments.pop("properties", {})
        content = None if body is None else Content(properties, body)
        self.acceptor.received(event_of(on, 1, method, arguments, sent=False, content=content))

    def get(self, queue: str, body: bytes, left: int = 0, **arguments: Any) -> None:
        """basic.get, answered with that message."""
        self.send(f"b.1 basic.get {queue} no-ack")
        values: dict[str, Any] = {"exchange": "x", "routing_key": "k", "delivery_tag": 1, **arguments}
        self.receive("basic.get-ok", body, redelivered=False, message_count=left, **values)

    def failure(self) -> Failure:
        (failure,) = self.acceptor.failures
        return failure


def topology(type: str, *lines: str) -> tuple[str, ...]:
    return (
        "a.1 queue.declare q durable", "a.1 queue.declare r durable", f"a.1 exchange.declare x {type} durable",
        "a.1 exchange.declare y fanout durable", *lines,
    )  # fmt: skip


TOPIC = topology("topic", "a.1 queue.bind q x routing-key=a.*", "a.1 queue.bind r x routing-key=k.#")
HEADERS = topology(
    "headers", 'a.1 queue.bind q x arguments={"h":1,"i":2}', 'a.1 queue.bind r x x-match=any arguments={"h":1,"i":2}'
)
DIRECT = topology("direct", "a.1 queue.bind q x routing-key=a", "a.1 queue.bind r x routing-key=k")
BOUND = topology(
    "direct", "a.1 queue.bind q y", "a.1 queue.bind r x routing-key=k", "a.1 exchange.bind y x routing-key=k"
)
ALTERNATE = topology("direct", "a.1 exchange.declare z direct durable alternate-exchange=y", "a.1 queue.bind q y")

#: Topology, publish, queue that gets the message although it should not, requirement.
STRAYS = [
    (TOPIC, "a.1 basic.publish k exchange=x body=m1", "q", "PUBLISH-005"),
    (TOPIC, "a.1 basic.publish b exchange=x body=m1", "q", "PUBLISH-005"),
    (HEADERS, 'a.1 basic.publish k exchange=x body=m1 headers={"h":1}', "q", "PUBLISH-006"),
    (HEADERS, 'a.1 basic.publish k exchange=x body=m1 headers={"h":"1"}', "r", "PUBLISH-006"),
    (DIRECT, "a.1 basic.publish k exchange=x body=m1", "q", "PUBLISH-003"),
    (DIRECT, "a.1 basic.publish K exchange=x body=m1", "r", "PUBLISH-003"),
    (BOUND, "a.1 basic.publish j exchange=x body=m1", "r", "PUBLISH-003"),
    ((*DIRECT, "a.1 exchange.bind y x routing-key=a", "a.1 queue.bind r y"),
     "a.1 basic.publish a exchange=x body=m1", "q", None),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "publish", "queue", "requirement"), STRAYS)
def test_a_message_in_a_queue_that_it_should_not_reach(
    lines: tuple[str, ...], publish: str, queue: str, requirement: str | None
) -> None:
    bench = Bench(*lines, publish)
    key = parse_command(publish).arguments["routing_key"]
    content = parse_command(publish).content
    assert content is not None
    bench.get(queue, b"m1", routing_key=key, properties=content.properties)
    if requirement is None:
        assert bench.acceptor.failures == [], "it should reach it"
    else:
        assert bench.failure().requirement == requirement


MISSING = [
    (TOPIC, "a.1 basic.publish a.b exchange=x body=m1", "PUBLISH-005"),
    (HEADERS, 'a.1 basic.publish k exchange=x body=m1 headers={"h":1,"i":2}', "PUBLISH-006"),
    (DIRECT, "a.1 basic.publish a exchange=x body=m1", "PUBLISH-003"),
    (DIRECT, 'a.1 basic.publish k exchange=x body=m1 headers={"CC":["a"]}', "PUBLISH-011"),
    (BOUND, "a.1 basic.publish k exchange=x body=m1", "BIND-004"),
    (ALTERNATE, "a.1 basic.publish k exchange=z body=m1", "PUBLISH-010"),
]


@pytest.mark.parametrize(("lines", "publish", "requirement"), MISSING)
def test_a_message_that_does_not_arrive(lines: tuple[str, ...], publish: str, requirement: str) -> None:
    """Seen by a get, by a count, and by a consumer that waits in vain."""
    by_get = Bench(*lines, publish, "b.1 queue.declare q passive", "b.1 queue.declare r passive")
    by_get.send("b.1 basic.get q no-ack")
    by_get.receive("basic.get-empty")
    assert by_get.failure().requirement == requirement
    by_count = Bench(*lines, publish)
    by_count.acceptor.overdue()
    assert requirement in {failure.requirement for failure in by_count.acceptor.failures}
    waiting = Bench(*lines, "b.1 basic.consume q tag=t no-ack")
    waiting.send(publish)
    waiting.acceptor.overdue()
    assert waiting.failure().requirement == requirement


TWICE = [
    (topology("fanout", "a.1 queue.bind q x", "a.1 queue.bind q x routing-key=k"), "BIND-003"),
    ((*topology("fanout", "a.1 queue.bind q x", "a.1 exchange.bind y x"), "a.1 queue.bind q y"), "BIND-004"),
]


@pytest.mark.parametrize(("lines", "requirement"), TWICE)
def test_a_message_that_arrives_twice(lines: tuple[str, ...], requirement: str) -> None:
    bench = Bench(*lines, "b.1 basic.consume q tag=t no-ack", "a.1 basic.publish k exchange=x body=m1")
    bench.receive(
        "basic.deliver", b"m1", consumer_tag="t", delivery_tag=2, redelivered=False, exchange="x", routing_key="k"
    )
    assert bench.failure().requirement == requirement
    bench = Bench(*lines, "a.1 basic.publish k exchange=x body=m1")
    bench.send("b.1 queue.declare q passive")
    bench.receive("queue.declare-ok", queue="q", message_count=2, consumer_count=0)
    assert bench.failure().requirement == requirement


RETURNED = [
    (TOPIC, "a.1 basic.publish a.b exchange=x mandatory body=m1", "PUBLISH-005"),
    (BOUND, "a.1 basic.publish k exchange=x mandatory body=m1", "BIND-004"),
    (ALTERNATE, "a.1 basic.publish k exchange=z mandatory body=m1", "PUBLISH-010"),
    (DIRECT, "a.1 basic.publish a exchange=x mandatory body=m1", "PUBLISH-008"),
    (DIRECT, "a.1 basic.publish q mandatory body=m1", "PUBLISH-008"),
]


@pytest.mark.parametrize(("lines", "publish", "requirement"), RETURNED)
def test_a_message_that_is_returned_although_routed(lines: tuple[str, ...], publish: str, requirement: str) -> None:
    bench = Bench(*lines, publish)
    asked = parse_command(publish).arguments
    bench.receive(
        "basic.return", b"m1", on="a", reply_code=312, reply_text="NO_ROUTE", exchange=asked.get("exchange", ""),
        routing_key=asked["routing_key"],
    )  # fmt: skip
    assert bench.failure().requirement == requirement


def test_a_message_that_is_not_returned() -> None:
    bench = Bench(*TOPIC)
    bench.send("a.1 basic.publish z exchange=x mandatory body=m1")
    bench.acceptor.overdue()
    assert bench.failure().requirement == "PUBLISH-007"


def test_bcc_that_is_not_taken_away() -> None:
    bench = Bench(*DIRECT, 'a.1 basic.publish k exchange=x body=m1 headers={"BCC":["a"],"h":1}')
    bench.get("q", b"m1", properties={"headers": {"BCC": ["a"], "h": 1}})
    assert bench.failure().requirement == "PUBLISH-011"


@pytest.mark.parametrize(("lines", "publish", "requirement"), [MISSING[3], MISSING[4], MISSING[5]])
def test_a_delivery_that_names_another_exchange(lines: tuple[str, ...], publish: str, requirement: str) -> None:
    bench = Bench(*lines, publish)
    content = parse_command(publish).content
    assert content is not None
    bench.get("q", b"m1", exchange="y", properties=content.properties)
    assert bench.failure().requirement == requirement


@pytest.mark.parametrize("others", [(), ("a.1 queue.bind r x routing-key=j", "a.1 queue.bind q x routing-key=i")])
def test_a_binding_that_is_kept(others: tuple[str, ...]) -> None:
    lines = topology("direct", "a.1 queue.bind q x routing-key=k", *others, "a.1 queue.unbind q x routing-key=k")
    bench = Bench(*lines, "a.1 basic.publish k exchange=x body=m1")
    bench.get("q", b"m1")
    assert bench.failure().requirement == "BIND-006"
    bench = Bench(*lines, "a.1 queue.bind q x routing-key=k", "a.1 basic.publish k exchange=x body=m1")
    bench.get("q", b"m1")
    assert bench.acceptor.failures == []


def test_a_binding_of_exchanges_that_is_kept() -> None:
    bench = Bench(*BOUND, "a.1 exchange.unbind y x routing-key=k", "a.1 queue.unbind r x routing-key=k")
    bench.send("a.1 basic.publish k exchange=x body=m1")
    bench.get("q", b"m1")
    assert bench.failure().requirement in ("BIND-004", "BIND-006")


def test_an_auto_delete_exchange_that_stays() -> None:
    bench = Bench(
        "a.1 queue.declare q durable", "a.1 exchange.declare x fanout auto-delete", "a.1 queue.bind q x",
        "a.1 queue.unbind q x",
    )  # fmt: skip
    bench.send("a.1 exchange.declare x fanout passive")
    bench.receive("exchange.declare-ok", on="a")
    assert bench.failure().requirement == "EXCHANGE-008"


def test_what_is_remembered_of_publishes_is_bounded() -> None:
    bench = Bench(*DIRECT, *(f"a.1 basic.publish k exchange=y body=m{number}" for number in range(500)))
    assert len(bench.acceptor.broker.bookkeeping.published) == 64
