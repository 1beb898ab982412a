"""A broker that turns hostile: the embedded broker behind a relay that does something else at a chosen point.

The relay passes whole frames in both directions, so that an attack can be made in every state that a broker can be in.
It reads as little of them as it can: the method's name and the octets.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from amqpspec.model.protocol.methods import METHOD_IDS, Content, event_of
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.codec.methods_codec import encode

_NAMES = {identifiers: name for name, identifiers in METHOD_IDS.items()}
_READ_SIZE = 65_536


def raw(kind: int, payload: bytes = b"", channel: int = 1, size: int | None = None, end: bytes = b"\xce") -> bytes:
    """A frame of any kind; its size and its end may lie."""
    return struct.pack(">BHI", kind, channel, len(payload) if size is None else size) + payload + end


def method(name: str, channel: int = 1, content: Content | None = None, **arguments: Any) -> bytes:
    """A well-formed frame, with its content if it carries any."""
    return encode(event_of("", channel, name, arguments, False, content), 0)


class Gone(Exception):
    """The client has hung up, or the test is over."""


class Victim:
    """The client's end of one connection at the moment of the attack.

    `held`: the frame that was about to be passed on, and `content`: the frames of its content. Where the attack
    returns, the connection is closed, unless it has called `go_on`.
    """

    def __init__(self, sock: socket.socket, broker: HostileBroker, held: bytes, content: bytes) -> None:
        self._socket = sock
        self._broker = broker
        self.held = held
        self.content = content
        self.channel = int.from_bytes(held[1:3], "big")
        self.goes_on = False

    def send(self, octets: bytes) -> None:
        """All of it, while the client is there. Raises `Gone`."""
        rest = memoryview(octets)
        while rest:
            self._broker.check_running()
            if select.select([], [self._socket], [], 0.1)[1]:
                with contextlib.suppress(BlockingIOError):
                    rest = rest[self._socket.send(rest, socket.MSG_DONTWAIT) :]

    def flood(self, octets: bytes) -> None:
        """Again and again, for as long as anybody takes it."""
        many = octets * max(_READ_SIZE // len(octets), 1)
        while True:
            self.send(many)

    def drip(self, octets: bytes, pause: float) -> None:
        """Octet by octet."""
        for at in range(len(octets)):
            self.send(octets[at : at + 1])
            self._broker.pause(pause)

    def wait(self) -> None:
        """Be silent until the client hangs up; what it sends is read."""
        while True:
            self._broker.check_running()
            if select.select([self._socket], [], [], 0.1)[0] and not self._socket.recv(_READ_SIZE):
                raise Gone

    def read_slowly(self, pause: float) -> None:
        """One octet at a time."""
        while self._socket.recv(1):
            self._broker.pause(pause)

    def be_deaf(self) -> None:
        """Read nothing, keep everything open."""
        self._broker.pause(None)

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def stop_accepting(self) -> None:
        """From now on the system takes connections, and nobody cares."""
        self._broker.accepting = False

    def die(self) -> None:
        """The whole broker, as its process would: nobody listens, and every connection is reset."""
        self._broker.die()
        self.reset()

    def go_on(self) -> None:
        """Be an ordinary broker again, on this connection, until the next time."""
        self.goes_on = True


@dataclass(frozen=True)
class Attack:
    """`strike` is what happens instead of passing on the broker's frames of the method `at`.

    `at` may be "connect", or begin with "> " for a client's frame; the first `skip` of them go through, and those that
    `spares` says. `instead` exchanges frames for others wherever they come.
    """

    name: str
    at: str = ""
    strike: Callable[[Victim], None] = Victim.wait
    skip: int = 0
    spares: Callable[[bytes], bool] = lambda octets: False
    instead: Mapping[str, bytes] = field(default_factory=dict)
    #: further arguments of `amqpspec run`
    arguments: Sequence[str] = ("--only", "GET-001", "--only", "CONSUME-001", "--sequences", "3")
    #: exit codes that are right: something deviates, or the broker is lost
    codes: frozenset[int] = frozenset({1, 3})
    #: … and those of `amqpspec check` on the trace, where there is one
    checked: frozenset[int] = frozenset({1})


#: Octets: what the embedded broker offers.
_FRAME_MAX = 131_072


class HostileBroker:
    """Use as a context manager; at its end no thread and no socket is left."""

    def __init__(self, attack: Attack, broker: EmbeddedBroker) -> None:
        self._attack = attack
        self._broker = broker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._seen = 0
        self.strikes = 0
        self.accepting = True
        self._dead = False
        port: int = self._listener.getsockname()[1]
        self.url = f"amqp://guest:guest@127.0.0.1:{port}"
        self._threads = [threading.Thread(target=self._accept, name="hostile broker", daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def check_running(self) -> None:
        if self._over.is_set() or self._dead:
            raise Gone

    def pause(self, seconds: float | None) -> None:
        if self._over.wait(seconds):
            raise Gone

    def die(self) -> None:
        self._dead = True
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set() and not self._dead:
            try:
                if not self.accepting or not select.select([self._listener], [], [], 0.05)[0]:
                    self._over.wait(0.05)
                    continue
                sock, _ = self._listener.accept()
            except (OSError, ValueError):
                return  # it was closed
            thread = threading.Thread(target=self._serve, args=(sock,), name="hostile connection", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(Gone, OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._attack.at == "connect" and self._is_time(b""):
                self._strike(client, b"", b"")
            place = self._broker.address
            with socket.create_connection((place.host, place.port)) as server:
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._relay(client, server)

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        towards = {client: bytearray(), server: bytearray()}
        opened = False
        while True:
            self.check_running()
            for source in select.select([client, server], [], [], 0.1)[0]:
                octets = source.recv(_READ_SIZE)
                if not octets:
                    raise Gone
                waiting = towards[source]
                waiting += octets
                if source is client and not opened:
                    if len(waiting) < 8:
                        continue
                    server.sendall(bytes(waiting[:8]))
                    del waiting[:8]
                    opened = True
                for frame, content in _whole_frames(waiting):
                    self._pass_on(frame, content, client, server, "> " if source is client else "")
                if source is client and len(waiting) >= 7 and int.from_bytes(waiting[3:7], "big") > _FRAME_MAX:
                    server.sendall(bytes(waiting))  # a broker does not wait for the rest of such a frame
                    waiting.clear()

    def _pass_on(
        self, frame: bytes, content: bytes, client: socket.socket, server: socket.socket, direction: str
    ) -> None:
        name = direction + _name(frame)
        if name == self._attack.at and self._is_time(frame):
            self._strike(client, frame, content)
            return
        octets = self._attack.instead.get(name, frame) + content
        (server if direction else client).sendall(octets)

    def _is_time(self, frame: bytes) -> bool:
        if self._attack.spares(frame):
            return False
        with self._lock:
            self._seen += 1
            return self._seen > self._attack.skip

    def _strike(self, client: socket.socket, frame: bytes, content: bytes) -> None:
        with self._lock:
            self.strikes += 1
        victim = Victim(client, self, frame, content)
        self._attack.strike(victim)
        if not victim.goes_on:
            raise Gone


def _name(frame: bytes) -> str:
    if frame[0] != 1:
        return ""
    return _NAMES.get(struct.unpack_from(">HH", frame, 7), "")


def _whole_frames(waiting: bytearray) -> list[tuple[bytes, bytes]]:
    """Taken off the beginning: each frame, and the header and body frames that have come right after it."""
    found: list[tuple[bytes, bytes]] = []
    while len(waiting) >= 7:
        end = 8 + int.from_bytes(waiting[3:7], "big")
        if len(waiting) < end:
            break
        octets = bytes(waiting[:end])
        del waiting[:end]
        if octets[0] in (2, 3) and found:
            found[-1] = (found[-1][0], found[-1][1] + octets)
        else:
            found.append((octets, b""))
    return found


