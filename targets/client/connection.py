"""One connection of the wire client: a stream, the frames that came over it, and whether it is over."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable

from amqpspec.model.protocol.methods import TraceEvent, event_of
from amqpspec.targets.client.handshake import Session
from amqpspec.targets.client.stream import Stream
from amqpspec.targets.codec.methods_codec import Decoder, FrameSyntaxError, ProtocolHeader
from amqpspec.targets.codec.tune import Tune

#: Octets that are read ahead of the caller while a write is stuck or the broker hangs up.
READ_AHEAD = 16 * 1024 * 1024
#: What a frame that waits to be received costs besides its octets: many small ones fill the memory as well.
_FRAME_COST = 1024
#: frame-min-size of 0-9-1: octets that a frame may have in any case.
FRAME_MIN_SIZE = 4096
_NEVER = float("inf")


class Connection:
    """Reads never raise: frames, and the end as a socket frame, go to `inbox`, with the time of `clock`."""

    def __init__(self, name: str, stream: Stream, inbox: deque[TraceEvent], clock: Callable[[], float]) -> None:
        self.name = name
        self.stream = stream
        self.inbox = inbox
        self.session = Session({}, Tune(channel_max=0, frame_max=0, heartbeat=0))
        #: the TCP connection is known to be over
        self.ended = False
        #: … and the caller has been told
        self.end_delivered = False
        #: nothing is written any more
        self.is_output_over = False
        #: the handshake has settled the limits
        self.is_tuned = False
        #: no heartbeats are sent, whatever was agreed
        self.is_silent = False
        #: called once, when it is over
        self.on_end: Callable[[Connection], None] = lambda connection: None
        self.now = clock
        self._decoder = Decoder(name)
        self._last_read = self._last_write = self.now()

    def adopt(self, session: Session) -> None:
        """Take over what the handshake settled."""
        self.session = session
        self.is_tuned = True
        # both sides must accept the least size that there is, whatever was agreed upon
        self._decoder.frame_max = max(session.tune.frame_max, FRAME_MIN_SIZE) if session.tune.frame_max else 0

    def read(self) -> int:
        """Take what has arrived into the inbox; its weight in octets (0: nothing came, or the stream ended)."""
        if self.ended:
            return 0
        try:
            octets = self.stream.read()
        except OSError as error:
            self.end(_lost(error))
            return 0
        if octets is None:
            return 0
        if not octets:
            within = " in the middle of a frame" if self._decoder.mid_frame else ""
            self.end(f"the broker ended the stream{within}")
            return 0
        self._last_read = self.now()
        waiting = len(self.inbox)
        self._decode(octets)
        return len(octets) + _FRAME_COST * (len(self.inbox) - waiting)

    def _decode(self, octets: bytes) -> None:
        now = self.now()
        garbage: FrameSyntaxError | None = None
        try:
            decoded = self._decoder.feed(octets)
        except FrameSyntaxError as error:
            decoded, garbage = error.before, error
        for item in decoded:
            if isinstance(item, TraceEvent):
                item.time = now
                self.inbox.append(item)
            elif isinstance(item, ProtocolHeader):
                self._queue("protocol.header", octets=item.octets.hex())
        if garbage is not None:
            self._finish("socket.garbage", octets=garbage.octets.hex(), reason=str(garbage))

    def write(self, octets: memoryview) -> memoryview:
        """Write what can be written now; what is left. An error ends the connection, and leaves nothing."""
        if self.ended or self.is_output_over:
            return octets[:0]
        try:
            written = self.stream.write(octets)
        except OSError as error:
            # What the broker said before it hung up, its connection.close perhaps, comes before the end.
            ahead = 0
            while ahead < READ_AHEAD and (count := self.read()):
                ahead += count
            self.end(_lost(error))
            return octets[:0]
        if written:
            self._last_write = self.now()
        return octets[written:]

    def end_output(self) -> None:
        """Nothing more is written, no heartbeats either; what the broker still says is read."""
        self.is_output_over = self.is_silent = True
        if not self.ended:
            self.stream.end_output()

    def end(self, reason: str) -> None:
        """Close, and put socket.closed with this reason into the inbox, unless it is over already."""
        self._finish("socket.closed", reason=reason)

    def release(self) -> None:
        """Be over without a word in the inbox. The stream is left to the caller to close or reset."""
        if not self.ended:
            self.ended = True
            self.on_end(self)

    def _finish(self, method: str, /, **arguments: str) -> None:
        if not self.ended:
            self.release()
            self.stream.close()
            self._queue(method, **arguments)

    def _queue(self, method: str, /, **arguments: str) -> None:
        self.inbox.append(event_of(self.name, 0, method, dict(arguments), sent=False, time=self.now()))

    # Heartbeats (section 4.2.7): we are silent for half an interval at most, the broker for two.

    def heartbeat_due(self) -> float:
        """When (by `now`) we are to send one."""
        if self.is_silent:
            return _NEVER
        return self._last_write + self.session.tune.heartbeat / 2

    def given_up_at(self) -> float:
        """When (by `now`) the broker has been silent for too long."""
        return self._last_read + 2 * self.session.tune.heartbeat


def _lost(error: OSError) -> str:
    if isinstance(error, ConnectionResetError):
        return "the broker reset the connection"
    if isinstance(error, BrokenPipeError):
        return "the broker ended the stream"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or type(error).__name__}"
    return error.strerror or type(error).__name__
