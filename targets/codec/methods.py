"""Methods and content properties of AMQP 0-9-1 to octets and back, driven by one table.

The table (which fields, in which order, of which type) is read off pamqp's classes, which are generated from
the protocol's definition. Their `marshal` and `unmarshal` are not used: they refuse what a conformance suite
must be able to send (deprecated arguments, odd names, any delivery mode, empty strings, tags of 64 unsigned
bits) and accept truncated fields.

Argument names are those of the specification with underscores (`type`, `no_ack`), except `nowait` and `global_`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pamqp import commands

from amqpspec.model.protocol.methods import METHOD_IDS, Table
from amqpspec.targets.codec.field_values import (
    EncodingError,
    FieldSyntaxError,
    decode_long_string,
    decode_short_string,
    decode_table,
    encode_long_string,
    encode_short_string,
    encode_table,
)

_INTEGERS = {
    "octet": struct.Struct(">B"),
    "short": struct.Struct(">H"),
    "long": struct.Struct(">I"),
    "longlong": struct.Struct(">Q"),
    "timestamp": struct.Struct(">Q"),
}
#: Where pamqp's name is not the specification's.
_SPECIFIED_NAMES = {"exchange_type": "type", "message_type": "type"}
#: Fields that 0-9-1 reserves: zero when encoded unless given, left out when decoded.
_RESERVED = frozenset({"ticket", "out_of_band", "insist", "capabilities", "known_hosts", "channel_id", "cluster_id"})


class _Field(NamedTuple):
    """A field, or a run of at most eight bits that share an octet (`bits`)."""

    name: str
    kind: str
    reserved: bool = False
    bits: tuple[_Field, ...] = ()


@dataclass(frozen=True, slots=True)
class _Method:
    name: str
    index: bytes
    fields: tuple[_Field, ...]
    names: frozenset[str]


def _packed(fields: list[_Field]) -> tuple[_Field, ...]:
    packed: list[_Field] = []
    for field in fields:
        if field.kind != "bit":
            packed.append(field)
        elif packed and packed[-1].kind == "bits" and len(packed[-1].bits) < 8:
            packed[-1] = _Field("", "bits", bits=(*packed[-1].bits, field))
        else:
            packed.append(_Field("", "bits", bits=(field,)))
    return tuple(packed)


def _method_table() -> dict[str, _Method]:
    table = {}
    for name, (class_id, method_id) in METHOD_IDS.items():
        definition: type[Any] = commands.INDEX_MAPPING[class_id << 16 | method_id]
        fields = [
            _Field(_SPECIFIED_NAMES.get(field, field), definition.amqp_type(field), field in _RESERVED)
            for field in definition.attributes()
        ]
        index = struct.pack(">HH", class_id, method_id)
        table[name] = _Method(name, index, _packed(fields), frozenset(field.name for field in fields))
    return table


_METHODS = _method_table()
_METHODS_BY_INDEX = {method.index: method for method in _METHODS.values()}

_Definition = commands.Basic.Properties
#: Properties of content in the order of their flags, the highest bit first.
_PROPERTIES = tuple(
    (_SPECIFIED_NAMES.get(name, name), _Definition.amqp_type(name), _Definition.flags[name])
    for name in _Definition.attributes()
)
_PROPERTY_NAMES = frozenset(name for name, _, _ in _PROPERTIES)
_KNOWN_FLAGS = sum(flag for _, _, flag in _PROPERTIES)


def _encode_field(kind: str, value: Any) -> bytes:
    if kind == "shortstr":
        return encode_short_string(value)
    if kind == "longstr":
        return encode_long_string(value)
    if kind == "table":
        return encode_table(value)
    try:
        return _INTEGERS[kind].pack(value)
    except struct.error:
        raise EncodingError(f"{value!r} is no unsigned integer of {8 * _INTEGERS[kind].size} bits") from None


_ZERO_OCTETS = {kind: bytes(form.size) for kind, form in _INTEGERS.items()} | {
    "shortstr": encode_short_string(""),
    "longstr": encode_long_string(""),
    "table": encode_table({}),
}


def encode_method_payload(name: str, arguments: Mapping[str, Any]) -> bytes:
    """The payload of a method frame; arguments that are not given are zero. Raises `EncodingError`."""
    method = _METHODS.get(name)
    if method is None:
        raise EncodingError(f"there is no method {name}")
    if not method.names.issuperset(arguments):
        unknown = ", ".join(sorted(set(arguments) - method.names))
        raise EncodingError(f"{name} has no argument {unknown}")
    parts = [method.index]
    for field in method.fields:
        if field.kind == "bits":
            octet = 0
            for position, bit in enumerate(field.bits):
                if arguments.get(bit.name):
                    octet |= 1 << position
            parts.append(bytes((octet,)))
        elif field.name in arguments:
            try:
                parts.append(_encode_field(field.kind, arguments[field.name]))
            except EncodingError as error:
                raise EncodingError(f"{name} {field.name}: {error}") from None
        else:
            parts.append(_ZERO_OCTETS[field.kind])
    return b"".join(parts)


def decode_method_payload(payload: bytes) -> tuple[str, Table]:
    """Method name and all its arguments but the reserved ones. Raises `FieldSyntaxError`."""
    name, arguments, end = decode_arguments(payload)
    if end != len(payload):
        raise FieldSyntaxError(f"{name}: {len(payload) - end} octets follow the last argument")
    return name, arguments


def decode_arguments(payload: bytes) -> tuple[str, Table, int]:
    """The same, and where the last argument ends, whatever follows it."""
    method = _METHODS_BY_INDEX.get(payload[:4])
    if method is None:
        raise FieldSyntaxError(f"there is no method with the identifier 0x{payload[:4].hex()}")
    arguments: Table = {}
    at = 4
    for field in method.fields:
        try:
            if field.kind == "bits":
                octet = payload[at]
                at += 1
                for position, bit in enumerate(field.bits):
                    if not bit.reserved:
                        arguments[bit.name] = bool(octet >> position & 1)
                continue
            value, at = _decode_field(field.kind, payload, at)
        except (FieldSyntaxError, IndexError, struct.error) as error:
            reason = error if isinstance(error, FieldSyntaxError) else "is cut short"
            raise FieldSyntaxError(f"{method.name} {field.name or field.bits[0].name}: {reason}") from None
        if not field.reserved:
            arguments[field.name] = value
    return method.name, arguments, at


def arguments_fit(payload: bytes) -> bool:
    """Do the lengths of all arguments add up to the payload, whatever is in them?

    What cannot be decoded all the same has something wrong inside a table.
    """
    method = _METHODS_BY_INDEX.get(payload[:4])
    if method is None:
        return False
    at = 4
    for field in method.fields:
        if at >= len(payload):
            return False
        if field.kind == "bits":
            at += 1
        elif field.kind == "shortstr":
            at += 1 + payload[at]
        elif field.kind in ("longstr", "table"):
            at += 4 + int.from_bytes(payload[at : at + 4], "big")
        else:
            at += _INTEGERS[field.kind].size
    return at == len(payload)


def _decode_field(kind: str, octets: bytes, at: int) -> tuple[Any, int]:
    if kind == "shortstr":
        return decode_short_string(octets, at)
    if kind == "longstr":
        return decode_long_string(octets, at)
    if kind == "table":
        return decode_table(octets, at)
    form = _INTEGERS[kind]
    return form.unpack_from(octets, at)[0], at + form.size


def encode_properties(properties: Mapping[str, Any]) -> bytes:
    """Flags and values of the properties that are in the mapping. Raises `EncodingError`."""
    if not _PROPERTY_NAMES.issuperset(properties):
        unknown = ", ".join(sorted(set(properties) - _PROPERTY_NAMES))
        raise EncodingError(f"content has no property {unknown}")
    flags = 0
    parts = [b""]
    for name, kind, flag in _PROPERTIES:
        if name in properties:
            flags |= flag
            try:
                parts.append(_encode_field(kind, properties[name]))
            except EncodingError as error:
                raise EncodingError(f"property {name}: {error}") from None
    parts[0] = struct.pack(">H", flags)
    return b"".join(parts)


def decode_properties(octets: bytes, at: int) -> Table:
    """The properties that are set, from the flags at `at` to the end. Raises `FieldSyntaxError`."""
    if at + 2 > len(octets):
        raise FieldSyntaxError("content header: ends before the property flags")
    flags: int = struct.unpack_from(">H", octets, at)[0]
    if flags & ~_KNOWN_FLAGS:
        raise FieldSyntaxError(f"content header: unknown property flags 0x{flags & ~_KNOWN_FLAGS:04x}")
    at += 2
    properties: Table = {}
    for name, kind, flag in _PROPERTIES:
        if flags & flag:
            try:
                properties[name], at = _decode_field(kind, octets, at)
            except (FieldSyntaxError, struct.error) as error:
                reason = error if isinstance(error, FieldSyntaxError) else "is cut short"
                raise FieldSyntaxError(f"property {name}: {reason}") from None
    if at != len(octets):
        raise FieldSyntaxError(f"content header: {len(octets) - at} octets follow the last property")
    return properties
