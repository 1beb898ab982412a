"""All connections of the wire client: whose input is awaited together, and what keeps them going."""

from __future__ import annotations

import selectors
import time
from collections import deque

from amqpspec.model.protocol.methods import NO_HEARTBEAT, Table, TraceEvent
from amqpspec.targets.client.connection import READ_AHEAD, Connection
from amqpspec.targets.client.handshake import Session
from amqpspec.targets.codec.methods_codec import HEARTBEAT_OCTETS
from amqpspec.targets.codec.tune import Tune

#: Octets beyond which nothing more is held back.
MOST_HELD = 65_536

_NEVER = float("inf")


class Connections:
    """By name, one selector for all, and one `inbox` for what arrives.

    When nothing of a write could be done for `write_patience` seconds, or not all of it in ten times as long, the
    connection ends.
    """

    def __init__(self, write_patience: float) -> None:
        self.inbox: deque[TraceEvent] = deque()
        self._write_patience = write_patience
        self._named: dict[str, Connection] = {}
        self._selector = selectors.DefaultSelector()
        self._open_count = 0
        self._keeping_alive: set[Connection] = set()
        #: weight of what was read while a write was stuck
        self._ahead = 0
        #: what is to be written with what follows, and where
        self._held = bytearray()
        self._holding: Connection | None = None

    # ---- which there are

    def find(self, name: str) -> Connection | None:
        return self._named.get(name)

    def named(self, name: str) -> Connection:
        """The latest of that name. Raises `ValueError` for a name that was never opened."""
        connection = self._named.get(name)
        if connection is None:
            raise ValueError(f"there is no connection {name}")
        return connection

    def open_names(self) -> list[str]:
        return [name for name, connection in self._named.items() if not connection.ended]

    def check_free(self, name: str) -> None:
        """Raises `ValueError` where the name is taken."""
        if name in self._named and not self._named[name].end_delivered:
            raise ValueError(f"the connection {name} is open, or its end has not been received yet")

    def admit(self, connection: Connection) -> None:
        """It is connected. What it has received goes to `inbox`, and so does what it will."""
        if connection.inbox is not self.inbox:
            self.inbox.extend(connection.inbox)
            connection.inbox = self.inbox
        self._named[connection.name] = connection
        if connection.ended:
            return
        self._selector.register(connection.stream, selectors.EVENT_READ, connection)
        self._open_count += 1
        connection.on_end = self._forget
        if connection.session.tune.heartbeat:
            self._keeping_alive.add(connection)

    def adopt(self, connection: Connection, said: Table) -> None:
        """A connection.tune-ok with these arguments was sent. A later one, which no broker awaits, changes nothing."""
        if connection.is_tuned:
            return
        tune = Tune(said.get("channel_max", 0), said.get("frame_max", 0), said.get("heartbeat", 0))
        connection.adopt(Session(connection.session.server_properties, tune))
        if tune.heartbeat and not connection.ended:
            self._keeping_alive.add(connection)

    def _forget(self, connection: Connection) -> None:
        self._keeping_alive.discard(connection)
        self._selector.unregister(connection.stream)
        self._open_count -= 1

    def close(self) -> None:
        """Close all sockets; nothing can be awaited any more."""
        self.let_go()
        for connection in self._named.values():
            connection.release()
            connection.stream.close()
            connection.end_delivered = True
        self.inbox.clear()
        self._selector.close()

    # ---- input

    def next_frame(self, timeout: float) -> TraceEvent | None:
        """Take it out of the inbox, or await it for `timeout` seconds at most. None at once where none is open."""
        self.let_go()
        if not self.inbox and not self._await_input(timeout):
            return None
        event = self.inbox.popleft()
        if not self.inbox:
            self._ahead = 0
        if event.name in ("socket.closed", "socket.garbage"):
            connection = self._named[event.connection]
            connection.end_delivered = connection.ended and all(
                waiting.connection != event.connection for waiting in self.inbox
            )
        return event

    def _await_input(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self._open_count:
            remaining = max(deadline - time.monotonic(), 0.0)
            wait = min(remaining, self._next_heartbeat())
            for key, _ in self._selector.select(wait):
                key.data.read()
            if self._keeping_alive:
                self._keep_alive()
            if self.inbox or remaining <= 0.0:
                break
        return bool(self.inbox)

    def _next_heartbeat(self, but: Connection | None = None) -> float:
        """Seconds until one is to be sent, or a silent broker to be given up; `but` on this connection."""
        others = (kept for kept in self._keeping_alive if kept is not but)
        left = min((min(kept.heartbeat_due(), kept.given_up_at()) - kept.now() for kept in others), default=_NEVER)
        return max(left, 0.0)

    def _keep_alive(self, but: Connection | None = None) -> None:
        """`but`: the one that is being written to, which needs no heartbeat, and bears none in between."""
        for connection in list(self._keeping_alive):
            if connection is but:
                continue
            now = connection.now()
            if now >= connection.given_up_at():
                # what has come by now counts, however long nobody called us, or let us run, since it was looked for
                connection.read()
            if connection.ended:
                continue
            if now >= connection.given_up_at():
                connection.end(NO_HEARTBEAT)
            elif now >= connection.heartbeat_due():
                self.write(connection, HEARTBEAT_OCTETS)

    def drop_events_of(self, connection: Connection) -> None:
        """Drop what it had received and nobody has asked for."""
        connection.end_delivered = True
        others = [event for event in self.inbox if event.connection != connection.name]
        self.inbox.clear()
        self.inbox.extend(others)

    # ---- output

    def hold(self, connection: Connection, octets: bytes) -> None:
        """Write it together with what follows: so the broker reads it at one time, whoever is scheduled when."""
        if connection is not self._holding or len(self._held) >= MOST_HELD:
            self.let_go()
        self._holding = connection
        self._held += octets

    def let_go(self) -> None:
        """Write what is held; before anything else happens."""
        if self._holding is not None:
            connection, octets = self._holding, bytes(self._held)
            self._holding = None
            self._held.clear()
            if not connection.ended:
                self.write(connection, octets)

    def write(self, connection: Connection, octets: bytes) -> None:
        """Write all of it, however slowly the broker reads, unless the connection ends before."""
        if connection is self._holding:
            octets = bytes(self._held) + octets
            self._holding = None
            self._held.clear()
        self.let_go()
        rest = connection.write(memoryview(octets))
        if not rest:
            return
        # The broker may not read on before we do, so read meanwhile, and from every connection: it may hold
        # up one of them because of another.
        last_deadline = time.monotonic() + 10 * self._write_patience
        deadline = time.monotonic() + self._write_patience
        self._selector.modify(connection.stream, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
        while rest and not connection.ended:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                connection.end("the broker has stopped reading")
            elif self._ahead >= READ_AHEAD:
                connection.stream.wait_writable(deadline)
            else:
                wait = min(remaining, self._next_heartbeat(but=connection))
                for key, events in self._selector.select(wait):
                    if events & selectors.EVENT_READ:
                        self._ahead += key.data.read()
                self._keep_alive(but=connection)
            left = connection.write(rest)
            if len(left) < len(rest):
                deadline = min(time.monotonic() + self._write_patience, last_deadline)
            rest = left
        if not connection.ended:
            self._selector.modify(connection.stream, selectors.EVENT_READ, connection)
