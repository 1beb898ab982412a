"""A carrier without sockets: the model in this process takes what is sent, and what it answers waits to be received."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace

from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.protocol.methods import SocketEvent, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.carrier import Observer
from amqpspec.targets.client.handshake import recordable
from amqpspec.targets.clock import Clock
from amqpspec.targets.embedded.handshake import DEFAULT_ACCESS, Doorkeeper
from amqpspec.targets.embedded.responder import Responder

#: Nobody listens there: what goes by TCP would fail.
NOWHERE = Address("127.0.0.1", 1)


class InProcess:
    """A `Carrier`, and by its arguments a `Driver`. Every carrier has a broker of its own."""

    def __init__(self, address: Address, observer: Observer, *, write_patience: float, clock: Clock) -> None:
        self._address = address
        self._observer = observer
        self._clock = clock
        self._began = clock.now()
        self._responder = Responder(DEFAULT_DIALECT, clock=clock)
        self._doorkeepers: dict[str, Doorkeeper] = {}
        self._inbox: deque[TraceEvent] = deque()
        self._open: dict[str, None] = {}

    # ---- connections

    def connect(self, name: str, address: Address | None = None) -> None:
        self._doorkeepers[name] = Doorkeeper(DEFAULT_DIALECT, DEFAULT_ACCESS)
        self._open[name] = None
        self._say(SocketEvent(name, 0, "socket.open", {}, sent=True))

    def end_output(self, name: str) -> None:
        pass

    def leave(self, name: str) -> None:
        self._end(name)

    def abort(self, name: str) -> None:
        self._observe(SocketEvent(name, 0, "socket.abort", {}, sent=True))
        self._end(name)

    def silence(self, name: str) -> None:
        raise NotImplementedError("there are no heartbeats without sockets")

    def is_open(self, name: str) -> bool:
        return name in self._open

    def open_names(self) -> list[str]:
        return list(self._open)

    def local_port(self, name: str) -> int:
        return 0

    def close(self) -> None:
        for name in self.open_names():
            self._end(name)

    def _end(self, name: str) -> None:
        self._open.pop(name, None)
        self._inbox = deque(event for event in self._inbox if event.connection != name)
        self._responder.end(name)
        self._answer()

    # ---- frames

    def send(self, event: TraceEvent, more: bool = False) -> None:
        if event.connection in self._open:
            self._say(event)

    def note(self, event: TraceEvent) -> None:
        self._observe(event)

    def settle(self) -> None:
        pass

    def receive(self, timeout: float) -> TraceEvent | None:
        if not self._inbox:
            return None
        event = self._inbox.popleft()
        if event.name == "socket.closed":
            self._open.pop(event.connection, None)
        self._observe(event)
        return event

    def receive_before(self, deadline: float) -> TraceEvent | None:
        return self.receive(0) if time.monotonic() < deadline else None

    def _say(self, event: TraceEvent) -> None:
        self._observe(event)
        # the broker goes by its own clock
        self._responder.take(replace(self._doorkeepers[event.connection].shown(event), time=0.0))
        self._answer()

    def _answer(self) -> None:
        while (frames := self._responder.next_outputs(lambda _: False, lambda _: False)) is not None:
            for event in frames:
                if event.name == "connection.start":
                    event = self._doorkeepers[event.connection].introduced(event)
                self._inbox.append(event)
                if event.name == "connection.close-ok":
                    arguments = {"reason": "said all"}
                    self._inbox.append(SocketEvent(event.connection, 0, "socket.closed", arguments, sent=False))

    def _observe(self, event: TraceEvent) -> None:
        event.time = self._clock.now() - self._began
        self._observer(recordable(event, self._address))
