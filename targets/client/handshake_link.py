"""How the frames of a handshake move and are recorded, under one deadline for all of them."""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.model.protocol.methods import SocketEvent, TraceEvent
from amqpspec.targets.client.connection import Connection
from amqpspec.targets.codec.methods_codec import encode
from amqpspec.targets.errors import TargetError, TargetUnreachable


class HandshakeLink:
    """What `shake_hands` needs of a connection that is not yet among the client's."""

    def __init__(
        self, connection: Connection, observe: Callable[[TraceEvent, float], None], deadline: float, too_late: str
    ) -> None:
        self.name = connection.name
        self._connection = connection
        self._observe = observe
        self._deadline = deadline
        self._too_late = too_late

    def send(self, event: TraceEvent) -> None:
        octets = encode(event)
        self._observe(event, self._connection.now())
        self.write(octets)

    def write(self, octets: bytes) -> None:
        rest = self._connection.write(memoryview(octets))
        while rest:
            if not self._connection.stream.wait_writable(self._deadline):
                raise self._timeout()
            rest = self._connection.write(rest)

    def receive(self) -> TraceEvent:
        inbox = self._connection.inbox
        while not inbox:
            if not self._connection.stream.wait_readable(self._deadline):
                raise self._timeout()
            self._connection.read()
        event = inbox.popleft()
        self._observe(event, event.time)
        return event

    def _timeout(self) -> TargetError:
        self._observe(SocketEvent(self.name, 0, "socket.abort", {}, sent=True), self._connection.now())
        return TargetUnreachable(self._too_late)
