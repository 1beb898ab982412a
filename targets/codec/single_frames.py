"""Payloads that are not one whole method with its content, as frames of the class `frame` (`model.protocol.methods`).

The model judges these, so what it must know and cannot see in octets is told in arguments of its own:

* `frame.method` `fault`: what is wrong with the arguments of a method that exists, where it is not their lengths:
  "table" (something inside a field table) or "text" (a short string that is not UTF-8);
* `frame.header` `properties`: what the property list says, where it can be read.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from pamqp import constants

from amqpspec.model.protocol.methods import CONTENT_METHODS, Content, Method, RawFrame, Table, TraceEvent
from amqpspec.targets.codec.field_values import FieldSyntaxError
from amqpspec.targets.codec.framing import CONTENT_HEADER, FRAME_HEADER
from amqpspec.targets.codec.methods import arguments_fit, decode_method_payload, decode_properties
from amqpspec.targets.codec.methods_codec import encode

_IDENTIFIERS = struct.Struct(">HH")
#: Arguments that are any octets (domain longstr).
_LONG_STRINGS = frozenset({"response", "new_secret", "challenge"})
#: The two lowest property flags mean nothing to RabbitMQ (rabbit_framing_amqp_0_9_1:decode_properties).
_MEANINGLESS_FLAGS = 0b11


def single_frame(connection: str, channel: int, kind: int, payload: bytes) -> TraceEvent:
    """A frame of a client that ends as it should, by itself. A method frame that is right is its method."""
    if kind == constants.FRAME_METHOD and len(payload) >= 4:
        return _method(connection, channel, payload)
    if kind == constants.FRAME_HEADER and len(payload) >= CONTENT_HEADER.size:
        return RawFrame(connection, channel, "frame.header", header_arguments(payload), sent=True)
    if kind == constants.FRAME_BODY:
        return RawFrame(connection, channel, "frame.body", {}, sent=True, content=Content({}, payload))
    return RawFrame(connection, channel, "frame.other", {"type": kind, "payload": payload.hex()}, sent=True)


def as_understood(event: TraceEvent) -> TraceEvent:
    """The same frame as a server reads it: a `frame.method` that is right is its method, the rest is told as above."""
    if event.name not in ("frame.method", "frame.header"):
        return event
    octets = encode(event)
    understood = single_frame(event.connection, event.channel, octets[0], octets[FRAME_HEADER.size : -1])
    if understood.name != event.name:
        return understood
    return replace(event, arguments={**event.arguments, **understood.arguments})


def header_arguments(payload: bytes) -> Table:
    class_id, weight, body_size = CONTENT_HEADER.unpack_from(payload)
    rest = payload[CONTENT_HEADER.size :]
    arguments: Table = {"class_id": class_id, "weight": weight, "body_size": body_size, "payload": rest.hex()}
    properties = readable_properties(payload)
    if properties is not None:
        arguments["properties"] = properties
    return arguments


def readable_properties(payload: bytes) -> Table | None:
    """The properties in a content header's payload; None if the list cannot be read."""
    at = CONTENT_HEADER.size
    if len(payload) >= at + 2 and payload[at + 1] & _MEANINGLESS_FLAGS:
        payload = payload[: at + 1] + bytes((payload[at + 1] & ~_MEANINGLESS_FLAGS,)) + payload[at + 2 :]
    try:
        return decode_properties(payload, at)
    except FieldSyntaxError:
        return None


def _method(connection: str, channel: int, payload: bytes) -> TraceEvent:
    try:
        name, decoded = decode_method_payload(payload)
    except FieldSyntaxError:
        return _wrong_method(connection, channel, payload, "table" if arguments_fit(payload) else "")
    if name not in CONTENT_METHODS:
        for argument, value in decoded.items():
            if value.__class__ is str and not value.isascii() and _is_no_text(value) and argument not in _LONG_STRINGS:
                return _wrong_method(connection, channel, payload, "text")
    return Method(connection, channel, name, decoded, sent=True)


def _wrong_method(connection: str, channel: int, payload: bytes, fault: str) -> TraceEvent:
    class_id, method_id = _IDENTIFIERS.unpack_from(payload)
    arguments: Table = {"class_id": class_id, "method_id": method_id, "payload": payload[4:].hex()}
    if fault:
        arguments["fault"] = fault
    return RawFrame(connection, channel, "frame.method", arguments, sent=True)


def _is_no_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False
