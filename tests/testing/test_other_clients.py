"""The same broker through aio-pika and kombu: what these make of what a test does to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aio_pika
import aiormq.exceptions
import kombu
import pytest
from amqp.exceptions import ConnectionForced

from amqpspec.testing import EmbeddedBroker

pytestmark = pytest.mark.quick


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


class TestAioPika:
    @pytest.mark.parametrize("kill", [False, True])
    def test_a_robust_connection_consumes_again_after_a_restart(self, broker: EmbeddedBroker, kill: bool) -> None:
        async def consume() -> list[tuple[bytes, bool]]:
            taken: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()

            async def take(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                await taken.put((message.body, bool(message.redelivered)))

            connection = await aio_pika.connect_robust(broker.url, reconnect_interval=0.01)
            async with connection:
                channel = await connection.channel()
                queue = await channel.declare_queue("q", durable=True)
                persistent = aio_pika.Message(b"m", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await channel.default_exchange.publish(persistent, "q")
                await queue.consume(take)
                first = await asyncio.wait_for(taken.get(), 10)
                await asyncio.to_thread(broker.restart, kill)
                return [first, await asyncio.wait_for(taken.get(), 10)]

        assert asyncio.run(consume()) == [(b"m", False), (b"m", True)]

    def test_a_robust_connection_consumes_again_after_a_cancel(self, broker: EmbeddedBroker) -> None:
        async def consume() -> list[bytes]:
            taken: asyncio.Queue[bytes] = asyncio.Queue()

            async def take(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                await message.ack()
                await taken.put(message.body)

            async with await aio_pika.connect_robust(broker.url) as connection:
                channel = await connection.channel()
                queue = await channel.declare_queue("q")
                await queue.consume(take)
                assert broker.cancel_consumers("q") == 1
                for body in (b"one", b"two"):
                    await channel.default_exchange.publish(aio_pika.Message(body), "q")
                return [await asyncio.wait_for(taken.get(), 10) for _ in range(2)]

        assert asyncio.run(consume()) == [b"one", b"two"]

    def test_connections_have_their_names(self, broker: EmbeddedBroker) -> None:
        async def close() -> int:
            async with await aio_pika.connect(f"{broker.url}?name=worker") as connection:
                closed = broker.close_connections("worker")
                with pytest.raises((aiormq.exceptions.AMQPError, asyncio.CancelledError, RuntimeError)):
                    await connection.channel()
                return closed

        assert asyncio.run(close()) == 1


class TestKombu:
    def test_who_holds_a_task(self, broker: EmbeddedBroker) -> None:
        with kombu.Connection(broker.url) as connection, connection.SimpleQueue("tasks") as tasks:
            tasks.put({"n": 1})
            message = tasks.get(timeout=10)
            (held,) = broker.messages("tasks")
            assert held.holder is not None and held.headers == {}
            message.requeue()
            (ready,) = broker.messages("tasks")
            assert ready.redelivered or ready.holder is not None

    def test_it_goes_on_after_a_restart(self, broker: EmbeddedBroker) -> None:
        with kombu.Connection(broker.url) as connection:
            with connection.SimpleQueue("tasks") as tasks:
                tasks.put({"n": 1})
            broker.restart()
            with pytest.raises(ConnectionForced):
                connection.drain_events(timeout=10)
            connection.ensure_connection(max_retries=3, interval_start=0)
            with connection.SimpleQueue("tasks") as tasks:
                assert tasks.get(timeout=10).payload == {"n": 1}

    def test_a_lost_connection_is_an_error_that_can_be_recovered(self, broker: EmbeddedBroker) -> None:
        with kombu.Connection(broker.url) as connection:
            channel = connection.channel()
            broker.close_connections(abruptly=True)
            with pytest.raises(connection.recoverable_connection_errors):
                kombu.Queue("q", channel=channel).declare()
