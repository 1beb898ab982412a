"""The wire client against brokers that are scripts: a thread with a socket, which does what the test says."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from amqpspec.model.protocol.methods import Content, Method, event_of
from amqpspec.targets.address import Address
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.codec.methods_codec import (
    HEARTBEAT_OCTETS,
    PROTOCOL_HEADER,
    Decoder,
    Heartbeat,
    ProtocolHeader,
    encode,
)
from amqpspec.targets.errors import (
    AccessRefused,
    NotYetOpen,
    OpenRefused,
    TargetError,
    TargetUnreachable,
    VhostNotFound,
)
from tests.patience import patience

PASSWORD = "correct horse"
SERVER_PROPERTIES = {"product": "Scripted", "capabilities": {"basic.nack": True}}
PATIENCE = 60.0


class Peer:
    """The broker's end of one connection, for a script."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        sock.settimeout(PATIENCE)
        self._decoder = Decoder("peer", sent=True, frame_max=0)
        self._items: list[Any] = []

    def next(self) -> Any:
        """The next frame, Heartbeat or ProtocolHeader of the client; None at the end of its stream."""
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
        self.write(octets(method, channel, content, **arguments))

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def greet(self, *, heartbeat: int = 0, frame_max: int = 131_072, channel_max: int = 2047) -> list[Method]:
        """The whole handshake; start-ok, tune-ok and open of the client."""
        start_ok = self.start()
        self.send("connection.tune", heartbeat=heartbeat, frame_max=frame_max, channel_max=channel_max)
        tune_ok, opened = self.expect("connection.tune-ok"), self.expect("connection.open")
        self.send("connection.open-ok")
        return [start_ok, tune_ok, opened]

    def start(self) -> Method:
        header = self.next()
        assert isinstance(header, ProtocolHeader) and header.octets == PROTOCOL_HEADER
        self.send(
            "connection.start",
            version_minor=9,
            server_properties=SERVER_PROPERTIES,
            mechanisms="AMQPLAIN PLAIN",
            locales="en_US",
        )
        return self.expect("connection.start-ok")

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def wait_for_end(self) -> None:
        while self.next() is not None:
            pass


def octets(method: str, channel: int = 0, content: Content | None = None, **arguments: Any) -> bytes:
    return encode(event_of("", channel, method, arguments, False, content))


Script = Callable[[Peer], None]


class Broker:
    """Plays one script per connection, in order. Errors of the scripts are raised by `join`."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._tls = tls
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._play, args=(scripts,), daemon=True)]
        self._threads[0].start()
        self.port: int = self._listener.getsockname()[1]
        self.address = Address("127.0.0.1", self.port, "user", PASSWORD, "/", tls is not None)

    def _play(self, scripts: tuple[Script, ...]) -> None:
        for script in scripts:
            sock, _ = self._listener.accept()
            thread = threading.Thread(target=self._play_one, args=(script, sock), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _play_one(self, script: Script, sock: socket.socket) -> None:
        try:
            with contextlib.closing(self._tls.wrap_socket(sock, server_side=True) if self._tls else sock) as end:
                script(Peer(end))
        except BaseException as error:  # noqa: BLE001 - handed to the test by join
            self._errors.append(error)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a script did not end"
        self._listener.close()
        for error in self._errors:
            raise error


@pytest.fixture
def brokers() -> Iterator[Callable[..., Broker]]:
    started: list[Broker] = []

    def start(*scripts: Script, tls: ssl.SSLContext | None = None) -> Broker:
        started.append(Broker(*scripts, tls=tls))
        return started[-1]

    yield start
    for broker in started:
        broker.join()


@pytest.fixture
def seen() -> Iterator[list[Method]]:
    """What the observer saw; in the end its times must never decrease, and no credential must be in it."""
    methods: list[Method] = []
    yield methods
    assert [method.time for method in methods] == sorted(method.time for method in methods)
    assert PASSWORD not in repr(methods)


def methods(events: list[Method]) -> list[str]:
    return [("> " if method.sent else "< ") + method.name for method in events]


def receive(client: WireClient) -> Method:
    event = client.receive(PATIENCE)
    assert event is not None, "nothing came"
    return event


HANDSHAKE = [
    "< connection.start", "> connection.start-ok", "< connection.tune", "> connection.tune-ok",
    "> connection.open", "< connection.open-ok",
]  # fmt: skip

Brokers = Callable[..., Broker]


class TestOpening:
    def test_handshake(self, brokers: Brokers, seen: list[Method]) -> None:
        theirs: list[Method] = []

        def script(peer: Peer) -> None:
            theirs.extend(peer.greet(heartbeat=60, frame_max=8_192))
            peer.wait_for_end()

        broker = brokers(script)
        with WireClient(broker.address, seen.append) as client:
            assert not client.is_open("a")
            client.open("a")
            assert client.is_open("a")
            assert client.server_properties("a") == SERVER_PROPERTIES
            tune = client.tune("a")
            assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 8_192, 0)
        broker.join()
        start_ok, tune_ok, opened = theirs
        assert start_ok.arguments["response"] == f"\0user\0{PASSWORD}"
        capabilities = start_ok.arguments["client_properties"]["capabilities"]
        assert start_ok.arguments["client_properties"]["product"] == "amqpspec"
        assert set(capabilities) == {
            "consumer_cancel_notify", "publisher_confirms", "basic.nack", "connection.blocked",
            "authentication_failure_close", "exchange_exchange_bindings", "per_consumer_qos",
        }  # fmt: skip
        assert all(value is True for value in capabilities.values())
        assert tune_ok.arguments == {"channel_max": 2047, "frame_max": 8_192, "heartbeat": 0}
        assert opened.arguments == {"virtual_host": "/"}
        assert methods(seen) == HANDSHAKE
        assert seen[1].arguments["response"] == "***"

    def test_limits_are_those_of_the_handshake_and_frames_may_have_4096_octets(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            peer.greet()
            peer.next()
            peer.send("basic.deliver", 1, Content({}, bytes(3000)))
            peer.wait_for_end()

        with WireClient(brokers(script).address) as client:
            client.open("a", frame_max=100)
            assert client.tune("a").frame_max == 100
            again = {"channel_max": 0, "frame_max": 50, "heartbeat": 0}
            client.send(Method("a", 0, "connection.tune-ok", again, True))
            assert client.tune("a").frame_max == 100
            assert receive(client).name == "basic.deliver"

    def test_overrides_are_sent_as_they_are(self, brokers: Brokers, seen: list[Method]) -> None:
        theirs: list[Method] = []
        broker = brokers(lambda peer: theirs.extend(peer.greet(frame_max=4_096, channel_max=10)))
        with WireClient(broker.address, seen.append) as client:
            client.open(
                "a",
                client_properties={"product": "other"},
                heartbeat=7,
                frame_max=200_000,
                channel_max=0,
                user="eve",
                password=PASSWORD + "!",
                vhost="v/w",
            )
            tune = client.tune("a")
        broker.join()
        assert theirs[0].arguments["client_properties"] == {"product": "other"}
        assert theirs[0].arguments["response"] == f"\0eve\0{PASSWORD}!"
        assert theirs[1].arguments == {"channel_max": 0, "frame_max": 200_000, "heartbeat": 7}
        assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (0, 200_000, 7)
        assert theirs[2].arguments == {"virtual_host": "v/w"}

    def test_octet_by_octet(self, brokers: Brokers, seen: list[Method]) -> None:
        class Slow(Peer):
            def write(self, data: bytes) -> None:
                for value in data:
                    self.socket.sendall(bytes([value]))

        def script(peer: Peer) -> None:
            slow = Slow(peer.socket)
            slow.greet()
            slow.send("basic.deliver", 1, Content({"message_id": "m"}, b"body"), consumer_tag="t", delivery_tag=1)
            slow.wait_for_end()

        with WireClient(brokers(script).address, seen.append) as client:
            client.open("a")
            method = receive(client)
            assert method.name == "basic.deliver" and method.content == Content({"message_id": "m"}, b"body")

    def test_what_follows_open_ok_at_once_is_received(self, brokers: Brokers, seen: list[Method]) -> None:
        def script(peer: Peer) -> None:
            peer.start()
            peer.send("connection.tune", frame_max=131_072)
            peer.expect("connection.tune-ok")
            peer.write(octets("connection.open-ok") + octets("connection.blocked", reason="alarm"))
            peer.wait_for_end()

        with WireClient(brokers(script).address, seen.append) as client:
            client.open("a")
            assert methods(seen) == HANDSHAKE
            assert receive(client).arguments == {"reason": "alarm"}

    def test_refused_password(self, brokers: Brokers, seen: list[Method]) -> None:
        def script(peer: Peer) -> None:
            peer.start()
            peer.send("connection.close", reply_code=403, reply_text=f"ACCESS_REFUSED\n{PASSWORD} is wrong")
            peer.expect("connection.close-ok")
            peer.wait_for_end()

        def observe(method: Method) -> None:
            if method.sent:  # what the broker itself gives away is not ours to mask
                seen.append(method)

        with WireClient(brokers(script).address, observe) as client:
            with pytest.raises(AccessRefused) as caught:
                client.open("a")
            assert not client.is_open("a")
            assert methods(seen) == ["> connection.start-ok", "> connection.close-ok"]
            message = str(caught.value)
            assert "403 ACCESS_REFUSED *** is wrong" in message
            assert PASSWORD not in message and "\n" not in message

    @pytest.mark.parametrize(
        ("stage", "end", "kind", "words"),
        [
            ("login", None, AccessRefused, "ended the stream"),
            ("login", (541, "INTERNAL_ERROR"), OpenRefused, "541"),
            ("login", (530, "NOT_ALLOWED - login failure"), AccessRefused, "530"),
            ("open", (530, "NOT_ALLOWED - vhost / not found"), VhostNotFound, "no such virtual host"),
            ("open", (402, "INVALID_PATH"), VhostNotFound, "no such virtual host"),
            ("open", (530, "NOT_ALLOWED - access to vhost '/' refused"), OpenRefused, "access to vhost"),
            ("open", (320, "CONNECTION_FORCED - virtual host is not active"), NotYetOpen, "320"),
            ("open", None, TargetUnreachable, "handshake"),
        ],
    )
    def test_refusals(
        self,
        brokers: Brokers,
        seen: list[Method],
        stage: str,
        end: tuple[int, str] | None,
        kind: type[TargetError],
        words: str,
    ) -> None:
        def script(peer: Peer) -> None:
            peer.start()
            if stage == "open":
                peer.send("connection.tune", frame_max=131_072)
                peer.expect("connection.tune-ok")
                peer.expect("connection.open")
            if end is not None:
                peer.send("connection.close", reply_code=end[0], reply_text=end[1])
                peer.expect("connection.close-ok")

        with WireClient(brokers(script).address, seen.append) as client:
            with pytest.raises(TargetError, match=words) as caught:
                client.open("a")
            assert type(caught.value) is kind
            assert PASSWORD not in str(caught.value)
            expected = ["< connection.close", "> connection.close-ok"] if end else ["< socket.closed"]
            assert methods(seen)[-len(expected) :] == expected

    def test_a_name_can_be_used_after_a_refusal(self, brokers: Brokers) -> None:
        def refuse(peer: Peer) -> None:
            peer.start()

        def accept(peer: Peer) -> None:
            peer.greet()
            peer.wait_for_end()

        with WireClient(brokers(refuse, accept).address) as client:
            with pytest.raises(AccessRefused):
                client.open("a")
            client.open("a")
            assert client.is_open("a")

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak AMQP 0-9-1: it sent 'HTTP/1.1 400 Bad Request'"),
            (b"\x07\x00\x00\x00", "does not speak AMQP 0-9-1: there is no frame type 7"),
            (b"AMQP\x03\x01\x00\x00", "does not speak AMQP 0-9-1"),
            (b"\x01\x00\x00\xff\xff\xff\xff", "exceeds the limit"),
            (octets("connection.tune"), "connection.tune where connection.start was due"),
            (octets("connection.start", channel=1, mechanisms="PLAIN"), "where connection.start was due"),
            (b"", "before connection.start"),
            (b"\x01\x00", "in the middle of a frame"),
            (octets("connection.close", reply_code=320, reply_text="CONNECTION_FORCED"), "320"),
        ],
    )
    def test_no_broker(self, brokers: Brokers, seen: list[Method], answer: bytes, words: str) -> None:
        def script(peer: Peer) -> None:
            peer.next()
            peer.write(answer)

        with (
            WireClient(brokers(script).address, seen.append) as client,
            pytest.raises(TargetUnreachable, match=words),
        ):
            client.open("a")

    def test_no_plain_login(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            peer.next()
            peer.send("connection.start", version_minor=9, mechanisms="EXTERNAL")
            peer.wait_for_end()

        with WireClient(brokers(script).address) as client, pytest.raises(AccessRefused, match="EXTERNAL"):
            client.open("a")

    def test_nobody_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        with pytest.raises(TargetUnreachable, match=f"127.0.0.1 port {port}: Connection refused"):
            WireClient(Address("127.0.0.1", port)).open("a")

    def test_no_such_host(self) -> None:
        with pytest.raises(TargetUnreachable, match=r"cannot resolve the host no-such-host\.invalid"):
            WireClient(Address("no-such-host.invalid")).open("a")
        with pytest.raises(TargetUnreachable, match="cannot resolve"):
            WireClient(Address("x" * 70)).open("a")

    @pytest.mark.parametrize("drip", [b"", HEARTBEAT_OCTETS, octets("connection.start", mechanisms="P" * 3000)])
    def test_one_deadline_for_the_whole_handshake(self, brokers: Brokers, seen: list[Method], drip: bytes) -> None:
        def script(peer: Peer) -> None:
            with contextlib.suppress(OSError):
                peer.next()
                at = 0
                while not select.select([peer.socket], [], [], 0.02)[0]:
                    peer.write(drip[at : at + 1])
                    at = (at + 1) % (len(drip) or 1)

        with WireClient(brokers(script).address, seen.append) as client:
            begin = time.monotonic()
            with pytest.raises(TargetUnreachable, match=r"did not complete the handshake within 0\.5 s"):
                client.open("a", timeout=0.5)
            assert 0.4 < time.monotonic() - begin < patience(5)
            assert methods(seen) == ["> socket.abort"]

    def test_a_flood_of_heartbeats_does_not_hold_the_deadline_up(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer.write(HEARTBEAT_OCTETS * 1000)

        with WireClient(brokers(script).address) as client:
            begin = time.monotonic()
            with pytest.raises(TargetUnreachable, match="handshake within"):
                client.open("a", timeout=0.5)
            assert time.monotonic() - begin < patience(5)


def opened(then: Script) -> Script:
    def script(peer: Peer) -> None:
        peer.greet()
        then(peer)

    return script


class TestSendingAndReceiving:
    def test_round_trips_in_order(self, brokers: Brokers, seen: list[Method]) -> None:
        def script(peer: Peer) -> None:
            while (frame := peer.next()) is not None:
                peer.send("basic.get-empty" if frame.name == "basic.get" else "basic.qos-ok", frame.channel)

        with WireClient(brokers(opened(script)).address, seen.append) as client:
            client.open("a")
            for channel in (1, 2):
                client.send(Method("a", channel, "basic.qos", {}, True))
                client.send(Method("a", channel, "basic.get", {"queue": "q"}, True))
            answers = [receive(client) for _ in range(4)]
        assert [(frame.channel, frame.name) for frame in answers] == [
            (1, "basic.qos-ok"), (1, "basic.get-empty"), (2, "basic.qos-ok"), (2, "basic.get-empty"),
        ]  # fmt: skip
        assert methods(seen[6:]) == ["> basic.qos", "> basic.get"] * 2 + ["< basic.qos-ok", "< basic.get-empty"] * 2
        assert all(frame.connection == "a" and frame.time > 0 for frame in seen)

    def test_the_observer_sees_a_frame_before_it_is_written(self, brokers: Brokers) -> None:
        written = threading.Event()

        def script(peer: Peer) -> None:
            peer.expect("basic.qos")
            written.set()

        def observe(method: Method) -> None:
            if method.name == "basic.qos":
                assert not written.wait(0.1)

        with WireClient(brokers(opened(script)).address, observe) as client:
            client.open("a")
            client.send(Method("a", 1, "basic.qos", {}, True))
            assert written.wait(PATIENCE)

    def test_times_follow_the_order_in_which_frames_are_seen(self, brokers: Brokers, seen: list[Method]) -> None:
        def script(peer: Peer) -> None:
            peer.write(octets("basic.qos-ok", 1) + octets("basic.qos-ok", 2))
            peer.wait_for_end()

        with WireClient(brokers(opened(script)).address, seen.append) as client:
            client.open("a")
            receive(client)
            client.send(Method("a", 1, "basic.qos", {}, True))
            receive(client)  # had come together with the first one
            assert [method.time for method in seen] == sorted(method.time for method in seen)

    def test_several_connections(self, brokers: Brokers, seen: list[Method]) -> None:
        turn = [threading.Event(), threading.Event()]

        def script(number: int) -> Script:
            def play(peer: Peer) -> None:
                turn[number].wait(PATIENCE)
                peer.send("basic.deliver", 1, Content({}, b""), delivery_tag=number)
                peer.wait_for_end()

            return opened(play)

        with WireClient(brokers(script(0), script(1)).address, seen.append) as client:
            client.open("a")
            client.open("b")
            for number, name in ((1, "b"), (0, "a")):
                turn[number].set()
                method = receive(client)
                assert (method.connection, method.arguments["delivery_tag"]) == (name, number)

    def test_nothing_comes(self, brokers: Brokers) -> None:
        with WireClient(brokers(opened(Peer.wait_for_end)).address) as client:
            assert client.receive(5) is None  # no connection: nothing to wait for
            client.open("a")
            begin = time.monotonic()
            assert client.receive(0) is None
            assert time.monotonic() - begin < patience(1)
            assert client.receive(0.2) is None
            assert 0.15 < time.monotonic() - begin < patience(5)

    def test_bodies_are_cut_to_the_negotiated_size(self, brokers: Brokers) -> None:
        body = bytes(range(256)) * 100
        arrived: list[bytes] = []

        def script(peer: Peer) -> None:
            peer.greet(frame_max=4_096)
            size = len(encode(Method("", 1, "basic.publish", {}, True, Content({}, body)), 4_096))
            while size > len(b"".join(arrived)):
                arrived.append(peer.socket.recv(65_536))

        broker = brokers(script)
        with WireClient(broker.address) as client:
            client.open("a")
            client.send(Method("a", 1, "basic.publish", {}, True, Content({}, body)))
            broker.join()
        (frame,) = Decoder(frame_max=4_096).feed(b"".join(arrived))
        assert isinstance(frame, Method) and frame.content is not None and frame.content.body == body

    def test_a_frame_above_the_negotiated_size_is_garbage(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            peer.greet(frame_max=4_096)
            peer.write(encode(Method("", 1, "basic.get-ok", {}, False, Content({}, bytes(5_000))), 0))
            peer.wait_for_end()

        with WireClient(brokers(script).address) as client:
            client.open("a")
            method = receive(client)
            assert (method.name, method.arguments["reason"]) == (
                "socket.garbage", "a frame of 5008 octets exceeds the limit of 4096",
            )  # fmt: skip

    def test_anything_at_all_can_be_sent(self, brokers: Brokers, seen: list[Method]) -> None:
        def script(peer: Peer) -> None:
            assert peer.socket.recv(100) == b"\xffnonsense"
            peer.write(PROTOCOL_HEADER)

        with WireClient(brokers(script).address, seen.append) as client:
            client.connect("a")
            client.send_octets("a", b"\xffnonsense")
            method = receive(client)
            assert (method.name, method.arguments) == ("protocol.header", {"octets": "414d515000000901"})
            assert receive(client).name == "socket.closed"

    def test_secrets_go_to_the_broker_but_not_to_the_observer(self, brokers: Brokers, seen: list[Method]) -> None:
        secrets = {
            "connection.update-secret": "new_secret",
            "connection.secure-ok": "response",
            "connection.start-ok": "response",
        }

        def script(peer: Peer) -> None:
            for method, argument in secrets.items():
                assert peer.expect(method).arguments[argument].endswith(PASSWORD)

        broker = brokers(opened(script))
        with WireClient(broker.address, seen.append) as client:
            client.open("a")
            for method, argument in secrets.items():
                secret = f"\0user\0{PASSWORD}" if method == "connection.start-ok" else PASSWORD
                client.send(event_of("a", 0, method, {argument: secret}, True))
                assert seen[-1].arguments == {argument: "***"}
            broker.join()

    def test_both_sides_write_before_they_read(self, brokers: Brokers) -> None:
        size = 10_000_000

        def script(peer: Peer) -> None:
            peer.send("basic.deliver", 1, Content({}, bytes(size)))
            assert peer.expect("basic.publish").content == Content({}, b"x" * size)
            peer.send("basic.ack", 1)
            peer.wait_for_end()

        with WireClient(brokers(opened(script)).address) as client:
            client.open("a")
            client.send(Method("a", 1, "basic.publish", {}, True, Content({}, b"x" * size)))
            assert receive(client).content == Content({}, bytes(size))
            assert receive(client).name == "basic.ack"

    def test_a_write_waits_for_what_another_connection_is_owed(self, brokers: Brokers) -> None:
        size = 10_000_000
        delivered = threading.Event()

        def greedy(peer: Peer) -> None:
            peer.send("basic.deliver", 1, Content({}, bytes(size)))
            delivered.set()
            peer.wait_for_end()

        def held_up(peer: Peer) -> None:
            assert delivered.wait(PATIENCE)
            peer.expect("basic.publish")
            peer.wait_for_end()

        with WireClient(brokers(opened(greedy), opened(held_up)).address) as client:
            client.open("a")
            client.open("b")
            client.send(Method("b", 1, "basic.publish", {}, True, Content({}, bytes(size))))
            assert client.is_open("b")
            assert receive(client).name == "basic.deliver"

    def test_a_broker_that_reads_nothing(self, brokers: Brokers, seen: list[Method]) -> None:
        done = threading.Event()

        def script(peer: Peer) -> None:
            done.wait(PATIENCE)

        with WireClient(brokers(opened(script)).address, seen.append, write_patience=0.2) as client:
            client.open("a")
            begin = time.monotonic()
            method = Method("a", 1, "basic.publish", {}, True, Content({}, bytes(16_000_000)))
            client.send(method)
            assert time.monotonic() - begin < patience(3)
            assert not client.is_open("a")
            assert receive(client).arguments == {"reason": "the broker has stopped reading"}
            done.set()

    def test_small_frames_are_not_read_ahead_without_end(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer.write(octets("basic.ack", 1, delivery_tag=1) * 1000)

        with WireClient(brokers(opened(script)).address, write_patience=3) as client:
            client.open("a")
            client.send(Method("a", 1, "basic.publish", {}, True, Content({}, bytes(16_000_000))))
            waiting = 0
            while receive(client).name == "basic.ack":
                waiting += 1
            assert waiting < 30_000  # 630 KB of octets, but twenty times as much in memory


class TestEnding:
    def test_end_of_the_stream(self, brokers: Brokers, seen: list[Method]) -> None:
        with WireClient(brokers(opened(lambda peer: peer.send("basic.qos-ok", 1))).address, seen.append) as client:
            client.open("a")
            assert receive(client).name == "basic.qos-ok"
            method = receive(client)
            assert (method.name, method.channel, method.sent) == ("socket.closed", 0, False)
            assert method.arguments == {"reason": "the broker ended the stream"}
            assert not client.is_open("a")
            assert client.receive(1) is None
            client.send(Method("a", 1, "basic.qos", {}, True))
            client.abort("a")
            assert methods(seen[6:]) == ["< basic.qos-ok", "< socket.closed"]

    @pytest.mark.parametrize(
        "part", [octets("basic.qos-ok", 1)[:-1], octets("basic.deliver", 1, Content({}, b"x"))[:-9]]
    )
    def test_end_within_a_frame(self, brokers: Brokers, part: bytes) -> None:
        with WireClient(brokers(opened(lambda peer: peer.write(part))).address) as client:
            client.open("a")
            assert receive(client).arguments == {"reason": "the broker ended the stream in the middle of a frame"}

    def test_reset(self, brokers: Brokers) -> None:
        with WireClient(brokers(opened(Peer.reset)).address) as client:
            client.open("a")
            assert receive(client).arguments == {"reason": "the broker reset the connection"}

    def test_garbage(self, brokers: Brokers, seen: list[Method]) -> None:
        def script(peer: Peer) -> None:
            peer.write(octets("basic.qos-ok", 1) + b"\x00\x01\x02" + octets("basic.qos-ok", 1))
            peer.wait_for_end()  # the client hangs up

        broker = brokers(opened(script), opened(Peer.wait_for_end))
        with WireClient(broker.address, seen.append) as client:
            client.open("a")
            assert receive(client).name == "basic.qos-ok"
            method = receive(client)
            assert (method.name, method.sent) == ("socket.garbage", False)
            assert method.arguments["reason"] == "there is no frame type 0"
            assert method.arguments["octets"].startswith("000102")
            assert client.receive(0.1) is None and not client.is_open("a")
            client.open("a")
            assert client.is_open("a")

    def test_a_method_with_octets_behind_its_arguments_ends_nothing(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            peer.write(bytes.fromhex("01000100000008003c001e01740001ce") + octets("basic.qos-ok", 1))
            peer.wait_for_end()

        with WireClient(brokers(opened(script)).address) as client:
            client.open("a")
            cancel = receive(client)
            assert (cancel.name, cancel.arguments) == (
                "basic.cancel", {"consumer_tag": "t", "nowait": False, "octets_behind": "01"},
            )  # fmt: skip
            assert receive(client).name == "basic.qos-ok" and client.is_open("a")

    def test_what_the_broker_said_comes_before_the_failed_write(self, brokers: Brokers, seen: list[Method]) -> None:
        gone = threading.Event()

        def script(peer: Peer) -> None:
            peer.send("connection.close", reply_code=320, reply_text="CONNECTION_FORCED")
            peer.socket.shutdown(socket.SHUT_RDWR)
            peer.socket.close()
            gone.set()

        with WireClient(brokers(opened(script)).address, seen.append) as client:
            client.open("a")
            assert gone.wait(PATIENCE)
            while client.is_open("a"):  # the first write may still succeed
                client.send(Method("a", 1, "basic.qos", {}, True))
            assert [receive(client).name, receive(client).name] == ["connection.close", "socket.closed"]
            assert client.receive(0.1) is None

    def test_abort_resets(self, brokers: Brokers, seen: list[Method]) -> None:
        ready = threading.Event()

        def script(peer: Peer) -> None:
            peer.write(octets("basic.qos-ok", 1) * 2)
            ready.set()
            with pytest.raises(ConnectionResetError):
                peer.wait_for_end()

        broker = brokers(opened(script), opened(Peer.wait_for_end))
        with WireClient(broker.address, seen.append) as client:
            client.open("a")
            assert ready.wait(PATIENCE)
            receive(client)  # the second one waits within the client
            client.abort("a")
            assert not client.is_open("a")
            assert client.receive(0.1) is None
            client.open("a")
            assert methods(seen) == [*HANDSHAKE, "< basic.qos-ok", "> socket.abort", *HANDSHAKE]

    def test_close_ends_everything_silently(self, brokers: Brokers, seen: list[Method]) -> None:
        broker = brokers(opened(Peer.wait_for_end), opened(Peer.wait_for_end))
        client = WireClient(broker.address, seen.append)
        client.open("a")
        client.open("b")
        client.close()
        broker.join()
        assert methods(seen) == HANDSHAKE * 2
        assert not client.is_open("a") and client.receive(1) is None

    def test_names(self, brokers: Brokers) -> None:
        with WireClient(brokers(opened(lambda peer: None)).address) as client:
            for use in (
                lambda: client.send(Method("a", 1, "basic.qos", {}, True)),
                lambda: client.send_octets("a", b""),
                lambda: client.abort("a"),
                lambda: client.tune("a"),
                lambda: client.server_properties("a"),
            ):
                with pytest.raises(ValueError, match="no connection a"):
                    use()
            client.open("a")
            with pytest.raises(ValueError, match="the connection a is open"):
                client.open("a")


class TestHeartbeats:
    def test_sent_when_idle_and_never_handed_out(self, brokers: Brokers, seen: list[Method]) -> None:
        times: list[float] = []

        def script(peer: Peer) -> None:
            peer.greet()
            times.append(time.monotonic())
            while isinstance(peer.next(), Heartbeat):
                times.append(time.monotonic())
                peer.write(HEARTBEAT_OCTETS)

        broker = brokers(script)
        with WireClient(broker.address, seen.append) as client:
            client.open("a", heartbeat=1)
            assert client.receive(2.8) is None
            assert client.is_open("a")
        broker.join()
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert len(gaps) >= 3 and min(gaps) > 0.4
        assert methods(seen) == HANDSHAKE

    def test_a_silent_broker_is_given_up(self, brokers: Brokers) -> None:
        with WireClient(brokers(opened(Peer.wait_for_end)).address) as client:
            client.open("a", heartbeat=1)
            begin = time.monotonic()
            assert receive(client).arguments == {"reason": "no heartbeat"}
            assert 1.8 < time.monotonic() - begin < patience(6)
            assert not client.is_open("a")

    def test_what_came_after_the_last_look_is_a_sign_of_life(
        self, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a busy machine much may come between the look and the decision."""

        def script(peer: Peer) -> None:
            with contextlib.suppress(ConnectionResetError):  # the client may end with something unread
                while isinstance(peer.next(), Heartbeat):
                    peer.write(HEARTBEAT_OCTETS)

        with WireClient(brokers(opened(script)).address) as client:
            client.open("a", heartbeat=1)
            selector = client._connections._selector
            select = selector.select
            monkeypatch.setattr(selector, "select", lambda wait: select(min(wait, 0.1)) and [])
            assert client.receive(2.8) is None
            assert client.is_open("a")

    def test_sent_on_other_connections_while_a_write_is_stuck(self, brokers: Brokers) -> None:
        beats: list[float] = []

        def kept_alive(peer: Peer) -> None:
            peer.greet()
            while isinstance(peer.next(), Heartbeat):
                beats.append(time.monotonic())
                peer.write(HEARTBEAT_OCTETS)

        def reads_nothing(peer: Peer) -> None:
            done.wait(PATIENCE)

        done = threading.Event()
        with WireClient(brokers(kept_alive, opened(reads_nothing)).address, write_patience=2.5) as client:
            client.open("a", heartbeat=1)
            client.open("b")
            began = time.monotonic()
            client.send(Method("b", 1, "basic.publish", {}, True, Content({}, bytes(16_000_000))))
            took = time.monotonic() - began
            done.set()
        assert not client.is_open("b")
        assert sum(began < beat < began + took for beat in beats) >= 3

    def test_what_waits_unread_is_a_sign_of_life(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            done = time.monotonic() + 2.3
            while (remaining := done - time.monotonic()) > 0:
                select.select([], [], [], min(remaining, 0.5))
                peer.write(HEARTBEAT_OCTETS)
            caught_up.set()
            peer.wait_for_end()

        caught_up = threading.Event()
        with WireClient(brokers(opened(script)).address) as client:
            client.open("a", heartbeat=1)
            assert caught_up.wait(PATIENCE)  # nobody calls the client meanwhile
            assert client.receive(0.3) is None
            assert client.is_open("a")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and self-signed certificate for 127.0.0.1 in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test broker")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "broker.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + built.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


class TestTls:
    def test_messages_of_any_size(
        self, brokers: Brokers, seen: list[Method], certificate: Path, server_tls: ssl.SSLContext
    ) -> None:
        sizes = (0, 1, 16_383, 16_384, 16_385, 100_000, 8_000_000)

        def script(peer: Peer) -> None:
            for _ in sizes:
                method = peer.expect("basic.publish")
                peer.send("basic.deliver", 1, method.content)
            peer.wait_for_end()

        trusting = ssl.create_default_context(cafile=certificate)
        broker = brokers(opened(script), tls=server_tls)
        with WireClient(broker.address, seen.append, trusting) as client:
            client.open("a")
            for size in sizes:
                client.send(Method("a", 1, "basic.publish", {}, True, Content({}, bytes(size))))
                assert receive(client).content == Content({}, bytes(size))

    def test_files_of_the_address(self, brokers: Brokers, certificate: Path) -> None:
        asks_for_ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        asks_for_ours.load_cert_chain(certificate)
        asks_for_ours.verify_mode = ssl.CERT_REQUIRED
        asks_for_ours.load_verify_locations(certificate)
        broker = brokers(opened(lambda peer: peer.socket.close()), tls=asks_for_ours)
        address = replace(broker.address, cacertfile=str(certificate), certfile=str(certificate))
        with WireClient(address) as client:
            client.open("a")
        without_key = replace(address, keyfile=str(certificate.parent / "none"))
        with pytest.raises(TargetUnreachable, match="No such file"), WireClient(without_key) as client:
            client.open("a")

    def test_end_without_closing_alert(self, brokers: Brokers, certificate: Path, server_tls: ssl.SSLContext) -> None:
        broker = brokers(opened(lambda peer: peer.socket.close()), tls=server_tls)
        with WireClient(broker.address, None, ssl.create_default_context(cafile=certificate)) as client:
            client.open("a")
            assert receive(client).arguments == {"reason": "the broker ended the stream"}

    def test_unknown_certificate(self, server_tls: ssl.SSLContext) -> None:
        broker = Broker(Peer.wait_for_end, tls=server_tls)
        with (
            WireClient(broker.address) as client,
            pytest.raises(TargetUnreachable, match="certificate is not accepted: self-signed"),
        ):
            client.open("a")
        with pytest.raises(ssl.SSLError):
            broker.join()

    def test_a_peer_without_tls(self, brokers: Brokers) -> None:
        broker = brokers(lambda peer: peer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10))
        secure = Address("127.0.0.1", broker.port, tls=True)
        with WireClient(secure) as client, pytest.raises(TargetUnreachable, match=r"no TLS with 127\.0\.0\.1"):
            client.open("a")

    def test_a_peer_that_never_answers(self, brokers: Brokers) -> None:
        def script(peer: Peer) -> None:
            while peer.socket.recv(1000):
                pass

        secure = Address("127.0.0.1", brokers(script).port, tls=True)
        with WireClient(secure) as client, pytest.raises(TargetUnreachable, match="no answer in time"):
            client.open("a", timeout=0.3)
