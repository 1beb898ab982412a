"""Frames of the alphabet to octets, for both ends of a connection; `Decoder` and `ServerDecoder` lead back.

A method, its content header and its content body frames are one `Method`, unless they are sent one by one on purpose.
What the octets mean field by field is in `targets.codec.methods` and `targets.codec.field_values`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from pamqp import constants

from amqpspec.model.protocol.methods import CONTENT_METHODS, EMPTY_CONTENT, Content, Table, TraceEvent
from amqpspec.targets.codec.decoder import Decoder
from amqpspec.targets.codec.field_values import EncodingError
from amqpspec.targets.codec.framing import (
    BASIC,
    CONTENT_HEADER,
    DEFAULT_CONTENT_MAX,
    DEFAULT_FRAME_MAX,
    FRAME_HEADER,
    FRAME_OVERHEAD,
    HEARTBEAT_OCTETS,
    PROTOCOL_HEADER,
    Decoded,
    FrameSyntaxError,
    Heartbeat,
    ProtocolHeader,
    framed,
)
from amqpspec.targets.codec.methods import encode_method_payload, encode_properties

__all__ = [
    "DEFAULT_CONTENT_MAX",
    "DEFAULT_FRAME_MAX",
    "HEARTBEAT_OCTETS",
    "PROTOCOL_HEADER",
    "Decoded",
    "Decoder",
    "EncodingError",
    "FrameSyntaxError",
    "Heartbeat",
    "ProtocolHeader",
    "encode",
    "encode_content",
    "encode_method",
]

_IDENTIFIERS = struct.Struct(">HH")


def encode(event: TraceEvent, frame_max: int = DEFAULT_FRAME_MAX) -> bytes:
    """Method frame, and for a method that carries content (or is given some) header and body frames.

    Bodies are cut to `frame_max` (0: no limit); methods, headers and single frames cannot be. A sent method without
    content is its method frame alone, whether it should have content or not. Nothing is validated but that it can be
    encoded: raises `EncodingError`.
    """
    single = _SINGLE.get(event.name)
    if single is not None:
        try:
            return single(event)
        except (struct.error, ValueError, TypeError) as error:
            raise EncodingError(f"{event.name}: {error}") from None
    octets = encode_method(event.channel, event.name, event.arguments)
    content = event.content
    if content is None:
        if event.sent or event.name not in CONTENT_METHODS:
            return octets
        content = EMPTY_CONTENT
    return octets + encode_content(event.channel, content, frame_max)


def encode_method(channel: int, method: str, arguments: Mapping[str, Any]) -> bytes:
    """The method frame alone."""
    return framed(constants.FRAME_METHOD, channel, encode_method_payload(method, arguments))


def encode_content(channel: int, content: Content, frame_max: int = DEFAULT_FRAME_MAX) -> bytes:
    """Content header and content body frames alone."""
    body = content.body
    header = CONTENT_HEADER.pack(BASIC, 0, len(body)) + encode_properties(content.properties)
    step = frame_max - FRAME_OVERHEAD if frame_max else len(body) or 1
    if step < 1:
        raise EncodingError(f"a frame-max of {frame_max} leaves no room for a body")
    return b"".join(
        [
            framed(constants.FRAME_HEADER, channel, header),
            *[framed(constants.FRAME_BODY, channel, body[at : at + step]) for at in range(0, len(body), step)],
        ]
    )


def _payload(arguments: Table, default: str = "") -> bytes:
    return bytes.fromhex(arguments.get("payload", default))


def _single_method(event: TraceEvent) -> bytes:
    identifiers = _IDENTIFIERS.pack(event.arguments.get("class_id", 0), event.arguments.get("method_id", 0))
    return framed(constants.FRAME_METHOD, event.channel, identifiers + _payload(event.arguments))


def _single_header(event: TraceEvent) -> bytes:
    arguments = event.arguments
    beginning = CONTENT_HEADER.pack(
        arguments.get("class_id", BASIC), arguments.get("weight", 0), arguments.get("body_size", 0)
    )
    return framed(constants.FRAME_HEADER, event.channel, beginning + _payload(arguments, "0000"))


def _single_body(event: TraceEvent) -> bytes:
    return framed(constants.FRAME_BODY, event.channel, (event.content or EMPTY_CONTENT).body)


def _other(event: TraceEvent) -> bytes:
    arguments = event.arguments
    payload = _payload(arguments)
    header = FRAME_HEADER.pack(arguments.get("type", 1), event.channel, arguments.get("size", len(payload)))
    return header + payload + bytes((arguments.get("end", constants.FRAME_END),))


def _protocol_header(event: TraceEvent) -> bytes:
    """Eight octets that need not be one."""
    octets = bytes.fromhex(event.arguments.get("octets", ""))
    if len(octets) != len(PROTOCOL_HEADER):
        raise EncodingError(f"a protocol header has {len(PROTOCOL_HEADER)} octets, not {len(octets)}")
    return octets


_SINGLE = {
    "protocol.header": _protocol_header,
    "frame.method": _single_method,
    "frame.header": _single_header,
    "frame.body": _single_body,
    "frame.other": _other,
}
