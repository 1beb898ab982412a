"""Octets of a client to frames of the alphabet, whatever they are: what is wrong about them is the model's to say."""

from __future__ import annotations

from dataclasses import dataclass, field

from pamqp import constants

from amqpspec.model.protocol.methods import CONTENT_METHODS, Content, Method, RawFrame, Table
from amqpspec.targets.codec.framing import (
    BASIC,
    CONTENT_HEADER,
    DEFAULT_CONTENT_MAX,
    DEFAULT_FRAME_MAX,
    FRAME_HEADER,
    FRAME_OVERHEAD,
    PROTOCOL_HEADER,
    Decoded,
    Heartbeat,
    ProtocolHeader,
)
from amqpspec.targets.codec.single_frames import header_arguments, readable_properties, single_frame

#: Octets by which a client may exceed the frame size that was agreed (rabbit_reader: FRAME_SIZE_FUDGE).
_FUDGE = FRAME_OVERHEAD
#: Octets that the record of a content takes, however little of it has come.
_RECORD = 1024


@dataclass(frozen=True, slots=True)
class OutOfRoom:
    """Contents that are not complete take all the memory that they may. Nothing more is decoded."""


@dataclass(slots=True)
class _Unfinished:
    """A method that carries content, of which something is still to come."""

    method: str
    arguments: Table
    held: int
    header: bytes = b""
    properties: Table | None = None
    missing: int = 0
    body: bytearray = field(default_factory=bytearray)


class ServerDecoder:
    """Octets of one client's connection to frames, incrementally, in bounded memory, never raising.

    The first eight octets are the protocol header, whatever they are, if it `awaits_header`. From then on a method with
    its whole content is one frame. Contents that will not become whole, or would be longer than `content_max`, come as
    single frames: their method alone, header and body (several bodies perhaps as one). After a frame whose end is not
    where it says, and one that says that it is longer than `frame_max` and the tolerance, nothing more comes: the place
    where the next one begins is lost.

    It keeps at most one incomplete frame of `frame_max` octets, and unfinished content of `content_max` octets over
    all channels; `OutOfRoom` is the last item where that does not do. Both may be changed once the connection is open;
    a `frame_max` of 0 means `content_max`, and with a `content_max` of 0 all frames come by themselves.
    """

    def __init__(
        self,
        connection: str = "",
        *,
        frame_max: int = DEFAULT_FRAME_MAX,
        content_max: int = DEFAULT_CONTENT_MAX,
        awaits_header: bool = True,
    ) -> None:
        self.connection = connection
        self.frame_max = frame_max
        self.content_max = content_max
        self._awaits_header = awaits_header
        self._lost = False
        self._rest = bytearray()
        self._needed = len(PROTOCOL_HEADER) if awaits_header else FRAME_HEADER.size
        self._unfinished: dict[int, _Unfinished] = {}
        self._held = 0
        #: channels on which all frames come by themselves: how much body is to come before contents are whole again;
        #: None: they never are
        self._apart: dict[int, int | None] = {}

    @property
    def is_lost(self) -> bool:
        """Nothing more will be decoded."""
        return self._lost

    @property
    def is_within(self) -> bool:
        """Has something begun, a frame or a content, that is not complete?"""
        return not self._lost and bool(self._rest or self._unfinished)

    def feed(self, octets: bytes) -> list[Decoded | OutOfRoom]:
        """What these octets complete, in order."""
        if self._lost:
            return []
        if self._rest:
            self._rest += octets
            if len(self._rest) < self._needed:  # or octet-by-octet input would take quadratic time
                return []
            octets = bytes(self._rest)
            self._rest.clear()
        decoded: list[Decoded | OutOfRoom] = []
        at = 0
        while at < len(octets) and not self._lost:
            end = self._frame_end(octets, at)
            if end > len(octets):
                self._needed = end - at
                self._rest += octets[at:]
                break
            self._decode(octets, at, end, decoded)
            at = end
        return decoded

    def give_up(self) -> list[Method | RawFrame]:
        """What has come of contents that will not become whole, as single frames."""
        decoded: list[Decoded | OutOfRoom] = []
        for channel in list(self._unfinished):
            self._take_apart(channel, None, decoded)
        return [each for each in decoded if isinstance(each, Method | RawFrame)]

    def _frame_end(self, octets: bytes, at: int) -> int:
        """Where the frame at `at` ends, or where what must be known to say so ends."""
        if self._awaits_header:
            return at + len(PROTOCOL_HEADER)
        if at + FRAME_HEADER.size > len(octets):
            return at + FRAME_HEADER.size
        size: int = FRAME_HEADER.unpack_from(octets, at)[2]
        if self._is_too_long(size):
            return at + FRAME_HEADER.size  # what follows is never waited for
        return at + FRAME_OVERHEAD + size

    def _is_too_long(self, size: int) -> bool:
        return size + FRAME_OVERHEAD > (self.frame_max or self.content_max or DEFAULT_FRAME_MAX) + _FUDGE

    def _decode(self, octets: bytes, at: int, end: int, decoded: list[Decoded | OutOfRoom]) -> None:
        if self._awaits_header:
            self._awaits_header = False
            decoded.append(ProtocolHeader(octets[at:end]))
            return
        kind, channel, size = FRAME_HEADER.unpack_from(octets, at)
        if end == at + FRAME_HEADER.size:
            half = RawFrame(self.connection, channel, "frame.other", {"type": kind, "size": size}, sent=True)
            self._lose(decoded, half)
            return
        payload = octets[at + FRAME_HEADER.size : end - 1]
        if octets[end - 1] != constants.FRAME_END:
            arguments = {"type": kind, "payload": payload.hex(), "end": octets[end - 1]}
            self._lose(decoded, RawFrame(self.connection, channel, "frame.other", arguments, sent=True))
        elif kind == constants.FRAME_HEARTBEAT and not channel and not size:
            decoded.append(Heartbeat())
        elif not channel or not self.content_max or channel in self._apart:
            self._single(channel, kind, payload, decoded)
        elif kind == constants.FRAME_METHOD:
            self._method(channel, payload, decoded)
        elif kind == constants.FRAME_HEADER:
            self._header(channel, payload, decoded)
        elif kind == constants.FRAME_BODY:
            self._body(channel, payload, decoded)
        else:
            self._single(channel, kind, payload, decoded)

    def _single(self, channel: int, kind: int, payload: bytes, decoded: list[Decoded | OutOfRoom]) -> None:
        decoded.append(single_frame(self.connection, channel, kind, payload))
        missing = self._apart.get(channel)
        if missing is None:
            return
        if kind == constants.FRAME_BODY and len(payload) < missing:
            self._apart[channel] = missing - len(payload)
        elif kind == constants.FRAME_BODY and len(payload) == missing:
            del self._apart[channel]
        else:
            self._apart[channel] = None

    def _method(self, channel: int, payload: bytes, decoded: list[Decoded | OutOfRoom]) -> None:
        if channel in self._unfinished:
            self._take_apart(channel, None, decoded)
        event = single_frame(self.connection, channel, constants.FRAME_METHOD, payload)
        if event.name not in CONTENT_METHODS or channel in self._apart:
            decoded.append(event)
            return
        held = len(payload) + _RECORD
        self._unfinished[channel] = _Unfinished(event.name, event.arguments, held)
        self._hold(held, decoded)

    def _header(self, channel: int, payload: bytes, decoded: list[Decoded | OutOfRoom]) -> None:
        unfinished = self._unfinished.get(channel)
        if unfinished is None or unfinished.header or len(payload) < CONTENT_HEADER.size:
            self._misplaced(channel, constants.FRAME_HEADER, payload, decoded)
            return
        class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
        properties = readable_properties(payload)
        if class_id != BASIC or weight:
            self._misplaced(channel, constants.FRAME_HEADER, payload, decoded)
            return
        unfinished.header = payload
        unfinished.properties = properties
        unfinished.missing = size
        if properties is None or size > self.content_max:
            self._take_apart(channel, size or None, decoded)
            if not size:
                del self._apart[channel]
            return
        unfinished.held += len(payload)
        if size:
            self._hold(len(payload), decoded)
        else:
            self._held += len(payload)
            self._finish(channel, unfinished, b"", decoded)

    def _body(self, channel: int, payload: bytes, decoded: list[Decoded | OutOfRoom]) -> None:
        unfinished = self._unfinished.get(channel)
        if unfinished is None or not unfinished.header or len(payload) > unfinished.missing:
            self._misplaced(channel, constants.FRAME_BODY, payload, decoded)
            return
        unfinished.held += len(payload)
        unfinished.missing -= len(payload)
        if unfinished.missing:
            unfinished.body += payload
            self._hold(len(payload), decoded)
        else:
            self._held += len(payload)
            self._finish(channel, unfinished, bytes(unfinished.body) + payload, decoded)

    def _misplaced(self, channel: int, kind: int, payload: bytes, decoded: list[Decoded | OutOfRoom]) -> None:
        if channel in self._unfinished:
            self._take_apart(channel, None, decoded)
        self._single(channel, kind, payload, decoded)

    def _finish(
        self, channel: int, unfinished: _Unfinished, body: bytes, decoded: list[Decoded | OutOfRoom]
    ) -> None:
        del self._unfinished[channel]
        self._held -= unfinished.held
        content = Content(unfinished.properties or {}, body)
        decoded.append(Method(self.connection, channel, unfinished.method, unfinished.arguments, True, content))

    def _take_apart(self, channel: int, missing: int | None, decoded: list[Decoded | OutOfRoom]) -> None:
        """Give what came of a content as single frames, and from now on all frames of the channel."""
        unfinished = self._unfinished.pop(channel)
        self._held -= unfinished.held
        self._apart[channel] = missing
        decoded.append(Method(self.connection, channel, unfinished.method, unfinished.arguments, sent=True))
        if unfinished.header:
            arguments = header_arguments(unfinished.header)
            decoded.append(RawFrame(self.connection, channel, "frame.header", arguments, sent=True))
        if unfinished.body:
            content = Content({}, bytes(unfinished.body))
            decoded.append(RawFrame(self.connection, channel, "frame.body", {}, sent=True, content=content))

    def _hold(self, octets: int, decoded: list[Decoded | OutOfRoom]) -> None:
        self._held += octets
        if self._held > self.content_max + DEFAULT_FRAME_MAX:
            self._lose(decoded, OutOfRoom())

    def _lose(self, decoded: list[Decoded | OutOfRoom], last: Decoded | OutOfRoom) -> None:
        self._lost = True
        self._unfinished.clear()
        self._apart.clear()
        decoded.append(last)
