"""What sequences made is deleted over connections that are kept, whatever becomes of these in between."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from amqpspec.conformance.session import cleanup
from amqpspec.conformance.session.cleanup import Cleaner, Made, clean_up
from amqpspec.conformance.session.patience import Patience
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[WireClient]:
    """The clients of the cleaners, in the order in which they came."""
    clients: list[WireClient] = []

    class Counted(WireClient):
        def open(self, name: str, **wishes: object) -> None:  # type: ignore[override]
            clients.append(self)
            super().open(name)

    monkeypatch.setattr(cleanup, "WireClient", Counted)
    return clients


def declare(broker: EmbeddedBroker, *queues: str) -> None:
    with WireClient(broker.address) as client:
        client.open("c")
        ask(client, "channel.open")
        for queue in queues:
            assert ask(client, "queue.declare", queue=queue) == "queue.declare-ok"


def is_there(broker: EmbeddedBroker, queue: str) -> bool:
    with WireClient(broker.address) as client:
        client.open("c")
        ask(client, "channel.open")
        return ask(client, "queue.declare", queue=queue, passive=True) == "queue.declare-ok"


def ask(client: WireClient, method: str, **arguments: object) -> str:
    client.send(Method("c", 1, method, arguments, sent=True))
    answer = client.receive(30.0)
    assert answer is not None
    return answer.name


def test_one_connection_serves_many_sequences(broker: EmbeddedBroker, opened: list[WireClient]) -> None:
    with Cleaner() as cleaner:
        for queues in (["q", "r"], ["s"], ["t", "u", "v"]):
            declare(broker, *queues)
            assert cleaner.clean_up(broker.address, [("queue", queue) for queue in queues]) == []
            assert not any(is_there(broker, queue) for queue in queues)
    assert len(opened) == 1


def test_what_is_refused_is_given_and_the_connection_serves_on(
    broker: EmbeddedBroker, opened: list[WireClient]
) -> None:
    """The refusal closes the channel, which is opened again for the next name."""
    refused = ("exchange", "amq.direct")
    with Cleaner() as cleaner:
        assert cleaner.clean_up(broker.address, [refused]) == [refused]
        declare(broker, "q")
        assert cleaner.clean_up(broker.address, [("queue", "q")]) == []
        assert not is_there(broker, "q")
        assert cleaner.clean_up(broker.address, [("queue", "not there")]) == []
    assert len(opened) == 1


def test_a_connection_that_ended_in_between_is_replaced(broker: EmbeddedBroker, opened: list[WireClient]) -> None:
    declare(broker, "q")
    with Cleaner() as cleaner:
        cleaner.clean_up(broker.address, [("queue", "r")])
        opened[0].send_octets("cleanup", b"no frame at all")
        assert cleaner.clean_up(broker.address, [("queue", "q")]) == []
    assert not is_there(broker, "q")
    assert len(opened) == 2


def test_a_broker_at_another_address_gets_a_connection_of_its_own(
    broker: EmbeddedBroker, opened: list[WireClient]
) -> None:
    with Cleaner() as cleaner, EmbeddedBroker() as other:
        for each in (broker, other, broker):
            declare(each, "q")
            assert cleaner.clean_up(each.address, [("queue", "q")]) == []
            assert not is_there(each, "q")


def test_nothing_is_said_of_a_broker_that_is_gone(opened: list[WireClient]) -> None:
    with Cleaner() as cleaner:
        with EmbeddedBroker() as broker:
            cleaner.clean_up(broker.address, [("queue", "q")])
        assert cleaner.clean_up(broker.address, [("queue", "q")]) == []
    assert clean_up(broker.address, [("queue", "q")]) == []


def test_a_broker_that_deletes_nothing_is_waited_for_as_long_as_there_is_patience(
    broker: EmbeddedBroker, opened: list[WireClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def mute(connection: cleanup._Connection, names: list[Made], deadline: float) -> tuple[list[Made], list[Made]]:
        limits.append(deadline - time.monotonic())
        connection._client.receive_before(deadline)
        return [], names

    monkeypatch.setattr(cleanup._Connection, "delete", mute)
    monkeypatch.setattr(cleanup, "SHORT_TIME_LIMIT", 0.1)
    learned = [0.0, 0.0, 0.0]
    for deadline in (0.01, 0.2):
        patience = Patience(deadline)
        patience.share(learned, 1)
        with Cleaner() as cleaner:
            assert cleaner.clean_up(broker.address, [("queue", "q")], patience) == [("queue", "q")]
    assert limits[0] <= 0.1 and limits[1] <= 0.4, "connecting is within the limit as well"
    assert learned[1] == 2, "times in vain"


def test_nothing_is_connected_where_nothing_was_made(broker: EmbeddedBroker, opened: list[WireClient]) -> None:
    assert clean_up(broker.address, []) == []
    assert not opened
