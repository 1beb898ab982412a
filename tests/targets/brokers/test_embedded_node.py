"""An embedded broker that is stopped, killed and paused, also where it has a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpspec.model.protocol.methods import OPERATOR, Content, Fault, Method
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.brokers.resolve import faults_of, running_broker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetUnreachable
from tests.patience import patience


@pytest.fixture(params=[False, True], ids=["here", "apart"])
def faults(request: pytest.FixtureRequest) -> Iterator[FaultInjector]:
    with running_broker("embedded", apart=request.param) as broker:
        injector = faults_of(broker)
        assert injector is not None
        yield injector


def do(faults: FaultInjector, *names: str) -> None:
    for name in names:
        faults.inject(Fault(OPERATOR, 0, name, {}, sent=True))


def ask(client: WireClient, method: str, content: Content | None = None, **arguments: object) -> None:
    client.send(Method("a", 1, method, dict(arguments), sent=True, content=content))


def publish(faults: FaultInjector) -> WireClient:
    """A durable queue with one persistent message, and who did that."""
    client = WireClient(faults.address_of(1))
    client.open("a")
    ask(client, "channel.open")
    ask(client, "queue.declare", queue="q", durable=True)
    ask(client, "basic.publish", Content({"delivery_mode": 2}, b"m"), routing_key="q")
    ask(client, "queue.declare", queue="q", passive=True)
    assert received(client, "queue.declare-ok", "queue.declare-ok")["message_count"] == 1
    return client


def received(client: WireClient, *names: str) -> dict[str, object]:
    """Arguments of the last of these, which come in that order."""
    for name in names:
        while True:
            event = client.receive(patience(10))
            assert event is not None, f"no {name}"
            if event.name == name:
                break
    return dict(event.arguments)


@pytest.mark.parametrize(
    ("end", "signs"),
    [("broker.stop", ["connection.close", "socket.closed"]), ("broker.kill", ["socket.closed"])],
)
def test_its_end_and_what_is_left(faults: FaultInjector, end: str, signs: list[str]) -> None:
    with publish(faults) as client:
        address = faults.address_of(1)
        do(faults, end)
        received(client, *signs[:1])
        if len(signs) > 1:
            client.send(Method("a", 0, "connection.close-ok", {}, sent=True))
            received(client, *signs[1:])
        with WireClient(address) as another, pytest.raises(TargetUnreachable):
            another.open("b")
        do(faults, "broker.restart")
        assert faults.address_of(1) == address
    with WireClient(address) as client:
        client.open("a")
        ask(client, "channel.open")
        ask(client, "basic.get", queue="q")
        received(client, "basic.get-ok")


def test_while_it_is_paused_nothing_comes_and_then_all_does(faults: FaultInjector) -> None:
    with publish(faults) as client:
        do(faults, "broker.pause")
        ask(client, "basic.get", queue="q")
        assert client.receive(0.1) is None
        do(faults, "broker.resume")
        received(client, "basic.get-ok")


def test_one_that_is_killed_while_it_is_paused_serves_again(faults: FaultInjector) -> None:
    do(faults, "broker.pause", "broker.kill", "broker.restart")
    assert check_alive(faults.address_of(1))


def test_it_ends_in_good_order_while_it_is_down(faults: FaultInjector) -> None:
    do(faults, "broker.kill")  # the end of the fixture raises what goes wrong
