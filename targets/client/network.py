"""A network between clients and their broker that can fail: a proxy on the loopback interface, for single connections.

One thread serves all connections of a sequence that go through it. Octets are passed on as they are.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections import deque
from types import TracebackType
from typing import Self

from amqpspec.targets.address import Address
from amqpspec.targets.errors import TargetUnreachable

_READ = 65_536
#: Octets that may be on their way in one direction.
MOST_UNDER_WAY = 1_048_576
_CONNECT_TIME = 10.0
#: Seconds for what is under way to pass, and between two looks.
_MOST_SETTLING, _BETWEEN_LOOKS = 10.0, 0.05
_NEVER = float("inf")
#: For SO_LINGER: what is closed is reset.
_RESET = struct.pack("ii", 1, 0)


class Network:
    """Use as a context manager; at its end all that goes through it is reset."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passed = threading.Condition(self._lock)
        #: since somebody asked
        self._has_passed = False
        self._links: dict[str, _Link] = {}
        self._selector = selectors.DefaultSelector()
        self._alarm, self._bell = socket.socketpair()
        self._alarm.setblocking(False)
        self._selector.register(self._alarm, selectors.EVENT_READ)
        self._is_over = False
        self._thread = threading.Thread(target=self._serve, name="network", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._is_over = True
        self._ring()
        self._thread.join()

    # ---- what a sequence asks for, from its own thread

    def way_to(self, name: str, address: Address) -> tuple[str, int]:
        """Where a client connects, so that its connection of that name goes through here to the broker.

        The broker is connected to when the client is. Raises `TargetUnreachable`.
        """
        with self._lock:
            link = self._links.setdefault(name, _Link())
            for each in link.pairs:
                each.end()  # it was over: the name is used again
            try:
                listener = socket.create_server(("127.0.0.1", 0))
            except OSError as error:
                raise TargetUnreachable(f"cannot listen on the loopback interface: {error.strerror or error}") from None
            broker = _connected(address)
            place: tuple[str, int] = listener.getsockname()[:2]
            link.pairs.append(_Pair(link, listener, broker))
        self._ring()
        return place

    def port_of(self, name: str) -> int:
        """The port from which the broker sees the connection; 0: there is none."""
        with self._lock:
            link = self._links.get(name)
            return link.pairs[-1].broker_port if link is not None and link.pairs else 0

    def cut(self, name: str) -> None:
        """Nothing passes any more, and nobody is told."""
        self._change(name, is_cut=True)

    def slow(self, name: str, seconds: float) -> None:
        """What is read from now on comes so much later."""
        self._change(name, delay=seconds)

    def heal(self, name: str) -> None:
        """All that is under way comes now."""
        self._change(name, is_cut=False, delay=0.0)

    def settle(self) -> None:
        """Come back when all has passed that can: nothing is left that was sent, but where it is cut."""
        until = time.monotonic() + _MOST_SETTLING
        with self._passed:
            self._has_passed = False
            while not self._has_passed and not self._is_over and time.monotonic() < until:
                self._ring()
                self._passed.wait(_BETWEEN_LOOKS)

    def _change(self, name: str, is_cut: bool | None = None, delay: float | None = None) -> None:
        with self._lock:
            link = self._links.setdefault(name, _Link())
            link.is_cut = link.is_cut if is_cut is None else is_cut
            link.delay = link.delay if delay is None else delay
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(OSError):
            self._bell.send(b"\0")

    # ---- the thread

    def _serve(self) -> None:
        while not self._is_over:
            with self._lock:
                wait = self._pass_on()
                if all(pair.is_idle for link in self._links.values() for pair in link.pairs):
                    self._has_passed = True
                    self._passed.notify_all()
            for key, _ in self._selector.select(None if wait == _NEVER else max(wait, 0.0)):
                if key.fileobj is self._alarm:
                    with contextlib.suppress(BlockingIOError):
                        self._alarm.recv(_READ)
        with self._lock:
            for link in self._links.values():
                for pair in link.pairs:
                    pair.end()
        self._selector.close()
        self._alarm.close()
        self._bell.close()

    def _pass_on(self) -> float:
        """Do what can be done, and note what to wait for. Gives the seconds until something is due."""
        now = time.monotonic()
        wait = _NEVER
        wanted: dict[socket.socket, int] = {}
        for link in self._links.values():
            for pair in link.pairs:
                wait = min(wait, pair.pass_on(now))
                wanted.update(pair.wanted())
            link.pairs = [each for each in link.pairs if not each.is_over]
        for key in list(self._selector.get_map().values()):
            if key.fileobj is not self._alarm and key.fileobj not in wanted:
                self._selector.unregister(key.fileobj)
        for sock, events in wanted.items():
            if sock not in self._selector.get_map():
                self._selector.register(sock, events)
            elif self._selector.get_key(sock).events != events:
                self._selector.modify(sock, events)
        return wait


class _Link:
    """What becomes of connections of one name."""

    def __init__(self) -> None:
        self.is_cut = False
        self.delay = 0.0
        self.pairs: list[_Pair] = []


class _Pair:
    """A client, once it has connected, and its broker."""

    def __init__(self, link: _Link, listener: socket.socket, broker: socket.socket) -> None:
        self.is_over = False
        self.broker_port: int = broker.getsockname()[1]
        self._link = link
        self._listener: socket.socket | None = listener
        self._broker = broker
        self._client: socket.socket | None = None
        self._directions: tuple[_Direction, ...] = ()
        listener.setblocking(False)

    def pass_on(self, now: float) -> float:
        """Gives the seconds until something is due."""
        if self._listener is not None:
            try:
                client, _ = self._listener.accept()
            except BlockingIOError:
                return _NEVER
            except OSError:
                self.end()
                return _NEVER
            self._listener.close()
            self._listener = None
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client = client
            self._directions = _Direction(client, self._broker), _Direction(self._broker, client)
        if self._link.is_cut:
            return _NEVER
        try:
            waits = [each.pass_on(now, self._link.delay) for each in self._directions]
        except OSError:
            self.end()  # one side has reset it: so does the other one then
            return _NEVER
        if all(each.is_over for each in self._directions):
            self.end()
        return min(waits)

    @property
    def is_idle(self) -> bool:
        """Was all passed on that was there, or can nothing pass?"""
        return self._link.is_cut or not any(each.has_something for each in self._directions)

    def wanted(self) -> dict[socket.socket, int]:
        if self.is_over:
            return {}
        if self._listener is not None:
            return {self._listener: selectors.EVENT_READ}
        wanted: dict[socket.socket, int] = {}
        if not self._link.is_cut:
            for each in self._directions:
                if each.wants_to_read:
                    wanted[each.source] = wanted.get(each.source, 0) | selectors.EVENT_READ
                if each.is_stuck:
                    wanted[each.target] = wanted.get(each.target, 0) | selectors.EVENT_WRITE
        return wanted

    def end(self) -> None:
        self.is_over = True
        for each in (self._listener, self._client, self._broker):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.close()


class _Direction:
    """From one side to the other."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target = source, target
        #: with when each is due; b"" is the end
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._weight = 0
        self._is_read_out = False
        self.is_over = False
        #: the other side takes no more for now
        self.is_stuck = False

    @property
    def has_something(self) -> bool:
        return bool(self._under_way)

    @property
    def wants_to_read(self) -> bool:
        return not self._is_read_out and self._weight < MOST_UNDER_WAY

    def pass_on(self, now: float, delay: float) -> float:
        """Raises `OSError` where it is broken off. Gives the seconds until something is due."""
        while self.wants_to_read:
            try:
                octets = self.source.recv(_READ)
            except BlockingIOError:
                break
            self._under_way.append((now + delay, octets))
            self._weight += len(octets)
            self._is_read_out = not octets
        self.is_stuck = False
        while self._under_way:
            due, octets = self._under_way[0]
            if due > now and delay:
                return due - now
            if not octets:
                self.target.shutdown(socket.SHUT_WR)
                self.is_over = True
            else:
                try:
                    written = self.target.send(octets)
                except BlockingIOError:
                    self.is_stuck = True
                    return _NEVER
                self._weight -= written
                if written < len(octets):
                    self._under_way[0] = due, octets[written:]
                    continue
            self._under_way.popleft()
        return _NEVER


def _connected(address: Address) -> socket.socket:
    try:
        sock = socket.create_connection((address.host, address.port), _CONNECT_TIME)
    except (OSError, UnicodeError) as error:
        where = f"{address.host} port {address.port}"
        raise TargetUnreachable(f"cannot connect to {where}: {getattr(error, 'strerror', None) or error}") from None
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
