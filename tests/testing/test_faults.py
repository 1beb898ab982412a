"""What applications must live with, made to happen on purpose: how they begin and end (`EmbeddedBroker.fault`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pika.exceptions import NackError, StreamLostError

from amqpspec.testing import FAULTS, EmbeddedBroker
from tests.testing.test_broker import channel_of, until

pytestmark = pytest.mark.quick


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def test_the_list() -> None:
    assert set(FAULTS) == {
        "no-answer", "lost-after-publishes", "lost-before-acks", "lost-in-content", "publish-refused",
        "confirms-late", "confirms-together", "slow", "blocked", "cancelled",
    }  # fmt: skip
    assert FAULTS["publish-refused"].endswith("NUMBER is 2 if not given.")


def test_another_name_is_told(broker: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="unknown fault 'nope': choose from no-answer, "):
        broker.fault("nope")
    with pytest.raises(ValueError, match="unknown fault 'nope'"):
        broker.heal("nope")


@pytest.mark.parametrize(
    "name, number, told",
    [
        ("slow", 0, "0 is no positive number of seconds"),
        ("publish-refused", 1.5, "1.5 is no positive whole number"),
        ("cancelled", float("nan"), "nan is no positive whole number"),
        ("no-answer", 2, "it takes no number"),
    ],
)
def test_a_number_that_makes_no_sense_is_told(broker: EmbeddedBroker, name: str, number: float, told: str) -> None:
    with pytest.raises(ValueError, match=f"fault {name}: {told}"):
        broker.fault(name, number)


def test_they_go_on_over_a_restart_and_not_over_a_reset(broker: EmbeddedBroker) -> None:
    broker.fault("publish-refused", 1)
    broker.fault("blocked", 2)
    broker.restart(kill=True)
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.confirm_delivery()
        with pytest.raises(NackError):
            channel.basic_publish("", "q", b"refused")
    broker.reset()
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.confirm_delivery()
        for _ in range(2):
            channel.basic_publish("", "q", b"m")
    assert len(broker.messages("q")) == 2


def test_only_the_alarm_of_the_fault_is_healed(broker: EmbeddedBroker) -> None:
    broker.block()
    broker.heal()
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"m")
        assert broker.messages("q") == []
        assert [each.blocked for each in broker.connections()] == [True]
        broker.unblock()
        assert len(broker.messages("q")) == 1


def test_the_nth_content_is_lost(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        for _ in range(2):
            channel.basic_publish("", "q", b"m" * 1000)
        seen: list[bytes] = []
        broker.fault("lost-in-content", 2)
        with pytest.raises(StreamLostError):
            channel.basic_consume("q", lambda c, m, p, body: seen.append(body))
            until(channel.connection, lambda: len(seen) == 2)
        assert len(seen) <= 1
    assert [each.redelivered for each in broker.messages("q")] == [True, True]
