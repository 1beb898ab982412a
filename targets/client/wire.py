"""A client at the level of frames: sends what it is told, well-formed or not, and reports all that arrives.

It answers nothing by itself except that it keeps negotiated heartbeats going. No threads, no event loop: the
caller's `receive` and `send` are the only places where anything happens.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from amqpspec.model.protocol.methods import SocketEvent, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.connecting import connect
from amqpspec.targets.client.connection import Connection
from amqpspec.targets.client.connections import Connections
from amqpspec.targets.client.handshake import Wishes, recordable, shake_hands
from amqpspec.targets.client.handshake_link import HandshakeLink
from amqpspec.targets.client.waiting import awaited
from amqpspec.targets.clock import COMMON, Clock
from amqpspec.targets.codec.methods_codec import PROTOCOL_HEADER, encode
from amqpspec.targets.codec.single_frames import as_understood
from amqpspec.targets.codec.tune import Tune


class WireClient:
    """Several connections to one broker; frames come in the order in which they arrived.

    `observer` sees every frame once, credentials masked: a sent one before its first octet is written, a
    received one when `receive` returns it, those of the handshake within `open`. `frame.time` is seconds
    since the client was created, by `clock`; the times that the observer sees never decrease. A connection name may be
    used again once its connection is over and `receive` has returned the end, or after `abort`.

    `tls_context` is for amqps addresses; without it the certificate must be one that the system trusts. When
    nothing of a frame could be written for `write_patience` seconds, or not all of it in ten times as long,
    the broker has stopped reading, which ends the connection.
    """

    def __init__(
        self,
        address: Address,
        observer: Callable[[TraceEvent], None] | None = None,
        tls_context: ssl.SSLContext | None = None,
        write_patience: float = 30.0,
        clock: Clock = COMMON,
    ) -> None:
        self._address = address
        self._observer = observer
        self._tls_context = tls_context
        self._clock = clock
        self._birth = clock.now()
        self._last_time = 0.0
        self._connections = Connections(write_patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- opening and closing

    def open(
        self,
        name: str,
        *,
        client_properties: Table | None = None,
        heartbeat: int | None = None,
        frame_max: int | None = None,
        channel_max: int | None = None,
        user: str | None = None,
        password: str | None = None,
        vhost: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Connect and shake hands up to connection.open-ok, in `timeout` seconds. Raises `TargetError`.

        Limits that are given are sent as they are, also where the broker offered less; `heartbeat` without a number is
        the address's. On an error nothing is
        left open, and the observer has seen what was exchanged.
        """
        self._connections.check_free(name)
        address = replace(
            self._address,
            user=self._address.user if user is None else user,
            password=self._address.password if password is None else password,
            vhost=self._address.vhost if vhost is None else vhost,
        )
        wished = address.heartbeat if heartbeat is None else heartbeat
        wishes = Wishes(client_properties, wished, frame_max, channel_max)
        deadline = time.monotonic() + timeout
        connection = Connection(name, connect(address, deadline, self._tls_context), deque(), self._now)
        too_late = f"{address} did not complete the handshake within {timeout:g} s"
        link = HandshakeLink(connection, partial(self._observe, address=address), deadline, too_late)
        try:
            link.write(PROTOCOL_HEADER)
            connection.adopt(shake_hands(link, address, wishes))
        except BaseException:
            connection.stream.close()
            raise
        self._connections.admit(connection)

    def connect(self, name: str, address: Address | None = None, *, timeout: float = 10.0) -> None:
        """Connect and leave the handshake to the caller, protocol header included. `address`: where to, if not to the
        client's. Raises `TargetError`.

        The observer sees socket.open. Limits hold once a connection.tune-ok was sent.
        """
        self._connections.check_free(name)
        self._connections.let_go()
        moment = self._now()  # the broker's clock begins somewhere in between
        stream = connect(address or self._address, time.monotonic() + timeout, self._tls_context)
        self._observe(SocketEvent(name, 0, "socket.open", {}, sent=True), moment)
        self._connections.admit(Connection(name, stream, self._connections.inbox, self._now))

    def silence(self, name: str) -> None:
        """Send no heartbeats on this connection from now on. The observer sees socket.silence."""
        connection = self._connections.named(name)
        if connection.end_delivered:
            return
        self._connections.let_go()
        self._observe(SocketEvent(name, 0, "socket.silence", {}, sent=True), self._now())
        connection.is_silent = True

    def end_output(self, name: str) -> None:
        """Close our side of the TCP connection, as who has got a close-ok does. Nobody sees it."""
        self._connections.let_go()
        self._connections.named(name).end_output()

    def leave(self, name: str) -> None:
        """End a TCP connection on which everything was said, so that the name can be used again. Nobody sees it."""
        connection = self._connections.find(name)
        if connection is None:
            return
        self._connections.let_go()
        connection.release()
        connection.stream.close()
        self._connections.drop_events_of(connection)

    def abort(self, name: str) -> None:
        """Reset the TCP connection. What it had received and `receive` has not returned is dropped."""
        connection = self._connections.named(name)
        if connection.end_delivered:
            return
        self._connections.let_go()
        self._observe(SocketEvent(name, 0, "socket.abort", {}, sent=True), self._now())
        connection.release()
        connection.stream.reset()
        self._connections.drop_events_of(connection)

    def close(self) -> None:
        """Close all sockets, without any closing handshake. The client cannot be used again."""
        self._connections.close()

    # ---- what is known

    def is_open(self, name: str) -> bool:
        """Whether there is a connection of this name whose end is not yet known."""
        connection = self._connections.find(name)
        return connection is not None and not connection.ended

    def open_names(self) -> list[str]:
        """The connections that are open."""
        return self._connections.open_names()

    def server_properties(self, name: str) -> Table:
        """What the broker said in connection.start. Raises `ValueError` for a name that was never opened."""
        return self._connections.named(name).session.server_properties

    def tune(self, name: str) -> Tune:
        """What we said in connection.tune-ok. Raises `ValueError` for a name that was never opened."""
        return self._connections.named(name).session.tune

    def local_port(self, name: str) -> int:
        """The port that a connection goes out from, 0 once it is over. Raises `ValueError` for a name never opened."""
        return self._connections.named(name).stream.local_port

    # ---- sending

    def send(self, event: TraceEvent, more: bool = False) -> None:
        """Stamp the frame's time, show it to the observer, write it; if there is `more` to come on the connection at
        once, together with that.

        If the connection turns out to be over, its socket.closed waits in `receive`. Once that was returned, or
        after `end_output`, what is sent there is ignored and not observed. Raises `EncodingError` for what no octets
        can express, `ValueError` for a name that was never opened.
        """
        connection = self._connections.named(event.connection)
        if connection.end_delivered or connection.is_output_over:
            return
        octets = encode(event, connection.session.tune.frame_max)
        self._observe(as_understood(event), self._now())
        write = self._connections.hold if more else self._connections.write
        write(connection, octets)
        if event.name == "connection.tune-ok" and not event.channel:
            self._connections.adopt(connection, event.arguments)

    def note(self, event: TraceEvent) -> None:
        """Stamp the frame's time and show it to the observer: what happens to the broker without any wire."""
        self._connections.let_go()
        self._observe(event, self._now())

    def send_octets(self, connection: str, octets: bytes) -> None:
        """Write anything at all. The observer does not see it."""
        self._connections.write(self._connections.named(connection), octets)

    # ---- receiving

    def settle(self) -> None:
        """Nothing is done with a frame before it is received."""

    def receive(self, timeout: float) -> TraceEvent | None:
        """The next frame of any connection, awaited for `timeout` seconds at most; None if there was none.

        Besides methods: protocol.header; socket.closed when a connection is over; socket.garbage when it sent
        what is no frame, and was closed by us for it. Returns None at once when no connection is open.
        """
        event = awaited(self._connections.next_frame, self._clock, timeout)
        if event is not None:
            self._observe(event, event.time)
        return event

    def receive_before(self, deadline: float) -> TraceEvent | None:
        """The next frame; None from `deadline` (of `time.monotonic`) on, whatever goes on arriving."""
        remaining = deadline - time.monotonic()
        return self.receive(remaining) if remaining > 0 else None

    # ---- observing

    def _now(self) -> float:
        return self._clock.now() - self._birth

    def _observe(self, event: TraceEvent, moment: float, address: Address | None = None) -> None:
        # A frame that was read before another was sent, but is handed out after it, must not seem older.
        event.time = self._last_time = max(moment, self._last_time)
        if self._observer is not None:
            self._observer(recordable(event, address or self._address))
