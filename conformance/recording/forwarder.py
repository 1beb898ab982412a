"""The proxy: passes octets on as they are and at once, and tells the recorder about them.

Each connection of a client gets one to the broker. What one side does not take is not read from the other. Should the
recorder fall behind, it may owe so many octets (`MOST_BEHIND`) before nothing more is read for a while: so memory is
bounded, and the trace is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from amqpspec.conformance.recording.notes import Note, NoteKind, note_octets
from amqpspec.conformance.recording.recorder import RecorderOptions
from amqpspec.conformance.traces.trace_row import TraceError
from amqpspec.targets.address import Address
from amqpspec.targets.errors import TargetUnreachable

#: Octets that the recorder may be behind.
MOST_BEHIND = 64 * 1024 * 1024
#: Seconds that the broker may take to accept a connection.
_LONGEST_CONNECT = 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where clients connect; `tls`: what they are shown, None without TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


def forward(
    upstream: Address,
    upstream_tls: ssl.SSLContext | None,
    listen: Place,
    options: RecorderOptions,
    on_ready: Callable[[str, int], None],
    rotate: float | None = None,
) -> int:
    """Pass on and record until SIGINT or SIGTERM; gives the number of connections. `rotate`: a new file of the trace is
    due every so many seconds.

    `on_ready` is told host and port once clients may connect. Raises `TargetUnreachable` where the broker cannot be
    reached at the beginning, or nobody can listen there; `TraceError` where the trace cannot be written.
    """
    return asyncio.run(_Forwarder(upstream, upstream_tls, options).run(listen, on_ready, rotate))


class _Forwarder:
    """All connections of one recording."""

    def __init__(self, upstream: Address, upstream_tls: ssl.SSLContext | None, options: RecorderOptions) -> None:
        self.upstream, self.upstream_tls = upstream, upstream_tls
        self.pairs: set[_Pair] = set()
        self.connections = 0
        self._options = options
        self._recorder = _RecorderPipe(self)
        self._began = time.monotonic()
        self._over = asyncio.Event()

    async def run(self, listen: Place, on_ready: Callable[[str, int], None], rotate: float | None) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._over.set)
        await self._try_upstream(loop)
        try:
            server = await loop.create_server(
                lambda: _Pair(self).client, listen.host, listen.port, ssl=listen.tls, start_serving=False
            )
        except (OSError, UnicodeError) as error:
            code = getattr(error, "errno", None)
            reason = os.strerror(code) if code and code > 0 else getattr(error, "strerror", None) or str(error)
            raise TargetUnreachable(f"cannot listen on {listen.host} port {listen.port}: {reason}") from None
        await loop.subprocess_exec(
            lambda: self._recorder,
            sys.executable, "-m", "amqpspec.conformance.recording.recorder", self._options.to_json(),
            stdout=None,
        )  # fmt: skip
        await server.start_serving()  # not before: of a client that came earlier nothing would be recorded
        host, port = server.sockets[0].getsockname()[:2]
        on_ready(host, port)
        while rotate is not None and not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), rotate)
            self.note(NoteKind.ROTATE, 0)
        await self._over.wait()
        server.close()
        for pair in list(self.pairs):
            pair.stop()
        self._recorder.end()
        await self._recorder.ended.wait()
        if self._recorder.problem is not None:
            raise TraceError(self._recorder.problem)
        return self.connections

    async def _try_upstream(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            transport, _ = await self.connect_upstream(loop, asyncio.Protocol)
        except OSError as error:
            where = f"{self.upstream.host} port {self.upstream.port}"
            raise TargetUnreachable(f"cannot connect to {where}: {_reason(error)}") from None
        transport.abort()

    async def connect_upstream(
        self, loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol]
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Raises `OSError`, of which `TimeoutError` is one."""
        name = self.upstream.host if self.upstream_tls is not None else None
        return await asyncio.wait_for(
            loop.create_connection(
                protocol, self.upstream.host, self.upstream.port, ssl=self.upstream_tls, server_hostname=name
            ),
            _LONGEST_CONNECT,
        )

    def note(self, kind: NoteKind, connection: int, octets: bytes = b"") -> None:
        self._recorder.write(note_octets(Note(kind, connection, time.monotonic() - self._began, octets)))

    @property
    def may_read(self) -> bool:
        return not self._recorder.is_behind

    def recorder_changed(self) -> None:
        """It has caught up, or fallen behind."""
        for pair in self.pairs:
            pair.flow()

    def recorder_ended(self) -> None:
        self._over.set()


class _RecorderPipe(asyncio.SubprocessProtocol):
    """The recorder's process, and what goes into it."""

    def __init__(self, forwarder: _Forwarder) -> None:
        self.is_behind = False
        self.problem: str | None = None
        self.ended = asyncio.Event()
        self._forwarder = forwarder
        self._transport: asyncio.SubprocessTransport | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._said = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        pipe = transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        pipe.set_write_buffer_limits(high=MOST_BEHIND)
        self._pipe = pipe

    def write(self, octets: bytes) -> None:
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.write(octets)

    def pause_writing(self) -> None:
        self.is_behind = True
        self._forwarder.recorder_changed()

    def resume_writing(self) -> None:
        self.is_behind = False
        self._forwarder.recorder_changed()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._said += data

    def end(self) -> None:
        """Everything was told; what is in the pipe will be written."""
        if self._pipe is not None:
            self._pipe.close()

    def connection_lost(self, exc: Exception | None) -> None:
        code = self._transport.get_returncode() if self._transport is not None else None
        if code:
            lines = self._said.decode("utf-8", "replace").strip().splitlines()
            self.problem = lines[-1] if lines else f"the process that writes the trace ended with code {code}"
        self.ended.set()
        self._forwarder.recorder_ended()


class _Pair:
    """A client's connection and the one to the broker."""

    def __init__(self, forwarder: _Forwarder) -> None:
        self.forwarder = forwarder
        self.number = 0
        self.client = _End(self, NoteKind.SENT)
        self.broker = _End(self, NoteKind.RECEIVED)
        self._is_over = False
        self._connecting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The client is there."""
        forwarder = self.forwarder
        forwarder.connections += 1
        self.number = forwarder.connections
        forwarder.pairs.add(self)
        forwarder.note(NoteKind.BEGUN, self.number)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self.forwarder.connect_upstream(asyncio.get_running_loop(), lambda: self.broker)
        except OSError as error:
            self.left(self.broker, f"the broker cannot be reached: {_reason(error)}")
            return
        if self._is_over:
            self.broker.abort()
            return
        self.flow()

    def other(self, end: _End) -> _End:
        return self.broker if end is self.client else self.client

    def flow(self) -> None:
        """Read from each side if there is somebody to take it."""
        for end in (self.client, self.broker):
            end.read(self.forwarder.may_read and self.other(end).takes)

    def left(self, end: _End, reason: str = "the broker ended the connection") -> None:
        """One side is gone: the other one gets what was said, and then its end as well."""
        if self._is_over:
            return
        self._is_over = True
        self.forwarder.pairs.discard(self)
        if end is self.client:
            self.forwarder.note(NoteKind.CLIENT_LEFT, self.number)
        else:
            self.forwarder.note(NoteKind.BROKER_LEFT, self.number, reason.encode())
        self.other(end).close()

    def stop(self) -> None:
        """The recording ends."""
        if not self._is_over:
            self._is_over = True
            self.forwarder.pairs.discard(self)
            self.forwarder.note(NoteKind.STOPPED, self.number)
        if self._connecting is not None:
            self._connecting.cancel()
        self.client.abort()
        self.broker.abort()


class _End(asyncio.Protocol):
    """One side of a pair."""

    def __init__(self, pair: _Pair, kind: NoteKind) -> None:
        self._pair, self._kind = pair, kind
        self._transport: asyncio.Transport | None = None
        #: what is written once it is connected: Python 3.11.2 reads on from a client that is not to be read
        self._early = bytearray()
        self._is_full = False
        self._is_read = True

    @property
    def takes(self) -> bool:
        """May it be written to?"""
        return self._transport is not None and not self._is_full

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._early)
        if self._kind is NoteKind.SENT:
            self.read(False)  # until the broker is there
            self._pair.begin()

    def data_received(self, data: bytes) -> None:
        # noted first: what it brings about must not stand before it
        self._pair.forwarder.note(self._kind, self._pair.number, data)
        self._pair.other(self).write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pair.left(self)

    def pause_writing(self) -> None:
        self._is_full = True
        self._pair.flow()

    def resume_writing(self) -> None:
        self._is_full = False
        self._pair.flow()

    def read(self, wanted: bool) -> None:
        if self._transport is None or wanted == self._is_read or self._transport.is_closing():
            return
        self._is_read = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def write(self, octets: bytes) -> None:
        if self._transport is not None:
            self._transport.write(octets)
        else:
            self._early += octets

    def close(self) -> None:
        """What was written is still sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return error.reason or "the peer does not speak TLS"
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
