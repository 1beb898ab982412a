"""The server's end of one TCP connection: octets in, octets out, and its place in life.

Memory is bounded: at most one read's worth of decoded items waits, and a client that does not read what was sent to it
is `congested`, which stops the reading from it and the deliveries to it until it does.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
from collections import deque
from collections.abc import Sequence
from enum import Enum

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.client.handshake import Tune
from amqpspec.targets.client.stream import Stream
from amqpspec.targets.clock import Clock
from amqpspec.targets.codec.methods_codec import (
    DEFAULT_CONTENT_MAX,
    DEFAULT_FRAME_MAX,
    HEARTBEAT_OCTETS,
    Decoded,
    encode,
)
from amqpspec.targets.codec.server_decoder import OutOfRoom, ServerDecoder

#: Octets that wait for a slow reader before it is congested, and those at which it is no longer.
HIGH_WATER = 512 * 1024
LOW_WATER = 64 * 1024
_WRITE_SIZE = 128 * 1024
#: Seconds for the handshake (RabbitMQ's handshake_timeout), and for the client's part of an end.
HANDSHAKE_PATIENCE = 10.0
ENDING_PATIENCE = 10.0
#: Seconds for a client to read why nothing more of it is (rabbit_reader:fatal_frame_error).
GRACE = 3.0
#: Before login nobody needs to send contents.
_CONTENT_MAX_BEFORE_LOGIN = 0
_NEVER = float("inf")


class Phase(Enum):
    """Where in its life a connection is."""

    HANDSHAKE = "handshake"
    OPEN = "open"
    #: the server sent connection.close and waits for close-ok
    CLOSING = "closing"
    #: nothing more is said: what waits is written, then the stream is ended, and the client's end awaited
    HANGING_UP = "hanging up"
    OVER = "over"


class ClientConnection:
    """Reads and writes never raise; an error or the end of the stream shows in `lost`."""

    def __init__(self, name: str, sock: socket.socket, clock: Clock) -> None:
        self.name = name
        #: what the client calls it
        self.title = ""
        self.phase = Phase.HANDSHAKE
        #: the client ended the stream, or it broke: there is nobody to write to
        self.lost = False
        self.congested = False
        #: decoded and not processed
        self.inbox: deque[Decoded | OutOfRoom] = deque()
        self.frame_max = DEFAULT_FRAME_MAX
        self._socket = sock
        self.stream = Stream(sock)
        self._decoder = ServerDecoder(name, content_max=_CONTENT_MAX_BEFORE_LOGIN)
        self._outgoing = bytearray()
        self._heartbeat = 0
        self._clock = clock
        now = clock.now()
        self._last_life = self._last_write = now
        self._deadline = now + HANDSHAKE_PATIENCE
        self._write_ended = False
        self.events = selectors.EVENT_READ

    # ---------------------------------------------------------------------------------------- its life

    def adopt(self, tune: Tune) -> None:
        """The connection is open, with these limits."""
        self.phase = Phase.OPEN
        self.frame_max = self._decoder.frame_max = tune.frame_max
        self._decoder.content_max = DEFAULT_CONTENT_MAX
        self._heartbeat = tune.heartbeat
        self._deadline = _NEVER

    def await_close_ok(self) -> None:
        """The server's connection.close was sent."""
        self.phase = Phase.CLOSING
        # what cannot be decoded any more is no close-ok either; the client has the time to read why
        patience = GRACE if self._decoder.is_lost else ENDING_PATIENCE
        self._deadline = self._clock.now() + patience

    def hang_up(self) -> None:
        """Nothing more will be sent but what waits already."""
        if self.phase is not Phase.OVER:
            self.phase = Phase.HANGING_UP
            self.inbox.clear()
            self._deadline = self._clock.now() + ENDING_PATIENCE
            self.flush()

    def close(self) -> None:
        self.phase = Phase.OVER
        self.inbox.clear()
        self._outgoing.clear()
        self.stream.close()

    def break_off(self) -> None:
        """The connection is lost as by a broken network: the client is not even told that the stream ends."""
        self._outgoing.clear()
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    # ---------------------------------------------------------------------------------------- octets in

    def half_contents(self) -> Sequence[TraceEvent]:
        """What has come of contents that will never be whole."""
        return self._decoder.give_up()

    def read(self) -> None:
        """Take what has arrived into the inbox."""
        try:
            octets = self.stream.read()
        except OSError:
            self._lose()
            return
        if octets is None:
            return
        if not octets:
            self._lose()
            return
        self._last_life = self._clock.now()
        if self.phase is Phase.HANGING_UP:
            return  # read, so that the end of the stream is not a reset that overtakes the last words
        self.inbox.extend(self._decoder.feed(octets))

    # --------------------------------------------------------------------------------------- octets out

    def send(self, event: TraceEvent) -> None:
        """Put the frame behind what waits to be written. Raises `EncodingError`."""
        self.send_octets(encode(event, self.frame_max))

    def send_half(self, event: TraceEvent) -> None:
        """The first half of it, at once, and then the end of the stream. Raises `EncodingError`."""
        octets = encode(event, self.frame_max)
        self.send_octets(octets[: len(octets) - max(len(octets) // 4, 1)])
        self.flush()
        self._end_stream()

    def send_octets(self, octets: bytes) -> None:
        if self.lost or self._write_ended:
            return
        self._outgoing += octets
        if len(self._outgoing) >= _WRITE_SIZE:
            self.flush()

    def flush(self) -> None:
        """Write what can be written now."""
        outgoing = self._outgoing
        try:
            while outgoing and not self.lost:
                with memoryview(outgoing) as whole, whole[:_WRITE_SIZE] as part:
                    written = self.stream.write(part)
                if not written:
                    break
                del outgoing[:written]
                self._last_write = self._clock.now()
                if self.congested:
                    self._last_life = self._last_write  # it reads; what it sends is not read now
        except OSError:
            self._lose()
        self.congested = len(outgoing) > (LOW_WATER if self.congested else HIGH_WATER)
        if self.phase is Phase.HANGING_UP and not outgoing and not self._write_ended:
            self._end_stream()

    def wanted_events(self) -> int:
        """What the selector is to wait for."""
        events = 0 if self.congested and self.phase is not Phase.HANGING_UP else selectors.EVENT_READ
        return events | selectors.EVENT_WRITE if self._outgoing else events

    def _end_stream(self) -> None:
        self._write_ended = True
        with contextlib.suppress(OSError, ValueError):
            if isinstance(self._socket, ssl.SSLSocket):
                # says goodbye; that the client's goodbye is not there yet is the error that is suppressed
                self._socket.unwrap()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def _lose(self) -> None:
        self.lost = True
        self.congested = False
        self._outgoing.clear()

    # -------------------------------------------------------------------------------------------- time

    def due(self) -> float:
        """When (by the clock) `tick` has something to do."""
        if not self._heartbeat or self.phase is Phase.HANGING_UP:
            return self._deadline
        return min(self._deadline, self._silent_until(), self._heartbeat_due())

    def tick(self, now: float) -> None:
        """Send a heartbeat that is due; lose a client that was silent, or slow, for too long."""
        if now >= self._deadline:
            self._lose()
        elif self._heartbeat and self.phase is not Phase.HANGING_UP:
            if now >= self._silent_until():
                self._lose()
            elif now >= self._heartbeat_due():
                self._last_write = now
                if not self._outgoing:
                    self.send_octets(HEARTBEAT_OCTETS)
                    self.flush()

    def _heartbeat_due(self) -> float:
        return self._last_write + self._heartbeat / 2

    def _silent_until(self) -> float:
        # CONN-022: two to three intervals without a sign of life
        return self._last_life + 2.5 * self._heartbeat
