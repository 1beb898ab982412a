"""Octets that a broker sends to frames of the alphabet, strictly: what no peer may send is an error.

But what it means is clear where a whole method is there and its frame goes on: it is that method, with `octets_behind`.
`targets.codec.server_decoder` is the other side's, which takes whatever comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pamqp import constants

from amqpspec.model.protocol.methods import CONTENT_METHODS, OCTETS_BEHIND, Content, Method, Table, TraceEvent
from amqpspec.targets.codec.field_values import FieldSyntaxError
from amqpspec.targets.codec.framing import (
    BASIC,
    CONTENT_HEADER,
    DEFAULT_CONTENT_MAX,
    DEFAULT_FRAME_MAX,
    FRAME_ERROR,
    FRAME_HEADER,
    FRAME_OVERHEAD,
    PROTOCOL_HEADER,
    SYNTAX_ERROR,
    UNEXPECTED_FRAME,
    Decoded,
    FrameSyntaxError,
    Heartbeat,
    ProtocolHeader,
)
from amqpspec.targets.codec.methods import decode_arguments, decode_properties

_FRAME_TYPES = frozenset(
    {constants.FRAME_METHOD, constants.FRAME_HEADER, constants.FRAME_BODY, constants.FRAME_HEARTBEAT}
)


@dataclass(slots=True)
class _Unfinished:
    """A content-carrying method whose content has not all come."""

    method: str
    arguments: Table
    held: int
    properties: Table | None = None
    missing: int = 0
    body: bytearray = field(default_factory=bytearray)


class Decoder:
    """Octets of one direction of one connection to frames, incrementally and in bounded memory.

    It keeps at most one incomplete frame of `frame_max` octets, and unfinished content of `content_max`
    octets, methods and headers included, over all channels. `frame_max` may be changed once it is negotiated;
    0 means `content_max`. Frames get the given `connection` and `sent`; their time stays 0.
    """

    def __init__(
        self,
        connection: str = "",
        *,
        sent: bool = False,
        frame_max: int = DEFAULT_FRAME_MAX,
        content_max: int = DEFAULT_CONTENT_MAX,
    ) -> None:
        self.connection = connection
        self.sent = sent
        self.frame_max = frame_max
        self.content_max = content_max
        self._rest = bytearray()
        self._needed = 1
        self._unfinished: dict[int, _Unfinished] = {}
        self._held = 0
        self._failure: FrameSyntaxError | None = None

    @property
    def mid_frame(self) -> bool:
        """Whether the octets so far end within a frame or within the frames of one content."""
        return bool(self._rest or self._unfinished)

    def feed(self, octets: bytes) -> list[Decoded]:
        """What these octets complete, in order. Raises `FrameSyntaxError`, from then on for every call."""
        if self._failure is not None:
            raise FrameSyntaxError(
                str(self._failure), self._failure.octets, self._failure.reply_code, self._failure.channel
            )
        if self._rest:
            self._rest += octets
            if len(self._rest) < self._needed:  # or octet-by-octet input would take quadratic time
                return []
            octets = bytes(self._rest)
            self._rest.clear()
        decoded: list[Decoded] = []
        at = 0
        try:
            while at < len(octets):
                end = self._frame_end(octets, at)
                if end > len(octets):
                    self._needed = end - at
                    self._rest += octets[at:]
                    break
                item = self._decode(octets, at, end)
                if item is not None:
                    decoded.append(item)
                at = end
        except FrameSyntaxError as error:
            self._failure = error
            self._unfinished.clear()
            error.before = decoded
            raise
        return decoded

    def _frame_end(self, octets: bytes, at: int) -> int:
        """Where the frame at `at` ends, or where what must be known to say so ends."""
        if octets[at] == PROTOCOL_HEADER[0]:
            if not PROTOCOL_HEADER[:4].startswith(octets[at : at + 4]):
                raise FrameSyntaxError("neither a frame nor a protocol header", octets[at : at + 64])
            return at + 8
        if octets[at] not in _FRAME_TYPES:
            raise FrameSyntaxError(f"there is no frame type {octets[at]}", octets[at : at + 64])
        if at + FRAME_HEADER.size > len(octets):
            return at + FRAME_HEADER.size
        _, channel, size = FRAME_HEADER.unpack_from(octets, at)
        limit = self.frame_max or self.content_max
        if size + FRAME_OVERHEAD > limit:
            raise FrameSyntaxError(
                f"a frame of {size + FRAME_OVERHEAD} octets exceeds the limit of {limit}",
                octets[at : at + 64],
                channel=channel,
            )
        return at + FRAME_OVERHEAD + int(size)

    def _decode(self, octets: bytes, at: int, end: int) -> Decoded | None:
        if octets[at] == PROTOCOL_HEADER[0]:
            return ProtocolHeader(octets[at:end])
        kind, channel, size = FRAME_HEADER.unpack_from(octets, at)
        try:
            if octets[end - 1] != constants.FRAME_END:
                raise _Malformed(f"a frame ends with 0x{octets[end - 1]:02x} instead of 0xce", FRAME_ERROR)
            if kind == constants.FRAME_HEARTBEAT:
                if channel or size:
                    raise _Malformed("a heartbeat has a channel or a payload", FRAME_ERROR)
                return Heartbeat()
            payload = octets[at + FRAME_HEADER.size : end - 1]
            if kind == constants.FRAME_METHOD:
                return self._method(channel, payload)
            if kind == constants.FRAME_HEADER:
                return self._header(channel, payload)
            return self._body(channel, payload)
        except _Malformed as error:
            raise FrameSyntaxError(str(error), octets[at : at + 64], error.reply_code, channel) from None
        except FieldSyntaxError as error:
            raise FrameSyntaxError(str(error), octets[at : at + 64], SYNTAX_ERROR, channel) from None

    def _method(self, channel: int, payload: bytes) -> TraceEvent | None:
        if channel in self._unfinished:
            raise _Malformed(f"a method interrupts the content of {self._unfinished[channel].method}")
        name, arguments, end = decode_arguments(payload)
        if end < len(payload):
            arguments[OCTETS_BEHIND] = payload[end : end + 64].hex()
        if name in CONTENT_METHODS:
            self._hold(len(payload))
            self._unfinished[channel] = _Unfinished(name, arguments, len(payload))
            return None
        return Method(self.connection, channel, name, arguments, self.sent)

    def _header(self, channel: int, payload: bytes) -> TraceEvent | None:
        unfinished = self._unfinished.get(channel)
        if unfinished is None or unfinished.properties is not None:
            raise _Malformed("a content header comes without a method before it")
        if len(payload) < CONTENT_HEADER.size:
            raise _Malformed("a content header is cut short", SYNTAX_ERROR)
        class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
        if class_id != BASIC or weight != 0:
            raise _Malformed(f"a content header has class {class_id}, weight {weight} instead of {BASIC}, 0")
        if size > self.content_max:
            reason = f"a content of {size} octets exceeds the limit of {self.content_max}"
            raise _Malformed(reason, FRAME_ERROR)
        unfinished.properties = decode_properties(payload, CONTENT_HEADER.size)
        unfinished.missing = size
        self._hold(len(payload))
        unfinished.held += len(payload)
        return self._finished(channel, unfinished)

    def _body(self, channel: int, payload: bytes) -> TraceEvent | None:
        unfinished = self._unfinished.get(channel)
        if unfinished is None or unfinished.properties is None:
            raise _Malformed("a content body comes without a header before it")
        if len(payload) > unfinished.missing:
            raise _Malformed("a content body is longer than its header says", FRAME_ERROR)
        if payload:
            self._hold(len(payload))
            unfinished.held += len(payload)
            unfinished.missing -= len(payload)
            unfinished.body += payload
        return self._finished(channel, unfinished)

    def _finished(self, channel: int, unfinished: _Unfinished) -> TraceEvent | None:
        if unfinished.missing:
            return None
        del self._unfinished[channel]
        self._held -= unfinished.held
        content = Content(unfinished.properties or {}, bytes(unfinished.body))
        return Method(self.connection, channel, unfinished.method, unfinished.arguments, self.sent, content)

    def _hold(self, octets: int) -> None:
        self._held += octets
        if self._held > self.content_max + DEFAULT_FRAME_MAX:
            reason = f"unfinished contents exceed the limit of {self.content_max} octets"
            raise _Malformed(reason, FRAME_ERROR)


class _Malformed(Exception):
    def __init__(self, message: str, reply_code: int = UNEXPECTED_FRAME) -> None:
        super().__init__(message)
        self.reply_code = reply_code
