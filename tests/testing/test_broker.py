"""What `amqpspec.testing` promises, by its public names only, through pika."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
    StreamLostError,
)

from amqpspec.testing import EmbeddedBroker, Holder

pytestmark = pytest.mark.quick

PERSISTENT = pika.BasicProperties(delivery_mode=2)
#: Seconds to wait for what comes at once.
SOON = 10.0


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def connected(url: str, name: str = "", **parameters: Any) -> pika.BlockingConnection:
    wishes = pika.URLParameters(url)
    if name:
        wishes.client_properties = {"connection_name": name}
    for parameter, value in parameters.items():
        setattr(wishes, parameter, value)
    return pika.BlockingConnection(wishes)


@contextmanager
def channel_of(broker: EmbeddedBroker, name: str = "") -> Iterator[BlockingChannel]:
    connection = connected(broker.url, name)
    yield connection.channel()
    if connection.is_open:
        with suppress(AMQPError):
            connection.close()


def end_of(connection: pika.BlockingConnection) -> None:
    """Raises what ends it."""
    until(connection, lambda: False)


def until(connection: pika.BlockingConnection, is_done: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not is_done():
        assert time.monotonic() < end
        connection.process_data_events(time_limit=0.01)


class TestAddress:
    def test_the_url_has_the_password_and_the_virtual_host(self) -> None:
        with EmbeddedBroker(user="me@home", password="se/cret", vhost="a b") as broker:
            assert broker.url == f"amqp://me%40home:se%2Fcret@127.0.0.1:{broker.address.port}/a%20b"
            connected(broker.url).close()

    @pytest.mark.parametrize(
        "dialect, version", [("rabbitmq-4.3", "4.3"), ("rabbitmq-4.0", "4.0"), ("rabbitmq-3", "3.")]
    )
    def test_it_says_that_it_is_a_rabbitmq(self, dialect: str, version: str) -> None:
        with EmbeddedBroker(dialect) as broker:
            connection = connected(broker.url)
            said = connection._impl.server_properties
            assert said["product"] == "RabbitMQ" and said["version"].startswith(version)
            connection.close()

    def test_an_unknown_dialect_is_told_at_once(self) -> None:
        with pytest.raises(ValueError, match=r"unknown dialect 'rabbitmq-9': choose from"):
            EmbeddedBroker("rabbitmq-9")

    def test_tls_in_one_argument(self) -> None:
        with EmbeddedBroker(tls=True) as broker:
            assert broker.url.startswith("amqps://")
            parameters = pika.URLParameters(broker.url)
            parameters.ssl_options = pika.SSLOptions(ssl.create_default_context(cafile=broker.cafile))
            connection = pika.BlockingConnection(parameters)
            connection.channel().queue_declare("q")
            connection.close()
            with pytest.raises(ssl.SSLCertVerificationError):
                connected(broker.url)  # who does not know the certificate does not trust it
        assert not broker.cafile.exists()


class TestWhatIsInIt:
    def test_queues(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q", durable=True, arguments={"x-max-length": 5})
            channel.queue_declare("own", exclusive=True)
            channel.basic_publish("", "q", b"one")
            channel.basic_publish("", "q", b"two")
            channel.basic_get("q")
            channel.basic_consume("own", lambda *_: None, consumer_tag="t")
            q, own = broker.queues()["q"], broker.queues()["own"]
            assert (q.ready, q.unacknowledged, q.durable, q.type) == (1, 1, True, "classic")
            assert q.arguments == {"x-max-length": 5}
            assert own.exclusive and own.consumers == ("t",)
        assert list(broker.queues()) == ["q"]

    def test_messages_and_who_holds_them(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker, "worker") as channel:
            channel.queue_declare("q")
            channel.basic_qos(prefetch_count=1)
            properties = pika.BasicProperties(content_type="text/plain", headers={"n": 1})
            for body in (b"one", b"two"):
                channel.basic_publish("", "q", body, properties)
            seen: list[bytes] = []
            channel.basic_consume("q", lambda c, m, p, body: seen.append(body), consumer_tag="t")
            until(channel.connection, lambda: seen)
            one, two = broker.messages("q")
            assert one.holder == Holder("worker", 1, "t", 1)
            assert two.holder is None and two.body == b"two" and two.headers == {"n": 1}
            assert two.properties["content_type"] == "text/plain" and not two.redelivered
            assert "one  held by consumer t on channel 1 of worker" in broker.describe()
        assert [each.redelivered for each in broker.messages("q")] == [True, False]
        with pytest.raises(KeyError):
            broker.messages("nowhere")

    def test_what_was_published_to_an_exchange(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.exchange_declare("orders", "topic")
            channel.queue_declare("q")
            channel.queue_bind("q", "orders", "a.*")
            channel.basic_publish("orders", "a.b", b"one")
            channel.basic_publish("orders", "b", b"nobody")
            channel.basic_publish("", "q", b"other")
            channel.tx_select()
            channel.basic_publish("orders", "a.c", b"undone")
            channel.tx_rollback()
            channel.basic_publish("orders", "a.c", b"committed")
            channel.tx_commit()
        told = broker.published("orders")
        assert [(each.body, each.routing_key, each.queues) for each in told] == [
            (b"one", "a.b", ("q",)), (b"nobody", "b", ()), (b"committed", "a.c", ("q",)),
        ]  # fmt: skip
        assert [each.body for each in broker.published("orders", routing_key="b")] == [b"nobody"]
        assert broker.published("orders", routing_key="") == []

    def test_an_exchange_that_never_was_is_told(self, broker: EmbeddedBroker) -> None:
        with pytest.raises(KeyError, match=r"no exchange 'typo'; there are: amq\.direct"):
            broker.published("typo")
        with channel_of(broker) as channel:
            channel.exchange_declare("orders")
            channel.basic_publish("orders", "a", b"one")
            channel.exchange_delete("orders")
        assert len(broker.published("orders")) == 1

    def test_only_so_many_are_kept(self) -> None:
        with EmbeddedBroker(keep_published=2) as broker, channel_of(broker) as channel:
            for number in range(3):
                channel.basic_publish("amq.fanout", "", b"%d" % number)
            assert [each.body for each in broker.published("amq.fanout")] == [b"1", b"2"]

    def test_what_was_sent_before_is_processed_first(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q")
            for number in range(1, 501):
                channel.basic_publish("", "q", b"m" * 1000)
                if number % 100 == 0:
                    assert len(broker.messages("q")) == number

    def test_waiting(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q")
            broker.wait_until(lambda: "q" in broker.queues())
            with pytest.raises(TimeoutError, match=r"does not hold after 0\.01 s; q \(classic\): 0 ready"):
                broker.wait_until(lambda: broker.messages("q"), seconds=0.01)

    def test_reset(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q", durable=True)
            broker.add_user("other", "secret")
            broker.block()
            broker.fault("slow")
            broker.reset()
            with pytest.raises(ConnectionClosedByBroker):
                end_of(channel.connection)
        assert broker.queues() == {}
        with pytest.raises(ProbableAuthenticationError):
            connected(broker.url_for("other"))
        with channel_of(broker) as channel:
            channel.queue_declare("q")
            channel.confirm_delivery()
            channel.basic_publish("", "q", b"not blocked")
        assert len(broker.published("")) == 1


class TestItsOwnMessages:
    def test_they_are_as_those_of_clients(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q")
            channel.queue_bind("q", "amq.topic", "a.*")
            broker.publish("amq.topic", "a.b", "text", delivery_mode=2, headers={"n": 1})
            method, properties, body = channel.basic_get("q")
            assert (body, method.exchange, method.routing_key) == (b"text", "amq.topic", "a.b")
            assert (properties.delivery_mode, properties.headers) == (2, {"n": 1})
            assert broker.published("amq.topic")[0].queues == ("q",)
            assert len(broker.connections()) == 1

    def test_a_consumer_gets_them_during_an_alarm(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q")
            seen: list[bytes] = []
            channel.basic_consume("q", lambda c, m, p, body: seen.append(body), auto_ack=True)
            broker.block()
            broker.publish("", "q", b"m")
            until(channel.connection, lambda: seen)
            channel.basic_publish("", "q", b"blocked")
            assert len(broker.published("")) == 1  # the alarm is still there
            broker.wait_until_empty("q")
            broker.unblock()  # a blocked client cannot even close

    def test_in_a_virtual_host(self, broker: EmbeddedBroker) -> None:
        broker.add_virtual_host("other")
        connection = connected(broker.url_for(vhost="other"))
        connection.channel().queue_declare("q")
        broker.publish("", "q", b"m", vhost="other")
        assert len(broker.messages("q", "other")) == 1
        with pytest.raises(TimeoutError, match=r"after 0\.01 s"):
            broker.wait_until_empty("q", 0.01, vhost="other")
        with pytest.raises(KeyError):
            broker.publish("", "q", b"m", vhost="nowhere")
        connection.close()

    @pytest.mark.parametrize(
        "exchange, key, properties, told",
        [
            ("", "q", {}, "NO_ROUTE: exchange '', routing key 'q'"),
            ("nowhere", "", {}, "NOT_FOUND - no exchange 'nowhere' in vhost '/'"),
            ("", "q", {"delivery_mod": 2}, "no client can publish this: content has no property delivery_mod"),
            ("", "q", {"headers": {"n": object()}}, "no client can publish this: property headers: "),
        ],
    )
    def test_what_cannot_be_is_told(
        self, broker: EmbeddedBroker, exchange: str, key: str, properties: dict[str, Any], told: str
    ) -> None:
        with pytest.raises(ValueError, match=told):
            broker.publish(exchange, key, b"m", **properties)
        assert broker.failures == ()

    def test_a_body_is_octets_or_text(self, broker: EmbeddedBroker) -> None:
        with pytest.raises(TypeError, match="body: bytes or str is wanted, not dict"):
            broker.publish("", "q", {"id": 1})  # type: ignore[arg-type]


class TestRestart:
    def fill(self, channel: BlockingChannel) -> None:
        channel.confirm_delivery()
        channel.exchange_declare("durable", "fanout", durable=True)
        channel.exchange_declare("transient", "fanout")
        channel.queue_declare("q", durable=True)
        channel.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_declare("gone", exclusive=True)
        channel.queue_declare("auto", durable=True, auto_delete=True)
        channel.queue_bind("q", "durable")
        channel.queue_bind("gone", "durable")
        for body in (b"held", b"ready"):
            channel.basic_publish("", "q", body, PERSISTENT)
        channel.basic_publish("", "q", b"transient")
        channel.basic_publish("", "quorum", b"transient, and kept")
        channel.basic_publish("", "auto", b"a", PERSISTENT)
        channel.basic_get("q")
        channel.basic_consume("auto", lambda *_: None)

    @pytest.mark.parametrize("kill", [False, True])
    def test_what_survives(self, broker: EmbeddedBroker, kill: bool) -> None:
        """As RabbitMQ 4.3.6 was seen to do it."""
        port = broker.address.port
        with channel_of(broker) as channel:
            self.fill(channel)
            broker.restart(kill=kill)
            with pytest.raises(StreamLostError if kill else ConnectionClosedByBroker) as ended:
                end_of(channel.connection)
        if isinstance(ended.value, ConnectionClosedByBroker):
            assert ended.value.reply_code == 320 and "shutdown" in ended.value.reply_text
        assert broker.address.port == port
        # with its last consumer an auto-delete queue goes, and nobody is there who would do that after a kill
        assert sorted(broker.queues()) == (["auto", "q", "quorum"] if kill else ["q", "quorum"])
        with channel_of(broker) as channel:
            got = [channel.basic_get("q", auto_ack=True) for _ in range(3)]
            told = [(body, method and method.redelivered) for method, _, body in got]
            assert told == [(b"held", True), (b"ready", kill), (None, None)]
            assert channel.basic_get("quorum")[2] == b"transient, and kept"
            channel.basic_publish("durable", "", b"by its binding")
            assert channel.basic_get("q", auto_ack=True)[2] == b"by its binding"
            with pytest.raises(ChannelClosedByBroker, match="no exchange 'transient'"):
                channel.exchange_declare("transient", passive=True)

    def test_nobody_is_let_in_while_it_is_down(self, broker: EmbeddedBroker) -> None:
        broker.stop()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", broker.address.port))
        with pytest.raises(RuntimeError, match="the broker does not serve"):
            broker.queues()
        broker.start()
        broker.start()  # it serves already
        connected(broker.url).close()

    @pytest.mark.parametrize("kill", [False, True])
    def test_in_the_middle_of_publishes(self, broker: EmbeddedBroker, kill: bool) -> None:
        """What was confirmed is there; of the last one nobody knows."""
        confirmed: list[bytes] = []

        def publish() -> None:
            channel = connected(broker.url).channel()
            channel.queue_declare("q", durable=True)
            channel.confirm_delivery()
            with suppress(AMQPError):
                while True:
                    body = b"%d" % len(confirmed)
                    channel.basic_publish("", "q", body, PERSISTENT)
                    confirmed.append(body)

        publisher = threading.Thread(target=publish, daemon=True)
        publisher.start()
        broker.wait_until(lambda: len(confirmed) >= 3)
        broker.stop(kill)
        publisher.join(SOON)
        assert not publisher.is_alive()
        broker.start()
        bodies = [each.body for each in broker.messages("q")]
        assert bodies[: len(confirmed)] == confirmed and len(bodies) <= len(confirmed) + 1

    def test_users_and_permissions_survive(self, broker: EmbeddedBroker) -> None:
        broker.add_virtual_host("v")
        broker.add_user("other", "secret", vhost="v")
        broker.restart()
        connected(broker.url_for("other", "v")).close()

    def test_times_to_live_go_on(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q", durable=True, arguments={"x-message-ttl": 60_000})
            channel.basic_publish("", "q", b"m", PERSISTENT)
            broker.restart(kill=True)
        broker.advance(seconds=59)
        assert len(broker.messages("q")) == 1
        broker.advance(seconds=1)
        assert broker.messages("q") == []


class TestOperator:
    def test_blocked_publishers(self, broker: EmbeddedBroker) -> None:
        connection = connected(broker.url)
        told: list[str] = []
        connection.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
        connection.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
        channel = connection.channel()
        channel.queue_declare("q")
        broker.block()
        channel.basic_publish("", "q", b"m")
        until(connection, lambda: told)
        assert told == ["blocked"] and broker.messages("q") == []
        broker.unblock()
        until(connection, lambda: len(told) == 2)
        assert told == ["blocked", "unblocked"] and [each.body for each in broker.messages("q")] == [b"m"]
        connection.close()

    @pytest.mark.parametrize("abruptly", [False, True])
    def test_connections_of_a_name_are_closed(self, broker: EmbeddedBroker, abruptly: bool) -> None:
        one, other = connected(broker.url, "one"), connected(broker.url, "other")
        assert [(each.name, each.user, each.virtual_host) for each in broker.connections()] == [
            ("one", "guest", "/"), ("other", "guest", "/"),
        ]  # fmt: skip
        assert broker.close_connections("nobody") == 0
        assert broker.close_connections("one", abruptly=abruptly) == 1
        with pytest.raises(StreamLostError if abruptly else ConnectionClosedByBroker):
            end_of(one)
        other.channel()
        assert [(each.name, each.channels, each.blocked) for each in broker.connections()] == [("other", 1, False)]
        assert broker.close_connections() == 1

    def test_permissions(self, broker: EmbeddedBroker) -> None:
        broker.add_user("reader", "secret", configure="", write="", read="^q$")
        with channel_of(broker) as own:
            own.queue_declare("q")
        connection = connected(broker.url_for("reader"))
        assert connection.channel().basic_get("q") == (None, None, None)
        with pytest.raises(ChannelClosedByBroker) as refused:
            connection.channel().queue_declare("mine")
        assert refused.value.reply_code == 403
        broker.set_permissions("reader", configure="mine")
        connection.channel().queue_declare("mine")
        broker.delete_user("reader")
        with pytest.raises(ConnectionClosedByBroker):
            end_of(connection)

    def test_cancelled_consumers(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            cancelled: list[str] = []
            channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
            for queue in ("one", "two"):
                channel.queue_declare(queue)
                channel.basic_consume(queue, lambda *_: None, consumer_tag=f"of-{queue}")
            assert broker.cancel_consumers("one") == 1
            until(channel.connection, lambda: cancelled)
            assert cancelled == ["of-one"] and broker.queues()["one"].consumers == ()
            assert broker.queues()["two"].consumers == ("of-two",)
        with pytest.raises(KeyError, match="no queue 'typo'"):
            broker.cancel_consumers("typo")


class TestVirtualHosts:
    def test_they_come_and_go(self, broker: EmbeddedBroker) -> None:
        with pytest.raises((ProbableAccessDeniedError, ConnectionClosedByBroker)):
            connected(broker.url_for(vhost="tests"))
        broker.add_virtual_host("tests")
        assert broker.queues("tests") == {}
        connection = connected(broker.url_for(vhost="tests"))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.exchange_declare("e")
        assert broker.queues("tests")["q"].virtual_host == "tests" and broker.queues() == {}
        broker.delete_virtual_host("tests")
        with pytest.raises(ConnectionClosedByBroker):
            end_of(connection)
        with pytest.raises(KeyError, match="no virtual host 'tests'; there are: /"):
            broker.queues("tests")
        broker.add_virtual_host("tests")
        assert broker.queues("tests") == {}
        with pytest.raises(KeyError, match="no exchange 'e'"):
            broker.published("e", "tests")
        connection = connected(broker.url_for(vhost="tests"))
        with pytest.raises(ChannelClosedByBroker, match="no exchange 'e' in vhost 'tests'"):
            connection.channel().exchange_declare("e", passive=True)
        connection.close()

    @pytest.fixture
    def pair(self, broker: EmbeddedBroker) -> tuple[BlockingChannel, BlockingChannel]:
        """A channel in the broker's own, and one in another."""
        broker.add_virtual_host("other")
        return connected(broker.url).channel(), connected(broker.url_for(vhost="other")).channel()

    def test_names_are_those_of_one(
        self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel]
    ) -> None:
        for channel, kind, arguments in zip(pair, ("topic", "fanout"), ({}, {"x-max-length": 2}), strict=True):
            channel.exchange_declare("e", kind)
            channel.queue_declare("q", arguments=arguments)
            channel.queue_bind("q", "e", "a.*")
            channel.confirm_delivery()
        own, other = pair
        for key in ("a.b", "b"):
            own.basic_publish("e", key, b"own-" + key.encode())
        for number in range(3):
            other.basic_publish("e", "", b"other-%d" % number)
        assert [each.body for each in broker.messages("q")] == [b"own-a.b"]
        assert [each.body for each in broker.messages("q", "other")] == [b"other-1", b"other-2"]
        assert [each.body for each in broker.published("e")] == [b"own-a.b", b"own-b"]
        assert len(broker.published("e", "other")) == 3
        assert broker.describe().splitlines() == [
            "virtual host /:", "q (classic): 1 ready, 0 unacknowledged", "    own-a.b",
            "virtual host other:", "q (classic): 2 ready, 0 unacknowledged", "    other-1", "    other-2",
        ]  # fmt: skip
        own.queue_delete("q")
        assert list(broker.queues("other")) == ["q"]
        assert other.basic_get("q")[2] == b"other-1"

    def test_consumers_are_cancelled_in_one(
        self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel]
    ) -> None:
        for channel in pair:
            channel.queue_declare("q")
            channel.basic_consume("q", lambda *_: None, consumer_tag="t")
        assert broker.cancel_consumers(vhost="other") == 1
        assert (broker.queues()["q"].consumers, broker.queues("other")["q"].consumers) == (("t",), ())

    @pytest.mark.parametrize("kill", [False, True])
    def test_all_survive_a_restart(
        self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel], kill: bool
    ) -> None:
        for channel, body in zip(pair, (b"own", b"other"), strict=True):
            channel.queue_declare("q", durable=True)
            channel.confirm_delivery()
            channel.basic_publish("", "q", body, PERSISTENT)
        broker.restart(kill)
        for vhost, body in ((None, b"own"), ("other", b"other")):
            connection = connected(broker.url_for(vhost=vhost))
            assert connection.channel().basic_get("q")[2] == body
            connection.close()

    def test_who_may_what_is_said_for_each(
        self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel]
    ) -> None:
        broker.add_user("me", "secret", vhost="other")
        with pytest.raises((ProbableAccessDeniedError, ConnectionClosedByBroker)):
            connected(broker.url_for("me"))
        broker.set_permissions("me", read=".*")
        with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
            connected(broker.url_for("me")).channel().queue_declare("q")
        connection = connected(broker.url_for("me", "other"))
        connection.channel().queue_declare("q")
        broker.delete_user("me")
        with pytest.raises(ConnectionClosedByBroker):
            end_of(connection)

    def test_an_alarm_is_for_all(self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel]) -> None:
        broker.block()
        broker.add_virtual_host("later")
        later = connected(broker.url_for(vhost="later")).channel()
        for channel in (*pair, later):
            channel.basic_publish("", "q", b"m")
        hosts = (None, "other", "later")
        assert [broker.published("", vhost) for vhost in hosts] == [[], [], []]
        broker.unblock()
        assert [len(broker.published("", vhost)) for vhost in hosts] == [1, 1, 1]

    def test_time_passes_in_all(self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel]) -> None:
        for channel in pair:
            channel.queue_declare("q", arguments={"x-expires": 60_000})
        broker.advance(minutes=2)
        assert broker.queues() == broker.queues("other") == {}

    def test_a_reset_leaves_one(self, broker: EmbeddedBroker, pair: tuple[BlockingChannel, BlockingChannel]) -> None:
        broker.reset()
        with pytest.raises(KeyError):
            broker.queues("other")

    def test_the_brokers_own_is_meant_if_none_is_given(self) -> None:
        with EmbeddedBroker(vhost="shop") as broker:
            broker.add_user("reader", "secret", configure="", write="")
            connection = connected(broker.url_for("reader"))
            with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
                connection.channel().queue_declare("q")
            connection.close()
            with pytest.raises(KeyError, match="no virtual host '/'"):
                broker.add_user("other", "secret", vhost="/")
            with pytest.raises(KeyError, match="nobody added the user 'guest'"):
                broker.set_permissions("guest")

    def test_names_of_connections_are_used_again(self, broker: EmbeddedBroker) -> None:
        """Inside, connections are counted anew after a restart."""
        broker.add_virtual_host("other")
        connected(broker.url_for(vhost="other"))
        broker.restart(kill=True)
        connection = connected(broker.url)
        connection.channel().queue_declare("q")
        assert list(broker.queues()) == ["q"]
        connection.close()


class TestClock:
    def test_retry_queues_one_after_the_other(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            for name, ttl, following in (("wait-1", 300_000, "wait-2"), ("wait-2", 600_000, "work")):
                letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": following}
                channel.queue_declare(name, arguments={"x-message-ttl": ttl, **letters})
            channel.queue_declare("work")
            channel.basic_publish("", "wait-1", b"m")
            broker.advance(minutes=14, seconds=59)
            assert [len(broker.messages(name)) for name in ("wait-1", "wait-2", "work")] == [0, 1, 0]
            broker.advance(seconds=2)
            (letter,) = broker.messages("work")
            died = [(each["queue"], each["reason"]) for each in letter.headers["x-death"]]
            assert died == [("wait-2", "expired"), ("wait-1", "expired")]
            # pika tells a field of type long by a type of its own
            _, properties, _ = channel.basic_get("work")
            assert [type(each["count"]).__name__ for each in properties.headers["x-death"]] == ["long", "long"]
            # the broker's clock tells when
            now = datetime.now(UTC)
            times = [each["time"] - now for each in letter.headers["x-death"]]
            assert timedelta(minutes=14) < times[0] < timedelta(minutes=16)
            assert timedelta(minutes=4) < times[1] < timedelta(minutes=6)

    def test_the_consumer_timeout_of_half_an_hour(self, broker: EmbeddedBroker) -> None:
        """TIMEOUT-026, of quorum queues in 4.3."""
        with channel_of(broker) as channel:
            channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
            channel.basic_publish("", "q", b"m")
            cancelled: list[str] = []
            seen: list[bytes] = []
            channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
            channel.basic_consume("q", lambda c, m, p, body: seen.append(body), consumer_tag="t")
            until(channel.connection, lambda: seen)
            broker.advance(minutes=29)
            assert broker.messages("q")[0].holder is not None
            broker.advance(minutes=2)
            assert broker.messages("q")[0].holder is None
            until(channel.connection, lambda: cancelled)
            assert cancelled == ["t"]

    def test_before_4_3_it_closes_the_channel(self) -> None:
        with EmbeddedBroker("rabbitmq-4.0") as broker, channel_of(broker) as channel:
            channel.queue_declare("q")
            channel.basic_publish("", "q", b"m")
            seen: list[bytes] = []
            channel.basic_consume("q", lambda c, m, p, body: seen.append(body))
            until(channel.connection, lambda: seen)
            broker.advance(minutes=31)
            with pytest.raises(ChannelClosedByBroker) as closed:
                until(channel.connection, lambda: channel.queue_declare("q", passive=True) and False)
            assert closed.value.reply_code == 406 and "timeout" in closed.value.reply_text

    def test_queues_expire(self, broker: EmbeddedBroker) -> None:
        with channel_of(broker) as channel:
            channel.queue_declare("q", arguments={"x-expires": 60_000})
            broker.advance(seconds=59)
            assert "q" in broker.queues()
            broker.advance(seconds=2)
            assert broker.queues() == {}

    def test_heartbeats_do_not_go_by_it(self, broker: EmbeddedBroker) -> None:
        connection = connected(broker.url, heartbeat=10)
        broker.advance(hours=1)
        connection.channel().queue_declare("q")
        connection.close()

    def test_heartbeats_go_by_it_if_that_is_asked_for(self, broker: EmbeddedBroker) -> None:
        """The client has been silent for so long, as far as the broker can tell."""
        with channel_of(broker) as own:
            own.queue_declare("q")
            own.basic_publish("", "q", b"m")
        connection = connected(broker.url, heartbeat=60)
        connection.channel().basic_get("q")
        broker.advance(minutes=2, heartbeats=True)
        assert broker.messages("q")[0].holder is not None  # it may be late by one interval and a half
        broker.advance(minutes=1, heartbeats=True)
        assert broker.messages("q")[0].holder is None and broker.messages("q")[0].redelivered
        with pytest.raises(StreamLostError):
            end_of(connection)

    def test_how_far_is_said(self, broker: EmbeddedBroker) -> None:
        with pytest.raises(ValueError, match="say how far"):
            broker.advance()

    def test_it_goes_forward_only(self, broker: EmbeddedBroker) -> None:
        with pytest.raises(ValueError, match="forward"):
            broker.advance(seconds=-1)
