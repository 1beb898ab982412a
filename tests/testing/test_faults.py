"""What applications must live with, made to happen on purpose: `EmbeddedBroker.fault`, through pika."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import aio_pika
import pytest
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import NackError, StreamLostError

from amqpspec.testing import FAULTS, EmbeddedBroker
from tests.testing.test_broker import channel_of, connected, end_of, until

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


def test_no_answer(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        broker.fault("no-answer")
        with pytest.raises(AMQPConnectorException):
            connected(broker.url, socket_timeout=0.1, stack_timeout=0.1, connection_attempts=1)
        channel.basic_publish("", "q", b"m")
        assert broker.published("") == []  # it does answer the test
        broker.heal()
        channel.queue_declare("q")
        assert len(broker.published("")) == 1


def test_the_connection_is_lost_after_publishes(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.confirm_delivery()
        broker.fault("lost-after-publishes", 2)
        channel.basic_publish("", "q", b"one")
        with pytest.raises(StreamLostError):
            channel.basic_publish("", "q", b"two")
    assert [each.body for each in broker.messages("q")] == [b"one", b"two"]  # it was taken, and not confirmed
    with channel_of(broker) as channel:
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"two")  # once is enough


def test_a_message_is_delivered_again_as_its_ack_was_lost(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"m")
        method, _, _ = channel.basic_get("q")
        broker.fault("lost-before-acks")
        channel.basic_ack(method.delivery_tag)
        with pytest.raises(StreamLostError):
            end_of(channel.connection)
    with channel_of(broker) as channel:
        method, _, body = channel.basic_get("q")
        assert body == b"m" and method.redelivered


def test_the_connection_is_lost_in_the_middle_of_a_content(broker: EmbeddedBroker) -> None:
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


def test_each_second_publish_is_refused(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.confirm_delivery()
        broker.fault("publish-refused", 2)
        channel.basic_publish("", "q", b"one")
        with pytest.raises(NackError):
            channel.basic_publish("", "q", b"two")
        channel.basic_publish("", "q", b"three")
        broker.heal("publish-refused")
        channel.basic_publish("", "q", b"four")
    assert [each.body for each in broker.messages("q")] == [b"one", b"three", b"four"]


def test_confirms_are_late(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        channel.queue_declare("q")
        channel.confirm_delivery()
        broker.fault("confirms-late", 0.1)
        for _ in range(2):
            begin = time.monotonic()
            channel.basic_publish("", "q", b"m")
            assert time.monotonic() - begin >= 0.1


def test_confirms_come_together(broker: EmbeddedBroker) -> None:
    """They are all that aio-pika waits for, here."""

    async def publish() -> list[str]:
        order: list[str] = []

        async def one(name: str) -> None:
            await exchange.publish(aio_pika.Message(name.encode()), "q")
            order.append(name)

        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            exchange = channel.default_exchange
            await channel.declare_queue("q")
            tasks = [asyncio.create_task(one(name)) for name in ("one", "two")]
            await channel.declare_queue("other")  # both have been processed by now
            order.append("nothing yet")
            await asyncio.gather(one("three"), *tasks)
        return order

    broker.fault("confirms-together", 3)
    order = asyncio.run(publish())
    assert order[0] == "nothing yet" and sorted(order[1:]) == ["one", "three", "two"]


def test_slow(broker: EmbeddedBroker) -> None:
    with channel_of(broker) as channel:
        broker.fault("slow", 0.05)
        begin = time.monotonic()
        channel.queue_declare("q")
        channel.queue_declare("q")
        assert time.monotonic() - begin >= 0.1
        broker.heal()
