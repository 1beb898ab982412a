"""What is common to both directions of the wire: the frame around a payload, and what can come besides methods."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from pamqp import constants

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.codec.field_values import EncodingError

#: Octets of a frame around its payload: type, channel, size, and the frame end.
FRAME_OVERHEAD = 8
DEFAULT_FRAME_MAX = 131_072
DEFAULT_CONTENT_MAX = 128 * 1024 * 1024
PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
#: Type, channel and size, the beginning of every frame.
FRAME_HEADER: Final = struct.Struct(">BHI")
#: Class, weight and body size, the beginning of every content header.
CONTENT_HEADER: Final = struct.Struct(">HHQ")
#: The class of all content.
BASIC: Final = 60

# Reply codes of the connection.close that a broker owes for such octets (section 1.3).
FRAME_ERROR, SYNTAX_ERROR, UNEXPECTED_FRAME = 501, 502, 505


def framed(kind: int, channel: int, payload: bytes) -> bytes:
    """The payload as a frame. Raises `EncodingError`."""
    if not 0 <= channel < 65536:
        raise EncodingError(f"there is no channel {channel}")
    return FRAME_HEADER.pack(kind, channel, len(payload)) + payload + constants.FRAME_END_CHAR


HEARTBEAT_OCTETS: Final = framed(constants.FRAME_HEARTBEAT, 0, b"")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat frame."""


@dataclass(frozen=True, slots=True)
class ProtocolHeader:
    """ "AMQP" and four octets: what a client begins with, and how a server refuses a version."""

    octets: bytes


Decoded = TraceEvent | Heartbeat | ProtocolHeader


class FrameSyntaxError(ValueError):
    """Octets that no AMQP 0-9-1 peer may send.

    `octets`: the beginning (at most 64) of the offending frame; `before`: what the same `feed` decoded before
    it; `reply_code`: 501, 502 or 505, what a broker closes the connection with; `channel`: of the frame.
    """

    def __init__(self, message: str, octets: bytes, reply_code: int = FRAME_ERROR, channel: int = 0) -> None:
        super().__init__(message)
        self.octets = octets[:64]
        self.reply_code = reply_code
        self.channel = channel
        self.before: list[Decoded] = []
