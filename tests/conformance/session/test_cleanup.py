"""What sequences made is deleted over connections that are kept, whatever becomes of these in between."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from amqpspec.conformance.session import cleanup
from amqpspec.conformance.session.cleanup import Cleaner, Made, clean_up, put_back
from amqpspec.conformance.session.patience import NUMBERS, Patience
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.address import Address, parse_address
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


class Lenient:
    """A broker that lets clients make and delete its own exchanges; it has these."""

    def __init__(self, exchanges: frozenset[str]) -> None:
        self.exchanges = set(exchanges)
        self.said: list[tuple[str, str, str, bool]] = []

    def client(self, address: Address) -> LenientClient:
        return LenientClient(self)


class LenientClient:
    def __init__(self, broker: Lenient) -> None:
        self._broker = broker
        self._answers: list[Method] = []

    def open(self, name: str, timeout: float) -> None:
        pass

    def is_open(self, name: str) -> bool:
        return True

    def open_names(self) -> list[str]:
        return ["cleanup"]

    def close(self) -> None:
        pass

    def send(self, event: Method) -> None:
        answer = f"{event.name}-ok"
        if event.name == "exchange.declare":
            exchange, passive = event.arguments["exchange"], event.arguments["passive"]
            self._broker.said.append((event.name, exchange, event.arguments["type"], passive))
            if not passive:
                self._broker.exchanges.add(exchange)
            answer = answer if exchange in self._broker.exchanges else "channel.close"
        self._answers.append(Method(event.connection, event.channel, answer, {}, sent=False))

    def receive_before(self, deadline: float) -> Method | None:
        return self._answers.pop(0) if self._answers else None


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


def test_what_is_refused_is_given_and_the_cleaner_goes_on(broker: EmbeddedBroker, opened: list[WireClient]) -> None:
    """The refusal closes the channel, which some brokers never open again: the next names are another connection's."""
    refused = ("exchange", "amq.direct")
    with Cleaner() as cleaner:
        assert cleaner.clean_up(broker.address, [refused]) == [refused]
        declare(broker, "q")
        assert cleaner.clean_up(broker.address, [("queue", "q")]) == []
        assert not is_there(broker, "q")
        assert cleaner.clean_up(broker.address, [("queue", "not there")]) == []
    assert len(opened) == 2


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
    learned = [0.0] * NUMBERS
    for deadline in (0.01, 0.2):
        patience = Patience(deadline)
        patience.share(learned, 1)
        with Cleaner() as cleaner:
            assert cleaner.clean_up(broker.address, [("queue", "q")], patience) == [("queue", "q")]
    assert limits[0] <= 0.1 and limits[1] <= 0.4, "connecting is within the limit as well"
    assert learned[1] == 2, "times in vain"
    with Cleaner() as cleaner:
        assert cleaner.clean_up(broker.address, [("queue", "q")], patience) == [("queue", "q")]
    assert len(limits) == 2, "nobody waits any more for what was never answered"


def test_nothing_is_connected_where_nothing_was_made(broker: EmbeddedBroker, opened: list[WireClient]) -> None:
    assert clean_up(broker.address, []) == []
    assert not opened


def test_an_exchange_of_the_brokers_own_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for first; one that is there is left as it is, and so is one that the broker lets nobody make."""
    broker = Lenient(frozenset())
    monkeypatch.setattr(cleanup, "WireClient", broker.client)
    put_back(parse_address("amqp://localhost/"), ["amq.fanout"])
    assert broker.said == [
        ("exchange.declare", "amq.fanout", "fanout", True), ("exchange.declare", "amq.fanout", "fanout", False)
    ]  # fmt: skip
    assert broker.exchanges == {"amq.fanout"}
    put_back(parse_address("amqp://localhost/"), ["amq.fanout"])
    assert len(broker.said) == 3
