"""Real clients cannot tell the embedded broker from a real one: each works unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from queue import Empty

import aio_pika
import kombu
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAuthenticationError,
    UnroutableError,
)

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker


@pytest.fixture(params=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


@pytest.fixture
def address() -> Iterator[Address]:
    with EmbeddedBroker() as broker:
        yield broker.address


def url(address: Address) -> str:
    return f"amqp://{address.user}:{address.password}@{address.host}:{address.port}/%2F"


@pytest.fixture
def connection(address: Address) -> Iterator[pika.BlockingConnection]:
    connection = pika.BlockingConnection(pika.URLParameters(url(address)))
    yield connection
    if connection.is_open:
        connection.close()


@pytest.fixture
def channel(connection: pika.BlockingConnection) -> BlockingChannel:
    return connection.channel()


class TestPika:
    def test_a_message_is_published_and_got_with_its_properties(self, channel: BlockingChannel) -> None:
        channel.queue_declare("q", durable=True)
        sent = pika.BasicProperties(
            content_type="text/plain", headers={"n": 1, "deep": {"list": [1, "two"]}}, delivery_mode=2, message_id="m"
        )
        channel.basic_publish("", "q", b"hello", sent)
        method, properties, body = channel.basic_get("q")
        assert (body, method.delivery_tag, method.redelivered, method.routing_key) == (b"hello", 1, False, "q")
        assert properties == sent
        channel.basic_ack(method.delivery_tag)
        assert channel.basic_get("q") == (None, None, None)

    @pytest.mark.parametrize("size", [0, 1, 131_064, 131_065, 3_000_000])
    def test_bodies_of_all_sizes_arrive_whole(self, channel: BlockingChannel, size: int) -> None:
        body = bytes(index % 251 for index in range(size))
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, body)
        assert channel.basic_get(queue, auto_ack=True)[2] == body

    def test_consuming_acknowledging_and_cancelling(self, channel: BlockingChannel) -> None:
        channel.queue_declare("q")
        channel.basic_qos(prefetch_count=2)
        for number in range(5):
            channel.basic_publish("", "q", b"%d" % number)
        bodies = []
        for method, _, body in channel.consume("q"):
            bodies.append(body)
            channel.basic_ack(method.delivery_tag)
            if len(bodies) == 5:
                break
        channel.cancel()
        assert bodies == [b"0", b"1", b"2", b"3", b"4"]
        assert channel.queue_declare("q", passive=True).method.message_count == 0

    def test_callbacks_see_the_messages_of_their_queue(
        self, connection: pika.BlockingConnection, channel: BlockingChannel
    ) -> None:
        seen: list[tuple[str, bytes]] = []
        for queue in ("one", "two"):
            channel.queue_declare(queue)
            channel.basic_consume(
                queue, lambda c, method, properties, body, queue=queue: seen.append((queue, body)), auto_ack=True
            )
            channel.basic_publish("", queue, f"to {queue}".encode())
        while len(seen) < 2:
            connection.process_data_events(time_limit=5)
        assert sorted(seen) == [("one", b"to one"), ("two", b"to two")]

    def test_what_is_given_back_is_redelivered(self, channel: BlockingChannel) -> None:
        channel.queue_declare("q")
        for body in (b"a", b"b", b"c"):
            channel.basic_publish("", "q", body)
        tags = [channel.basic_get("q")[0].delivery_tag for _ in range(3)]
        channel.basic_nack(tags[1], multiple=True, requeue=True)
        channel.basic_reject(tags[2], requeue=False)
        again = [channel.basic_get("q", auto_ack=True) for _ in range(3)]
        assert [(body, method.redelivered) for method, _, body in again[:2]] == [(b"a", True), (b"b", True)]
        assert again[2] == (None, None, None)

    def test_confirms_and_returns(self, channel: BlockingChannel) -> None:
        channel.queue_declare("q")
        channel.confirm_delivery()
        for _ in range(10):
            channel.basic_publish("", "q", b"confirmed", mandatory=True)
        with pytest.raises(UnroutableError) as returned:
            channel.basic_publish("", "nowhere", b"lost", mandatory=True)
        assert returned.value.messages[0].method.reply_code == 312
        assert returned.value.messages[0].body == b"lost"
        assert channel.queue_declare("q", passive=True).method.message_count == 10

    def test_server_named_exclusive_queues_end_with_their_connection(
        self, address: Address, connection: pika.BlockingConnection, channel: BlockingChannel
    ) -> None:
        names = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
        assert len(set(names)) == 2
        assert all(name.startswith("amq.gen-") for name in names)
        with pika.BlockingConnection(pika.URLParameters(url(address))) as other:
            with pytest.raises(ChannelClosedByBroker) as locked:
                other.channel().queue_declare(names[0], passive=True)
            assert locked.value.reply_code == 405
            connection.close()
            with pytest.raises(ChannelClosedByBroker) as gone:
                other.channel().queue_declare(names[0], passive=True)
            assert gone.value.reply_code == 404

    def test_purge_and_delete_count_messages(self, channel: BlockingChannel) -> None:
        channel.queue_declare("q")
        for _ in range(3):
            channel.basic_publish("", "q", b"x")
        assert channel.queue_purge("q").method.message_count == 3
        channel.basic_publish("", "q", b"x")
        assert channel.queue_delete("q").method.message_count == 1

    def test_a_channel_error_closes_the_channel_only(
        self, connection: pika.BlockingConnection, channel: BlockingChannel
    ) -> None:
        with pytest.raises(ChannelClosedByBroker) as missing:
            channel.basic_get("missing")
        assert missing.value.reply_code == 404
        assert missing.value.reply_text == "NOT_FOUND - no queue 'missing' in vhost '/'"
        assert channel.is_closed
        reopened = connection.channel(channel.channel_number)
        assert reopened.queue_declare("here").method.queue == "here"

    def test_a_connection_error_closes_the_connection(
        self, connection: pika.BlockingConnection, channel: BlockingChannel
    ) -> None:
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *_: None, consumer_tag="t")
        # pika itself refuses a tag that is in use: make it forget
        channel._impl._consumers.clear()
        channel._consumer_infos.clear()
        with pytest.raises(ConnectionClosedByBroker) as refused:
            channel.basic_consume("q", lambda *_: None, consumer_tag="t")
        assert refused.value.reply_code == 530
        assert connection.is_closed

    def test_consumers_are_told_that_their_queue_is_gone(
        self, connection: pika.BlockingConnection, channel: BlockingChannel
    ) -> None:
        channel.queue_declare("q")
        told: list[str] = []
        channel.add_on_cancel_callback(lambda frame: told.append(frame.method.consumer_tag))
        tag = channel.basic_consume("q", lambda *_: None)
        connection.channel().queue_delete("q")
        while not told:
            connection.process_data_events(time_limit=5)
        assert told == [tag]

    def test_a_wrong_password_is_told_apart(self, address: Address) -> None:
        parameters = pika.ConnectionParameters(
            address.host, address.port, credentials=pika.PlainCredentials("guest", "wrong")
        )
        with pytest.raises(ProbableAuthenticationError, match="ACCESS_REFUSED"):
            pika.BlockingConnection(parameters)

    def test_each_dialect_serves(self, dialect: Dialect) -> None:
        with EmbeddedBroker(dialect) as broker:
            connection = pika.BlockingConnection(pika.URLParameters(url(broker.address)))
            channel = connection.channel()
            channel.queue_declare("q")
            channel.basic_publish("", "q", b"x")
            method, _, body = channel.basic_get("q")
            assert body == b"x"
            channel.basic_ack(method.delivery_tag)
            connection.close()


class TestAioPika:
    def test_publishing_with_confirms_iterating_and_acknowledging(self, address: Address) -> None:
        async def work() -> list[bytes]:
            connection = await aio_pika.connect_robust(url(address), timeout=60)
            async with connection:
                channel = await connection.channel(publisher_confirms=True)
                await channel.set_qos(prefetch_count=1)
                queue = await channel.declare_queue("q", durable=True)
                exchange = await channel.declare_exchange("x", aio_pika.ExchangeType.DIRECT, durable=True)
                await queue.bind(exchange, "k")
                for number in range(5):
                    message = aio_pika.Message(b"%d" % number, headers={"n": number})
                    await exchange.publish(message, "k", mandatory=True)
                bodies = []
                async with queue.iterator(timeout=60) as messages:
                    async for message in messages:
                        async with message.process():
                            assert message.headers["n"] == len(bodies)
                            bodies.append(message.body)
                        if len(bodies) == 5:
                            break
                assert (await channel.declare_queue("q", passive=True)).declaration_result.message_count == 0
                return bodies

        assert asyncio.run(work()) == [b"0", b"1", b"2", b"3", b"4"]

    def test_an_unroutable_message_is_an_error_to_its_publisher(self, address: Address) -> None:
        async def work() -> None:
            async with await aio_pika.connect_robust(url(address), timeout=60) as connection:
                channel = await connection.channel(on_return_raises=True)
                await channel.default_exchange.publish(aio_pika.Message(b"lost"), "nowhere", timeout=60)

        with pytest.raises(aio_pika.exceptions.DeliveryError):
            asyncio.run(work())

    def test_a_channel_error_has_its_code(self, address: Address) -> None:
        async def work() -> None:
            async with await aio_pika.connect_robust(url(address), timeout=60) as connection:
                channel = await connection.channel()
                await channel.declare_queue("missing", passive=True)

        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity, match="no queue 'missing' in vhost '/'"):
            asyncio.run(work())

    def test_requests_and_replies_over_server_named_queues(self, address: Address) -> None:
        async def work() -> int:
            async with await aio_pika.connect_robust(url(address), timeout=60) as connection:
                channel = await connection.channel()
                rpc = await aio_pika.patterns.RPC.create(channel)

                async def double(*, number: int) -> int:
                    return 2 * number

                await rpc.register("double", double, auto_delete=True)
                return int(await asyncio.wait_for(rpc.proxy.double(number=21), 10))

        assert asyncio.run(work()) == 42


class TestKombu:
    def test_a_simple_queue_puts_gets_and_acknowledges(self, address: Address) -> None:
        with (
            kombu.Connection(url(address), connect_timeout=60) as connection,
            connection.SimpleQueue("tasks") as queue,
        ):
            queue.put({"number": 7}, serializer="json")
            queue.put("second")
            assert queue.qsize() == 2
            first = queue.get(timeout=60)
            assert first.payload == {"number": 7}
            first.ack()
            second = queue.get(timeout=60)
            assert second.payload == "second"
            second.reject()
            with pytest.raises(Empty):
                queue.get(block=False)
            assert queue.clear() == 0

    def test_producers_declare_and_consumers_receive(self, address: Address) -> None:
        exchange = kombu.Exchange("media", type="direct")
        videos = kombu.Queue("videos", exchange=exchange, routing_key="video")
        seen: list[str] = []
        with kombu.Connection(url(address), connect_timeout=60, heartbeat=30) as connection:
            producer = connection.Producer()
            producer.publish("one", exchange=exchange, routing_key="video", declare=[videos])
            producer.publish("not for videos", exchange=exchange, routing_key="picture")
            producer.publish("two", exchange=exchange, routing_key="video")

            def on_message(body: str, message: kombu.Message) -> None:
                seen.append(body)
                message.ack()

            with connection.Consumer(videos, callbacks=[on_message]):
                while len(seen) < 2:
                    connection.drain_events(timeout=60)
        assert seen == ["one", "two"]

    def test_confirms(self, address: Address) -> None:
        options = {"confirm_publish": True}
        with kombu.Connection(url(address), transport_options=options, connect_timeout=60) as connection:
            queue = kombu.Queue("q")
            connection.Producer().publish("x", routing_key="q", declare=[queue])
            assert queue(connection.channel()).queue_declare(passive=True).message_count == 1
