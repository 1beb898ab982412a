"""The embedded broker as its clients see it: opening, closing, bad octets, heartbeats, slow readers, its own end."""

from __future__ import annotations

import contextlib
import gc
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import amqpspec.targets.embedded.connection as embedded_connection
import amqpspec.targets.embedded.responder as embedded_responder
from amqpspec.model.broker.queues import Message
from amqpspec.model.promises.dialects import DIALECTS, dialect_of
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.protocol.methods import MASK, OPERATOR, Content, Method, OperatorAction, TraceEvent, event_of
from amqpspec.model.rules.table import RULES
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, EmbeddedBrokerFailure
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.codec.field_values import encode_table
from amqpspec.targets.codec.methods_codec import (
    HEARTBEAT_OCTETS,
    PROTOCOL_HEADER,
    Decoder,
    Heartbeat,
    ProtocolHeader,
    encode,
)
from amqpspec.targets.errors import AccessRefused, TargetUnreachable, VhostNotFound
from tests.targets.client.test_wire import certificate, server_tls  # noqa: F401  (fixtures)

PATIENCE = 60.0
#: The header of AMQP 1.0 that a RabbitMQ of today refuses with.
SASL_HEADER = b"AMQP\x03\x01\x00\x00"


class RawClient:
    """A socket, and the frames that arrive on it."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection((address.host, address.port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = Decoder(frame_max=0)
        self._items: list[Any] = []

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def next(self) -> Any:
        """The next frame, Heartbeat or ProtocolHeader; None at the end of the stream."""
        while not self._items:
            octets = self.socket.recv(65_536)
            if not octets:
                return None
            self._items += self._decoder.feed(octets)
        return self._items.pop(0)

    def expect(self, method: str) -> Method:
        frame = self.next()
        assert isinstance(frame, Method) and frame.name == method, f"{frame} came instead of {method}"
        return frame

    def send(self, method: str, channel: int = 0, content: Content | None = None, **arguments: Any) -> None:
        self.write(encode(event_of("", channel, method, arguments, True, content)))

    def write(self, octets: bytes) -> None:
        self.socket.sendall(octets)

    def log_in(self, response: str = "\0guest\0guest", mechanism: str = "PLAIN", tells_failure: bool = True) -> None:
        self.write(PROTOCOL_HEADER)
        self.expect("connection.start")
        properties = {"capabilities": {"authentication_failure_close": True}} if tells_failure else {}
        self.send("connection.start-ok", client_properties=properties, mechanism=mechanism, response=response)

    def tune(self, channel_max: int = 2047, frame_max: int = 131_072, heartbeat: int = 0) -> None:
        offer = self.expect("connection.tune").arguments
        assert offer == {"channel_max": 2047, "frame_max": 131_072, "heartbeat": 60}
        self.send("connection.tune-ok", channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)

    def open(self, heartbeat: int = 0, vhost: str = "/", frame_max: int = 131_072) -> None:
        self.log_in()
        self.tune(heartbeat=heartbeat, frame_max=frame_max)
        self.send("connection.open", virtual_host=vhost)

    def opened(self, **limits: int) -> RawClient:
        self.open(**limits)
        self.expect("connection.open-ok")
        self.send("channel.open", 1)
        self.expect("channel.open-ok")
        return self

    def call(self, method: str, reply: str, content: Content | None = None, **arguments: Any) -> Method:
        self.send(method, 1, content, **arguments)
        return self.expect(reply)

    def message_count(self, queue: str = "q") -> int:
        reply = self.call("queue.declare", "queue.declare-ok", queue=queue, passive=True)
        return int(reply.arguments["message_count"])


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def raw(broker: EmbeddedBroker) -> Iterator[RawClient]:
    with RawClient(broker.address) as client:
        yield client


@pytest.fixture
def other(broker: EmbeddedBroker) -> Iterator[RawClient]:
    with RawClient(broker.address) as client:
        yield client.opened()


class TestOpening:
    @pytest.mark.parametrize("name", DIALECTS)
    def test_the_server_says_what_it_is(self, name: str) -> None:
        with EmbeddedBroker(DIALECTS[name]) as broker, RawClient(broker.address) as client:
            client.write(PROTOCOL_HEADER)
            start = client.expect("connection.start").arguments
        assert (start["version_major"], start["version_minor"], start["locales"]) == (0, 9, "en_US")
        assert set(start["mechanisms"].split()) == set(DIALECTS[name].mechanisms)
        properties = start["server_properties"]
        assert properties["product"] == "amqpspec"
        assert set(properties) >= {"version", "platform", "capabilities", "copyright", "information"}
        assert all(properties[key] for key in properties.keys() - {"capabilities"})
        assert dialect_of(properties) is DIALECTS[name]
        told = properties["capabilities"].get("publisher_confirms", False)
        assert told is (name != AMQP_0_9_1.name)

    def test_the_header_of_0_9_is_understood(self, raw: RawClient) -> None:
        raw.write(b"AMQP\x01\x01\x00\x09")
        raw.expect("connection.start")

    @pytest.mark.parametrize(
        ("octets", "answer"),
        [
            (b"AMQP\x00\x00\x09\x00", PROTOCOL_HEADER),
            (b"AMQP\x00\x01\x00\x00", SASL_HEADER),
            (b"AMQP\x01\x01\x08\x00", SASL_HEADER),
            (b"GET / HTTP/1.1\r\n\r\n", SASL_HEADER),
            (HEARTBEAT_OCTETS, SASL_HEADER),
            # what a RabbitMQ would go on with is not spoken here
            (SASL_HEADER, PROTOCOL_HEADER),
        ],
    )
    def test_another_protocol_is_answered_with_a_header(self, raw: RawClient, octets: bytes, answer: bytes) -> None:
        raw.write(octets)
        assert raw.next() == ProtocolHeader(answer)
        assert raw.next() is None

    def test_amqplain(self, raw: RawClient) -> None:
        table = encode_table({"LOGIN": "guest", "PASSWORD": "guest"})
        raw.log_in(table[4:].decode("utf-8", "surrogateescape"), "AMQPLAIN")
        raw.tune()
        raw.send("connection.open", virtual_host="/")
        raw.expect("connection.open-ok")

    @pytest.mark.parametrize("response", ["\0guest\0wrong", "\0nobody\0guest", "\0guest\0"])
    def test_a_failed_login_is_told_to_who_understands_it(self, raw: RawClient, response: str) -> None:
        raw.log_in(response)
        close = raw.expect("connection.close").arguments
        assert (close["reply_code"], close["class_id"], close["method_id"]) == (403, 0, 0)
        assert close["reply_text"] == (
            "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker"
            " logfile."
        )
        raw.send("connection.close-ok")
        assert raw.next() is None

    def test_a_failed_login_is_the_end_for_others(self, raw: RawClient) -> None:
        raw.log_in("\0guest\0wrong", tells_failure=False)
        assert raw.next() is None

    @pytest.mark.parametrize(
        ("response", "mechanism"),
        [("\0guest", "PLAIN"), ("guest\0guest", "PLAIN"), ("", "PLAIN"), (MASK, "PLAIN"), ("\x05LOG", "AMQPLAIN")],
    )
    def test_a_response_without_form_is_the_end_for_all(self, raw: RawClient, response: str, mechanism: str) -> None:
        raw.log_in(response, mechanism)
        assert raw.next() is None

    def test_an_unknown_mechanism_ends_the_connection(self, raw: RawClient) -> None:
        raw.log_in("", "GSSAPI")
        assert raw.next() is None

    @pytest.mark.parametrize("response", ["", "trace@example.org", "\0guest\0wrong"])
    def test_anonymous_is_guest(self, raw: RawClient, response: str) -> None:
        raw.log_in(response, "ANONYMOUS")
        raw.tune()
        raw.send("connection.open", virtual_host="/")
        raw.expect("connection.open-ok")
        raw.send("channel.open", 1)
        raw.expect("channel.open-ok")
        raw.send("basic.publish", 1, Content({"user_id": "somebody"}, b""), routing_key="q")
        text = raw.expect("channel.close").arguments["reply_text"]
        assert text == "PRECONDITION_FAILED - user_id property set to 'somebody' but authenticated user was 'guest'"

    @pytest.mark.parametrize(("password", "reply"), [("guest", "connection.tune"), ("other", "connection.close")])
    def test_anonymous_needs_a_guest_with_its_password(self, password: str, reply: str) -> None:
        """Also where the broker's own user is another one."""
        with EmbeddedBroker(user="app", password="secret") as broker:
            with RawClient(broker.address) as client:
                client.log_in("", "ANONYMOUS")
                refusal = client.expect("connection.close").arguments
            assert refusal["reply_code"] == 403 and "authentication mechanism ANONYMOUS" in refusal["reply_text"]
            guest = {"user": "guest", "password": password}
            broker.give(OperatorAction(OPERATOR, 0, "operator.add-user", guest, sent=True))
            with RawClient(broker.address) as client:
                client.log_in("", "ANONYMOUS")
                client.expect(reply)

    @pytest.mark.parametrize("limits", [{"channel_max": 2048}, {"channel_max": 0}, {"frame_max": 131_073}])
    def test_limits_above_the_offer_end_the_connection(self, raw: RawClient, limits: dict[str, int]) -> None:
        raw.log_in()
        raw.tune(**limits)
        assert raw.next() is None

    @pytest.mark.parametrize("frame_max", [0, 8191])
    def test_a_frame_max_out_of_range_ends_the_connection(self, raw: RawClient, frame_max: int) -> None:
        raw.log_in()
        raw.tune(frame_max=frame_max)
        assert raw.next() is None

    def test_an_unknown_virtual_host(self, raw: RawClient) -> None:
        raw.open(vhost="nope")
        close = raw.expect("connection.close").arguments
        assert close == {
            "reply_code": 530,
            "reply_text": "NOT_ALLOWED - vhost nope not found",
            "class_id": 10,
            "method_id": 40,
        }
        raw.send("connection.close-ok")
        assert raw.next() is None

    @pytest.mark.parametrize("method", ["connection.close", "connection.open", "channel.open"])
    def test_methods_out_of_turn_are_refused(self, raw: RawClient, method: str) -> None:
        raw.log_in()
        raw.expect("connection.tune")
        raw.send(method, int(method == "channel.open"))
        assert raw.next() is None

    @pytest.mark.parametrize(("method", "code"), [("connection.close", 504), ("channel.open", 505)])
    def test_before_open_it_is_said_why(self, raw: RawClient, method: str, code: int) -> None:
        raw.log_in()
        raw.tune()
        raw.send(method, int(method == "channel.open"))
        assert raw.expect("connection.close").arguments["reply_code"] == code

    def test_user_and_vhost_can_be_chosen(self) -> None:
        with EmbeddedBroker(user="anna", password="secret", vhost="v/1") as broker:
            assert "secret" not in repr(broker.address)
            with WireClient(broker.address) as client:
                client.open("a")
                with pytest.raises(AccessRefused):
                    client.open("b", password="guest")
                with pytest.raises(VhostNotFound):
                    client.open("b", vhost="/")

    def test_who_says_nothing_is_dropped(self, monkeypatch: pytest.MonkeyPatch, broker: EmbeddedBroker) -> None:
        monkeypatch.setattr(embedded_connection, "HANDSHAKE_PATIENCE", 0.05)
        with RawClient(broker.address) as client:
            client.write(b"AMQ")
            assert client.next() is None


class TestClosing:
    def test_close_is_answered_and_the_stream_ends(self, raw: RawClient) -> None:
        raw.opened().send("connection.close", reply_code=200, reply_text="bye")
        raw.expect("connection.close-ok")
        assert raw.next() is None

    def test_the_server_waits_for_close_ok(self, raw: RawClient) -> None:
        raw.opened().send("channel.open", 1)
        assert raw.expect("connection.close").arguments["reply_code"] == 504
        raw.send("queue.declare", 1, queue="ignored")
        raw.send("connection.close-ok")
        assert raw.next() is None

    def test_closes_that_cross_are_answered(self, raw: RawClient) -> None:
        raw.opened().send("channel.open", 1)
        raw.send("connection.close")
        raw.expect("connection.close")
        raw.expect("connection.close-ok")
        assert raw.next() is None

    def test_the_server_does_not_wait_for_ever(
        self, monkeypatch: pytest.MonkeyPatch, raw: RawClient, other: RawClient
    ) -> None:
        monkeypatch.setattr(embedded_connection, "ENDING_PATIENCE", 0.05)
        raw.opened().send("channel.open", 1)
        raw.expect("connection.close")
        assert raw.next() is None

    @pytest.mark.parametrize("reset", [False, True])
    def test_the_messages_of_a_lost_client_go_back(self, raw: RawClient, other: RawClient, reset: bool) -> None:
        raw.opened().call("queue.declare", "queue.declare-ok", queue="q")
        raw.call("queue.declare", "queue.declare-ok", queue="own", exclusive=True)
        other.send("basic.publish", 1, Content({}, b"x"), routing_key="q")
        other.call("basic.qos", "basic.qos-ok")
        raw.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t")
        raw.expect("basic.deliver")
        other.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t")
        if reset:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.socket.close()
        delivery = other.expect("basic.deliver")
        assert delivery.arguments["redelivered"] is True
        assert other.call("queue.declare", "channel.close", queue="own", passive=True).arguments["reply_code"] == 404

    def test_what_was_sent_before_the_end_counts(self, raw: RawClient, other: RawClient) -> None:
        raw.opened().call("queue.declare", "queue.declare-ok", queue="q")
        other.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t", no_ack=True)
        for _ in range(1000):
            raw.send("basic.publish", 1, Content({}, b"x"), routing_key="q")
        raw.socket.close()
        assert [other.next().name for _ in range(1000)] == ["basic.deliver"] * 1000


class TestBadOctets:
    @pytest.mark.parametrize(
        ("octets", "code"),
        [
            (b"\x09\x00\x00\x00\x00\x00\x00\xce", 501),
            (b"\x03\x00\x01\x00\x00\x00\x01x\xce", 505),
            (b"\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x00\x0a\xce", 501),
        ],
        ids=["type", "body without header", "no arguments"],
    )
    def test_they_close_the_connection_and_nothing_else(
        self, raw: RawClient, other: RawClient, octets: bytes, code: int
    ) -> None:
        raw.opened().write(octets)
        assert raw.expect("connection.close").arguments["reply_code"] == code
        raw.send("basic.qos", 1)
        raw.send("connection.close-ok")
        assert raw.next() is None
        other.call("basic.qos", "basic.qos-ok")

    @pytest.mark.parametrize(
        "octets",
        [
            encode(Method("", 1, "channel.open", {}, True))[:-1] + b"\xcd",
            struct.pack(">BHI", 3, 1, 200_000),
            PROTOCOL_HEADER,
        ],
        ids=["end", "size", "protocol header"],
    )
    def test_nothing_is_read_behind_a_lost_frame(
        self, raw: RawClient, octets: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(embedded_connection, "GRACE", 0.05)
        raw.opened().write(octets)
        assert raw.expect("connection.close").arguments["reply_code"] == 501
        raw.send("connection.close", reply_code=200)
        assert raw.next() is None

    def test_a_method_that_does_not_exist_ends_the_stream_at_once(self, raw: RawClient, other: RawClient) -> None:
        raw.opened().write(b"\x01\x00\x01\x00\x00\x00\x04\x00\x63\x00\x0a\xce")
        assert raw.next() is None
        other.call("basic.qos", "basic.qos-ok")

    def test_frames_before_them_count(self, raw: RawClient, other: RawClient) -> None:
        raw.opened().write(encode(Method("", 1, "queue.declare", {"queue": "q"}, True)) + b"\x09" * 7)
        raw.expect("queue.declare-ok")
        raw.expect("connection.close")
        assert other.message_count() == 0

    def test_frames_may_come_octet_by_octet(self, raw: RawClient) -> None:
        raw.opened()
        for octet in encode(Method("", 1, "queue.declare", {"queue": "q"}, True)):
            raw.write(bytes((octet,)))
        raw.expect("queue.declare-ok")

    def test_an_agreed_frame_max_holds_in_both_directions(self, raw: RawClient) -> None:
        raw.opened(frame_max=8192).call("queue.declare", "queue.declare-ok", queue="q")
        body = bytes(10_000)
        raw.write(encode(Method("", 1, "basic.publish", {"routing_key": "q"}, True, Content({}, body)), 8192))
        raw._decoder.frame_max = 8192
        reply = raw.call("basic.get", "basic.get-ok", queue="q")
        assert reply.content == Content({}, body)
        raw.write(struct.pack(">BHI", 3, 1, 8193))
        assert raw.expect("connection.close").arguments["reply_code"] == 501

    def test_content_before_login_is_not_taken(self, raw: RawClient) -> None:
        raw.write(PROTOCOL_HEADER + encode(Method("", 1, "basic.publish", {}, True, Content({}, b"x"))))
        raw.expect("connection.start")
        assert raw.next() is None


class TestHeartbeats:
    def test_they_keep_an_idle_connection_alive(self, broker: EmbeddedBroker) -> None:
        with WireClient(broker.address) as client:
            client.open("a", heartbeat=1)
            assert client.receive(3.5) is None
            assert client.is_open("a")

    def test_a_silent_client_hears_them_and_is_dropped(self, raw: RawClient) -> None:
        raw.opened(heartbeat=1)
        silent_since = time.monotonic()
        items = []
        while (item := raw.next()) is not None:
            items.append(item)
        assert 2.0 <= time.monotonic() - silent_since < PATIENCE
        assert len(items) >= 2 and set(items) == {Heartbeat()}


class TestManyClients:
    def test_a_slow_reader_holds_up_nobody_and_no_memory(
        self, broker: EmbeddedBroker, raw: RawClient, other: RawClient
    ) -> None:
        """Three times what the kernel's buffers take waits in the queue, not in the connection."""
        raw.opened().call("queue.declare", "queue.declare-ok", queue="q")
        raw.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t", no_ack=True)
        body = bytes(64 * 1024)
        published = 0
        while other.message_count() < 200:
            assert published < 2000, "everything was taken off the queue for a client that does not read"
            for _ in range(20):
                other.send("basic.publish", 1, Content({}, body), routing_key="q")
                published += 1
        for expected in range(1, published + 1):
            delivery = raw.expect("basic.deliver")
            assert (delivery.arguments["delivery_tag"], delivery.content) == (expected, Content({}, body))
        assert other.message_count() == 0

    def test_who_does_not_read_replies_is_not_read_from(
        self, broker: EmbeddedBroker, raw: RawClient, other: RawClient
    ) -> None:
        body = bytes(100_000)
        raw.opened().call("queue.declare", "queue.declare-ok", queue="q")
        raw.send("basic.publish", 1, Content({}, body), routing_key="q")
        requests = encode(Method("", 1, "basic.get", {"queue": "q"}, True)) + encode(
            Method("", 1, "basic.nack", {"delivery_tag": 0, "multiple": True, "requeue": True}, True)
        )
        for _ in range(300):
            raw.write(requests)
        for _ in range(50):
            other.call("basic.qos", "basic.qos-ok")
        waiting = max(len(client._outgoing) for client in broker._loop._clients.values())
        assert waiting <= embedded_connection.HIGH_WATER + len(body) + 1000
        for expected in range(1, 301):
            reply = raw.expect("basic.get-ok")
            assert (reply.arguments["delivery_tag"], reply.content) == (expected, Content({}, body))

    def test_consumers_take_turns(self, raw: RawClient, other: RawClient) -> None:
        raw.opened().call("queue.declare", "queue.declare-ok", queue="q")
        for client in (raw, other):
            client.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t")
        for number in range(6):
            raw.send("basic.publish", 1, Content({}, b"%d" % number), routing_key="q")
        bodies = [[client.expect("basic.deliver").content.body for _ in range(3)] for client in (raw, other)]
        assert bodies == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]

    def test_many_connections_come_and_go_without_a_trace(self, broker: EmbeddedBroker, other: RawClient) -> None:
        for _ in range(3):
            clients = [RawClient(broker.address).opened() for _ in range(40)]
            for client in clients:
                client.call("queue.declare", "queue.declare-ok", exclusive=True)
            for client in clients:
                client.send("connection.close")
                client.expect("connection.close-ok")
                client.socket.close()
            other.call("basic.qos", "basic.qos-ok")
        served = broker.responder.own.broker
        assert len(served.connections) <= 41
        while len(served.connections) > 1:
            other.call("basic.qos", "basic.qos-ok")
        assert len(served.channels) == 1 and not served.queues and not served.debtors

    def test_settled_messages_are_not_kept(self, raw: RawClient) -> None:
        raw.opened().call("queue.declare", "queue.declare-ok", queue="q")
        raw.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t")
        for tag in range(1, 1001):
            raw.send("basic.publish", 1, Content({}, b"x"), routing_key="q")
            raw.expect("basic.deliver")
            raw.send("basic.ack", 1, delivery_tag=tag)
        raw.call("basic.qos", "basic.qos-ok")
        gc.collect()
        assert sum(isinstance(thing, Message) for thing in gc.get_objects()) < 200


class TestItsOwnLife:
    def test_tls(self, certificate: Path, server_tls: ssl.SSLContext) -> None:  # noqa: F811
        with EmbeddedBroker(ssl_context=server_tls) as broker:
            assert broker.address.tls
            with WireClient(broker.address, None, ssl.create_default_context(cafile=certificate)) as client:
                client.open("a")

                def call(method: str, content: Content | None = None, **arguments: Any) -> Method:
                    client.send(event_of("a", 1, method, arguments, True, content))
                    event = client.receive(PATIENCE)
                    assert event is not None
                    return event

                call("channel.open")
                call("queue.declare", queue="q")
                call("confirm.select")
                content = Content({}, bytes(1_000_000))
                assert call("basic.publish", content, routing_key="q").name == "basic.ack"
                assert call("basic.get", queue="q").content == content
                client.send(Method("a", 0, "connection.close", {}, True))
                ends = [client.receive(PATIENCE), client.receive(PATIENCE)]
                assert [event.name for event in ends if event] == ["connection.close-ok", "socket.closed"]
            with RawClient(broker.address) as plain, contextlib.suppress(ConnectionResetError):
                plain.write(PROTOCOL_HEADER)
                while plain.socket.recv(1000):
                    pass
            with WireClient(broker.address, None, ssl.create_default_context(cafile=certificate)) as client:
                client.open("b")

    def test_serving_in_the_own_thread_until_stopped(self) -> None:
        broker = EmbeddedBroker()
        ready = threading.Event()
        thread = threading.Thread(target=broker.serve_forever, args=(lambda address: ready.set(),))
        thread.start()
        assert ready.wait(PATIENCE)
        with WireClient(broker.address) as client:
            client.open("a")
            broker.stop()
            thread.join(PATIENCE)
            assert not thread.is_alive()
            end = client.receive(PATIENCE)
            assert end is not None and end.name == "socket.closed"

    def test_a_port_in_use_is_told(self, broker: EmbeddedBroker) -> None:
        address = broker.address
        with pytest.raises(TargetUnreachable, match=f"port {address.port}: Address already in use"):
            EmbeddedBroker(port=address.port).__enter__()
        with pytest.raises(TargetUnreachable, match="port 70000"):
            EmbeddedBroker(port=70_000).serve_forever()

    def test_the_address_is_known_once_it_listens(self) -> None:
        with pytest.raises(RuntimeError, match="does not listen yet"):
            _ = EmbeddedBroker().address

    def test_a_defect_of_the_model_ends_one_connection_and_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise KeyError("lost")

        monkeypatch.setitem(RULES, "basic.qos", broken)
        with (
            pytest.raises(EmbeddedBrokerFailure, match=r"the model broke down over basic\.qos: KeyError: 'lost'"),
            EmbeddedBroker() as broker,
            RawClient(broker.address) as hurt,
            RawClient(broker.address) as well,
        ):
            hurt.opened().send("basic.qos", 1)
            assert hurt.expect("connection.close").arguments["reply_code"] == 541
            well.opened().call("queue.declare", "queue.declare-ok", queue="q")

    @pytest.mark.parametrize("place", ["observe", "permitted", "all_come_about", "expire_punctually"])
    def test_wherever_the_model_breaks_down_others_are_served(
        self, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        """Once, and then no more: while a frame is made, over the choice of the next one, and as time passes."""
        planted = threading.Event()
        sound = getattr(embedded_responder, place)

        def broken(*given: Any, **named: Any) -> Any:
            if planted.is_set():
                planted.clear()
                raise KeyError("planted")
            return sound(*given, **named)

        monkeypatch.setattr(embedded_responder, place, broken)
        with (
            pytest.raises(EmbeddedBrokerFailure, match=r"broke down.*KeyError: 'planted'"),
            EmbeddedBroker() as broker,
            RawClient(broker.address) as well,
            RawClient(broker.address) as hurt,
        ):
            well.opened()
            hurt.opened()
            well.call("queue.declare", "queue.declare-ok", queue="q", arguments={"x-expires": 60_000})
            planted.set()
            if place == "expire_punctually":
                hurt.call("queue.declare", "queue.declare-ok", queue="short", arguments={"x-expires": 1})
            else:
                hurt.send("queue.declare", 1, queue="other")
            assert hurt.expect("connection.close").arguments["reply_code"] == 541
            well.call("queue.declare", "queue.declare-ok", queue="q", passive=True)

    def test_the_end_of_a_connection_that_breaks_down_leaves_nothing_of_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(EmbeddedBrokerFailure, match="over the end of a connection"), EmbeddedBroker() as broker:
            with RawClient(broker.address) as gone:
                gone.opened()
                gone.call("queue.declare", "queue.declare-ok", queue="q")
                gone.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="t")
                take = broker.responder.own.take
                ended = threading.Event()

                def broken(event: TraceEvent) -> None:
                    if event.name == "socket.abort" and not ended.is_set():
                        ended.set()
                        raise KeyError("planted")
                    take(event)

                monkeypatch.setattr(broker.responder.own, "take", broken)
            assert ended.wait(PATIENCE)
            with RawClient(broker.address) as client:
                client.opened()
                client.send("basic.publish", 1, Content({}, b"m"), routing_key="q")
                client.call("basic.get", "basic.get-ok", queue="q", no_ack=True)

    def test_a_frame_that_cannot_be_encoded_is_a_defect_as_well(self) -> None:
        with (
            pytest.raises(EmbeddedBrokerFailure, match="cannot be encoded"),
            EmbeddedBroker() as broker,
            RawClient(broker.address) as client,
        ):
            client.opened()
            served = broker.responder.own.broker
            served.owe(served.channel("client-1", 1), "queue.declare-ok", {"queue": "x" * 256}, "QUEUE-001")
            client.send("basic.qos", 1)
            assert client.expect("connection.close").arguments["reply_code"] == 541

    def test_a_queue_that_lives_for_weeks_breaks_nothing_down(
        self, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No selector waits for so long."""
        monkeypatch.setattr(embedded_connection, "HANDSHAKE_PATIENCE", 0.2)
        with RawClient(broker.address) as client:
            client.opened().call("queue.declare", "queue.declare-ok", queue="q", arguments={"x-expires": 2**32 - 1})
        with RawClient(broker.address) as silent:
            assert silent.next() is None, "the last that the broker had to do before the queue expires"
        with RawClient(broker.address) as client:
            client.opened().call("queue.declare", "queue.declare-ok", queue="q", passive=True)


def test_a_dialect_is_given_by_name_as_well() -> None:
    for name, dialect in DIALECTS.items():
        assert EmbeddedBroker(name).dialect == EmbeddedBroker(dialect).dialect == dialect
    with EmbeddedBroker("rabbitmq-4.0") as broker, WireClient(broker.address) as client:
        client.open("a")
        assert dialect_of(client.server_properties("a")) == DIALECTS["rabbitmq-4.0"]


@pytest.mark.parametrize("given", ["rabbitmq-2", "", 4])
def test_what_is_no_dialect_is_told_at_once_with_the_names_that_there_are(given: Any) -> None:
    with pytest.raises(ValueError, match=r"dialect.*choose from.*rabbitmq-4\.3"):
        EmbeddedBroker(given)
