"""Each fault that applications meet, through each client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from amqpspec.testing import EmbeddedBroker
from tests.testing.clients import CLIENTS, SOON, Cancelled, Client

pytestmark = pytest.mark.quick

Connect = Callable[..., Client]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(params=CLIENTS, ids=lambda client: client.__name__)
def connect(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> Iterator[Connect]:
    with ExitStack() as at_the_end:

        def connect(timeout: float = SOON) -> Client:
            client: Client = request.param(broker.url, timeout)
            at_the_end.callback(client.close)
            return client

        yield connect


@pytest.fixture
def client(connect: Connect) -> Client:
    client = connect()
    client.declare("q")
    return client


@pytest.fixture
def aside() -> Iterator[Callable[..., Future[None]]]:
    """Has something done in another thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def bodies(broker: EmbeddedBroker) -> list[bytes]:
    return [each.body for each in broker.messages("q")]


def test_no_answer(
    broker: EmbeddedBroker, client: Client, connect: Connect, aside: Callable[..., Future[None]]
) -> None:
    broker.fault("no-answer")
    with pytest.raises(client.late):
        connect(timeout=0.1)
    published = aside(client.publish, "q", b"m")
    assert bodies(broker) == []
    broker.heal()
    published.result(SOON)
    assert bodies(broker) == [b"m"]


def test_lost_after_publishes(broker: EmbeddedBroker, client: Client, connect: Connect) -> None:
    broker.fault("lost-after-publishes", 2)
    client.publish("q", b"one")
    with pytest.raises(client.lost):
        client.publish("q", b"two")
    connect().publish("q", b"two")  # an application tries again
    assert bodies(broker) == [b"one", b"two", b"two"]


def test_lost_in_content(broker: EmbeddedBroker, client: Client, connect: Connect) -> None:
    client.publish("q", b"one" * 1000)
    broker.fault("lost-in-content")
    client.consume("q")
    with pytest.raises(client.lost):
        client.next()
    again = connect()
    again.consume("q")
    assert again.next() == (b"one" * 1000, True)


def test_deliveries_doubled_after_a_reconnect(broker: EmbeddedBroker, client: Client, connect: Connect) -> None:
    client.publish("q", b"one")
    broker.fault("lost-before-acks")
    client.consume("q")
    assert client.next() == (b"one", False)
    with pytest.raises(client.lost):
        client.ack()
        client.next()
    again = connect()
    again.consume("q")
    assert again.next() == (b"one", True)
    again.ack()
    broker.wait_until(lambda: bodies(broker) == [])


def test_each_second_publish_is_refused(broker: EmbeddedBroker, client: Client) -> None:
    broker.fault("publish-refused", 2)
    for body in (b"one", b"three"):
        client.publish("q", body)
        with pytest.raises(client.refused):
            client.publish("q", b"refused")
    assert bodies(broker) == [b"one", b"three"]


def test_confirms_are_late(broker: EmbeddedBroker, client: Client) -> None:
    broker.fault("confirms-late", 0.05)
    begin = time.monotonic()
    client.publish("q", b"m")
    assert time.monotonic() - begin >= 0.05


def test_confirms_come_together(broker: EmbeddedBroker, client: Client, aside: Callable[..., Future[None]]) -> None:
    broker.fault("confirms-together", 3)
    published = aside(client.publish, "q", b"one", b"two")
    broker.wait_until(lambda: len(bodies(broker)) == 2)
    assert not published.done()
    broker.heal()
    published.result(SOON)
    broker.fault("confirms-together", 3)
    client.publish("q", b"one", b"two", b"three")


def test_slow(broker: EmbeddedBroker, client: Client) -> None:
    broker.fault("slow", 0.05)
    begin = time.monotonic()
    client.declare("q")
    assert time.monotonic() - begin >= 0.05


def test_blocked(broker: EmbeddedBroker, client: Client, aside: Callable[..., Future[None]]) -> None:
    broker.fault("blocked", 2)
    client.publish("q", b"one")
    published = aside(client.publish, "q", b"two")
    broker.wait_until(lambda: broker.connections()[0].blocked)
    assert bodies(broker) == [b"one"] and not published.done()
    broker.heal()
    published.result(SOON)
    assert bodies(broker) == [b"one", b"two"]


def test_cancelled(broker: EmbeddedBroker, client: Client) -> None:
    for body in (b"one", b"two"):
        client.publish("q", body)
    broker.fault("cancelled", 2)
    client.consume("q")
    assert [client.next(), client.next()] == [(b"one", False), (b"two", False)]
    with pytest.raises(Cancelled):
        client.next()
    assert broker.queues()["q"].consumers == ()
    client.publish("q", b"three")
    client.consume("q")  # the channel is open, and has kept what it was delivered
    assert client.next() == (b"three", False)
