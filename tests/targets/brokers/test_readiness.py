"""A broker is tried at each of its addresses; one that answers before its virtual host is there is waited for."""

from __future__ import annotations

import queue
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from amqpspec.targets.address import Address
from amqpspec.targets.brokers import readiness
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.errors import AccessRefused, NotYetOpen, TargetError
from tests.targets.client.test_wire import certificate, server_tls  # noqa: F401  (fixtures)

ADDRESS = Address("127.0.0.1", 5672)


class _Client:
    """What comes of one connection after the other."""

    def __init__(self, *outcomes: TargetError | None) -> None:
        self.outcomes = list(outcomes)

    def __call__(self, address: Address) -> _Client:
        return self

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing is open."""

    def open(self, name: str) -> None:
        if (error := self.outcomes.pop(0)) is not None:
            raise error


def _waited(client: _Client, monkeypatch: pytest.MonkeyPatch, seconds: float = 60) -> list[TargetError | None]:
    """What is left of the outcomes."""
    monkeypatch.setattr(readiness, "WireClient", client)
    signs: queue.SimpleQueue[object] = queue.SimpleQueue()
    for _ in client.outcomes:
        signs.put("a line of its log")
    readiness.wait_until_open(ADDRESS, time.monotonic() + seconds, signs)
    return client.outcomes


def test_connections_that_are_forced_to_end_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _waited(_Client(NotYetOpen(""), NotYetOpen(""), None), monkeypatch) == []


def test_any_other_trouble_is_told_by_who_connects_next(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_waited(_Client(AccessRefused(""), None), monkeypatch)) == 1


def test_the_deadline_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_waited(_Client(NotYetOpen("")), monkeypatch, seconds=0)) == 1


def _ready(*open_ports: int) -> Address | None:
    """Which of two addresses is used, where these ports answer."""
    addresses = (Address("172.17.0.2", 5672), Address("127.0.0.1", 32768))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readiness, "answers_amqp", lambda address, timeout: address.port in open_ports)
        return readiness.wait_until_ready(addresses, time.monotonic() + 60, queue.SimpleQueue(), lambda: True)


def test_a_container_is_used_at_the_first_address_that_answers() -> None:
    own = _ready(5672, 32768)
    assert own is not None and own.host == "172.17.0.2"


def test_a_container_whose_own_address_is_filtered_is_used_at_its_published_port() -> None:
    published = _ready(32768)
    assert published is not None and published.host == "127.0.0.1"


def test_a_broker_that_has_ended_is_not_waited_for() -> None:
    assert _ready() is None


def test_a_broker_behind_tls_is_met_as_well(certificate: Path, server_tls: ssl.SSLContext) -> None:  # noqa: F811
    with EmbeddedBroker(ssl_context=server_tls) as broker:
        at = broker.address.port
        trusted = Address("127.0.0.1", at, tls=True, cacertfile=str(certificate))
        assert readiness.answers_amqp(trusted, 5)
        assert not readiness.answers_amqp(Address("127.0.0.1", at), 0.3)
        # waiting would mend nothing: who connects next says what is wrong
        assert readiness.answers_amqp(Address("127.0.0.1", at, tls=True), 5)
        assert readiness.answers_amqp(Address("127.0.0.1", at, tls=True, cacertfile="nowhere.pem"), 5)
