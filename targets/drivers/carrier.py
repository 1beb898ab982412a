"""Carries commands through a client library: a `Carrier` like the suite's own client, and a tap for each connection.

What the library does by itself is left to it: the steps of the handshake, which `connect` makes, and the answers to
closes. What the library does not send, and says so, is not sent.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from amqpspec.model.protocol.methods import SocketEvent, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.carrier import Observer
from amqpspec.targets.client.connecting import connect
from amqpspec.targets.client.handshake import recordable
from amqpspec.targets.client.waiting import awaited
from amqpspec.targets.clock import Clock
from amqpspec.targets.drivers.application import REFUSED, UNSENT, WAITS, asked, is_of_application, shown
from amqpspec.targets.drivers.connection import ANSWERS, Call, Connection
from amqpspec.targets.drivers.expressible import NOT_GIVEN
from amqpspec.targets.drivers.library import LibraryClient, MakesClient
from amqpspec.targets.drivers.tap import Tap

#: Seconds for the TCP connection and the handshake.
CONNECT_TIME = 10.0
#: Seconds for a library to send what it was asked for: it may wait for the answer to something before.
SEND_TIME = 5.0
#: Seconds for a library to show what has come, when it has not shown something before.
LESS_TIME = 1.0


class LibraryCarrier:
    """See `Carrier`. `shows_in`: seconds in which the library shows what has come."""

    #: set by the library's own carrier
    makes_client: MakesClient
    #: as for `Connection`
    shown_each = frozenset({"basic.deliver", "basic.return", "basic.cancel"})

    def __init__(
        self, address: Address, observer: Observer, *, write_patience: float, clock: Clock, shows_in: float = 5.0
    ) -> None:
        self._address, self._observer, self._clock = address, observer, clock
        self._patience, self._shows_in = write_patience, shows_in
        self._birth, self._last_time = clock.now(), 0.0
        self._connections: dict[str, Connection] = {}
        #: what taps and libraries tell, in their order, and who waits for it
        self._told: deque[TraceEvent] = deque()
        self._news = threading.Condition()
        #: what was observed, and is to be received
        self._handed: deque[TraceEvent] = deque()

    # ---- connections

    def connect(self, name: str, address: Address | None = None) -> None:
        """Make the connection and all of its handshake. Raises `TargetUnreachable`."""
        known = self._connections.get(name)
        if known is not None and not known.is_end_told:
            raise ValueError(f"the connection {name} is open, or its end has not been received yet")
        if known is not None:
            self._end(known)
        moment = self._now()
        stream = connect(address or self._address, time.monotonic() + CONNECT_TIME, None)
        self._observe(SocketEvent(name, 0, "socket.open", {}, sent=True, time=moment))
        tap = Tap(name, stream, self._listener(name), self._tell, self._wake, self._now, self._patience)
        place = replace(self._address, host="127.0.0.1", port=tap.port, tls=False)
        client = self._client(name, place)
        self._connections[name] = Connection(tap, client, self.shown_each)
        self._await_opening(tap, client.open())
        tap.look()
        self._hand_out()

    def _listener(self, name: str) -> socket.socket:
        """Where the client of the connection connects."""
        return socket.create_server(("127.0.0.1", 0))

    def _client(self, name: str, place: Address) -> LibraryClient:
        return type(self).makes_client(place, partial(self._show, name))

    def _await_opening(self, tap: Tap, opened: Future[None]) -> None:
        self._await(opened, CONNECT_TIME)

    def end_output(self, name: str) -> None:
        """The library ends its side by itself."""

    def leave(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            self._end(connection)
            self._drop(name)

    def abort(self, name: str) -> None:
        connection = self._connections[name]
        if connection.is_end_told:
            return
        self._observe(SocketEvent(name, 0, "socket.abort", {}, sent=True, time=self._now()))
        connection.is_end_told = True
        self._end(connection, reset=True)
        self._drop(name)

    def silence(self, name: str) -> None:
        raise NotImplementedError("a library sends its own heartbeats")

    def is_open(self, name: str) -> bool:
        connection = self._connections.get(name)
        return connection is not None and not connection.tap.is_over

    def open_names(self) -> list[str]:
        return [name for name in self._connections if self.is_open(name)]

    def local_port(self, name: str) -> int:
        return self._connections[name].tap.local_port

    def close(self) -> None:
        for connection in self._connections.values():
            connection.is_end_told = True
            self._end(connection)

    def _end(self, connection: Connection, reset: bool = False) -> None:
        connection.tap.stop(reset)
        self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        """Its tap is no more."""
        connection.client.close()

    def _drop(self, name: str) -> None:
        self._handed = deque(event for event in self._handed if event.connection != name)
        with self._news:
            left = [event for event in self._told if event.connection != name]
            self._told.clear()
            self._told.extend(left)

    # ---- frames

    def send(self, event: TraceEvent, more: bool = False) -> None:
        """Have the library send it, and wait until the broker has it, or it is clear that it will not."""
        connection = self._connections.get(event.connection)
        if connection is None or connection.is_end_told:
            return
        if event.name in ANSWERS:
            self._await_answer(connection, event)
            return
        event = replace(event, arguments={**NOT_GIVEN.get(event.name, {}), **event.arguments})
        with self._news:  # as an application does
            self._news.wait_for(lambda: connection.tap.is_over or not connection.is_about_to_answer, self._shows_in)
        self._observe(asked(event.connection, event.channel, event.name, event.arguments, event.content), self._now())
        before, is_held = self._count_sent(event), connection.is_held
        done = connection.client.call(event)
        call = connection.asks(event, done)
        done.add_done_callback(lambda _: self._wake())

        def is_sent() -> bool:
            return self._count_sent(event) > before and not connection.tap.is_writing

        with self._news:
            patience = 0 if is_held else min(self._patience, SEND_TIME)
            is_over = self._news.wait_for(lambda: done.done() or is_sent(), patience)
        if not is_over and not is_held:
            call.is_given_up = True
            self._tell_waiting(call)
        if done.done() and self._count_sent(event) <= before:
            connection.tap.look()
            error = done.exception()
            if self._count_sent(event) > before:
                pass
            elif error is None:
                self._show(event.connection, event.channel, UNSENT, {"method": event.name})
            else:
                reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                self._show(event.connection, event.channel, REFUSED, {"method": event.name, "reason": reason})
        self._hand_out()

    def _await_answer(self, connection: Connection, event: TraceEvent) -> None:
        """The library sends it by itself: until the broker has it, nothing that it brings about is owed."""
        key = (event.channel, event.name)
        connection.closes[key] += 1
        with self._news:
            self._news.wait_for(
                lambda: (
                    connection.tap.is_over
                    or (connection.answers[key] >= connection.closes[key] and not connection.tap.is_writing)
                ),
                SEND_TIME,
            )
        self._hand_out()

    def _count_sent(self, event: TraceEvent) -> int:
        """How many such frames were told of, and not observed yet."""
        key = (event.connection, event.channel, event.name)
        return sum(each.sent and (each.connection, each.channel, each.name) == key for each in list(self._told))

    def note(self, event: TraceEvent) -> None:
        self._observe(event, self._now())

    def settle(self) -> None:
        """Wait until the applications were shown what has come."""
        connections = self._connections.values()
        with self._news:
            self._news.wait_for(lambda: not any(each.lacks for each in connections), self._shows_in)
        for connection in connections:
            if connection.lacks:
                self._shows_in = min(self._shows_in, LESS_TIME)
                for call in connection.give_up():
                    self._tell_waiting(call)
        self._hand_out()

    def _tell_waiting(self, call: Call) -> None:
        self._show(call.event.connection, call.event.channel, WAITS, {"method": call.event.name})

    def receive(self, timeout: float) -> TraceEvent | None:
        if self._handed:
            return self._end_if_over(self._handed.popleft())
        event = awaited(self._next, self._clock, timeout)
        return None if event is None else self._end_if_over(event)

    def receive_before(self, deadline: float) -> TraceEvent | None:
        remaining = deadline - time.monotonic()
        return self.receive(remaining) if remaining > 0 else None

    def _end_if_over(self, event: TraceEvent) -> TraceEvent:
        if event.name in ("socket.closed", "socket.garbage"):
            self._connections[event.connection].is_end_told = True
        return event

    def _next(self, timeout: float) -> TraceEvent | None:
        """The next frame that came; those that were sent, and those of applications, are observed on the way."""
        deadline = time.monotonic() + timeout
        while True:
            with self._news:
                if not self._told and (timeout <= 0 or not self.open_names()):
                    return None
                self._news.wait_for(lambda: bool(self._told), max(deadline - time.monotonic(), 0))
                if not self._told:
                    return None
                event = self._told.popleft()
            self._observe(event, event.time)
            if not event.sent and not is_of_application(event.connection):
                return event

    def _hand_out(self) -> None:
        """Observe all that was told, in its order; what came is received later."""
        while (event := self._next(0)) is not None:
            self._handed.append(event)

    # ---- what is told, from any thread

    def _tell(self, event: TraceEvent) -> None:
        with self._news:
            connection = self._connections.get(event.connection)
            if connection is not None:
                connection.tells(event)
            self._told.append(event)
            self._news.notify_all()

    def _show(self, name: str, channel: int, method: str, arguments: Table, content: Any = None) -> None:
        event = shown(name, channel, method, arguments, content)
        event.time = self._now()
        with self._news:
            connection = self._connections.get(name)
            if connection is not None:
                connection.seen[method] += 1
            self._told.append(event)
            self._news.notify_all()

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()

    def _await(self, call: Future[None], seconds: float) -> None:
        """What it raises shows by what is on the wire."""
        with suppress(NotDone):
            call.exception(seconds)

    def _now(self) -> float:
        return self._clock.now() - self._birth

    def _observe(self, event: TraceEvent, moment: float | None = None) -> None:
        event.time = self._last_time = max(event.time if moment is None else moment, self._last_time)
        self._observer(recordable(event, self._address))
