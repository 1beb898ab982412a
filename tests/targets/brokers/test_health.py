"""Whether a broker still answers, and serves a fresh connection as a whole broker does."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.closing import fail
from amqpspec.targets.brokers import health
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.health import Watch, check_alive, not_served
from amqpspec.targets.embedded.hooks import Fault, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.errors import TargetError, TargetUnreachable


def test_a_sound_broker_serves_a_fresh_connection_and_keeps_nothing_of_it() -> None:
    with EmbeddedBroker() as broker:
        for _ in range(2):
            check_alive(broker.address)
            assert not_served(broker.address) is None


def refuses(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    fail(broker, channel, method, ProtocolError("CONN-010", 541, "noproc"))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("get-empty-with-messages", "what a fresh connection publishes does not come: basic.get-empty"),
        ("content-altered", "what a fresh connection publishes does not come: basic.get-ok"),
    ],
)
def test_it_says_what_is_wrong(fault: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PUBLISHING_TIME", 0.1)
    with EmbeddedBroker(fault=fault) as broker:
        check_alive(broker.address)
        assert not_served(broker.address) == said


def test_a_broker_that_does_not_know_a_method_is_not_lost() -> None:
    with EmbeddedBroker(fault="delete-unanswered") as broker:
        check_alive(broker.address)
        assert not_served(broker.address) is None
    with EmbeddedBroker(fault="get-unknown") as broker:
        assert not_served(broker.address, gets=False) is None


def test_a_broker_that_is_gone_is_lost() -> None:
    with EmbeddedBroker() as broker:
        address = broker.address
    with pytest.raises(TargetError):
        not_served(address)
    with pytest.raises(TargetError):
        check_alive(address)


def test_a_broker_of_which_a_part_is_gone_is_lost() -> None:
    """One that never served a fresh connection only refuses."""
    fault = Fault("refuses", "", "It refuses.", frozenset({"queue.declare"}), input_hook=refuses)
    with EmbeddedBroker(fault=fault) as broker:
        assert not check_alive(broker.address)
        with pytest.raises(TargetUnreachable, match=r"serves no fresh connection any more: queue\.declare"):
            check_alive(broker.address, has_served=True)


def test_a_watch_goes_on_on_another_connection_and_says_when_there_is_none() -> None:
    with EmbeddedBroker() as broker, Watch(broker.address, 5.0) as watch:
        for _ in range(3):
            watch.ask()
        port = broker.address.port
        broker.__exit__(None, None, None)
        with EmbeddedBroker(port=port):
            watch.ask()
        with pytest.raises(TargetError):
            watch.ask()
