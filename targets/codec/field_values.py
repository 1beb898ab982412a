"""Field tables, arrays and values of AMQP 0-9-1 (section 4.2.5, with RabbitMQ's errata) to octets and back.

pamqp's own table codec is not used: it slices the rest of the buffer once per field (quadratic in what a
hostile broker sends), accepts truncated strings, takes nesting of any depth, writes doubles as singles and
reads late timestamps as milliseconds.

Python and wire types: bool `t`, int `I` or `l`, float `d`, Decimal `D`, str `S`, bytes `x`, None `V`, list
`A`, dict `F`, datetime `T` (whole seconds, UTC), and `model.protocol.field_types` for `b B s u i L f` and a small `l`.
Read but never written: the octet 0 for `V`. Octets that are not UTF-8 are kept in a str by the error handler
"surrogateescape": they round-trip.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pamqp import decode as pamqp_decode
from pamqp import encode as pamqp_encode

from amqpspec.model.protocol.field_types import WIRE_NUMBERS, Float32, Int64, WireInteger
from amqpspec.model.protocol.methods import Table

#: Deeper tables are a syntax error: far above any use, far below the interpreter's recursion limit.
MAX_DEPTH = 100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)

_U32 = struct.Struct(">I")
_FIXED = {code: struct.Struct(">" + form) for code, form in zip(b"bBsuIilLfd", "bBhHiIqqfd", strict=True)}


class EncodingError(ValueError):
    """A value that has no AMQP 0-9-1 encoding; the message names it."""


class FieldSyntaxError(ValueError):
    """Octets that are no field value."""


class FarTimestamp(int):
    """Seconds of a `T` value past the year 9999, which no datetime can hold."""


def encode_short_string(value: str) -> bytes:
    octets = _utf8(value)
    if len(octets) > 255:
        raise EncodingError(f"a short string holds at most 255 octets, this one has {len(octets)}")
    return bytes((len(octets),)) + octets


def encode_long_string(value: str | bytes | bytearray) -> bytes:
    octets = bytes(value) if isinstance(value, bytes | bytearray) else _utf8(value)
    return _U32.pack(len(octets)) + octets


def _utf8(value: str) -> bytes:
    if not isinstance(value, str):
        raise EncodingError(f"a string is wanted, not {value!r}")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise EncodingError(f"{value!r} holds a lone surrogate") from None


def encode_table(table: Mapping[str, Any], depth: int = 0) -> bytes:
    """A field table in the order of the mapping. Raises `EncodingError`."""
    if not isinstance(table, Mapping):
        raise EncodingError(f"a table is wanted, not {table!r}")
    fields = [encode_short_string(name) + _encode_value(value, depth + 1) for name, value in table.items()]
    body = b"".join(fields)
    return _U32.pack(len(body)) + body


def _encode_value(value: Any, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise EncodingError(f"tables may be nested {MAX_DEPTH} deep")
    match value:
        case bool():
            return b"t\x01" if value else b"t\x00"
        case str():
            return b"S" + encode_long_string(value)
        case FarTimestamp():
            return b"T" + struct.pack(">Q", value)
        case WireInteger() | Float32():
            try:
                return value.code.encode() + _FIXED[ord(value.code)].pack(value)
            except (struct.error, OverflowError):
                raise EncodingError(f"{value} is no {value.term}") from None
        case int():
            return _encode_integer(value)
        case None:
            return b"V"
        case float():
            return b"d" + struct.pack(">d", value)
        case bytes() | bytearray():
            return b"x" + encode_long_string(value)
        case Mapping():
            return b"F" + encode_table(value, depth)
        case datetime():
            return b"T" + struct.pack(">Q", _seconds(value))
        case Decimal():
            if value.as_tuple().exponent not in range(-255, 1) or (not value and value.is_signed()):
                raise EncodingError(f"{value} is no AMQP decimal: digits, and how many of them are behind the point")
            try:
                return b"D" + pamqp_encode.decimal(value)
            except (TypeError, ArithmeticError) as error:
                raise EncodingError(f"{value} is no AMQP decimal: {error}") from None
        case Sequence():
            body = b"".join([_encode_value(item, depth + 1) for item in value])
            return b"A" + _U32.pack(len(body)) + body
    raise EncodingError(f"{value!r} of type {type(value).__name__} has no place in a field table")


def _encode_integer(value: int) -> bytes:
    # RabbitMQ takes every integer type for x-arguments, but other brokers know these two signed ones only.
    if -0x8000_0000 <= value <= 0x7FFF_FFFF:
        return b"I" + struct.pack(">i", value)
    if -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        return b"l" + struct.pack(">q", value)
    raise EncodingError(f"{value} does not fit in 64 signed bits")


def _seconds(moment: datetime) -> int:
    if moment.tzinfo is None or moment.microsecond:
        raise EncodingError(f"{moment} is no AMQP timestamp, which has whole seconds, and a zone as in +00:00")
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    if seconds < 0:
        raise EncodingError(f"{moment} is before 1970, which an AMQP timestamp cannot be")
    return seconds


def decode_short_string(octets: bytes, start: int) -> tuple[str, int]:
    """The string at `start` and the offset after it."""
    if start >= len(octets):
        raise FieldSyntaxError("ends before a short string")
    begin = start + 1
    end = begin + octets[start]
    if end > len(octets):
        raise FieldSyntaxError(f"a short string of {octets[start]} octets is cut short")
    return octets[begin:end].decode("utf-8", "surrogateescape"), end


def decode_long_string(octets: bytes, start: int) -> tuple[str, int]:
    begin, end = _extent(octets, start, len(octets), "a long string")
    return octets[begin:end].decode("utf-8", "surrogateescape"), end


def decode_table(octets: bytes, start: int) -> tuple[Table, int]:
    """The field table at `start` and the offset after it. Of duplicate names the last counts."""
    return _decode_table(octets, start, len(octets), 0)


def _extent(octets: bytes, start: int, limit: int, what: str) -> tuple[int, int]:
    """Begin and end of something that is preceded by its length in 4 octets and must end before `limit`."""
    begin = start + 4
    if begin > limit:
        raise FieldSyntaxError(f"ends before the length of {what}")
    length: int = _U32.unpack_from(octets, start)[0]
    if begin + length > limit:
        raise FieldSyntaxError(f"{what} of {length} octets is cut short")
    return begin, begin + length


def _decode_table(octets: bytes, start: int, limit: int, depth: int) -> tuple[Table, int]:
    at, end = _extent(octets, start, limit, "a table")
    table: Table = {}
    while at < end:
        name, at = decode_short_string(octets, at)
        if at > end:
            raise FieldSyntaxError("a field name runs past the end of its table")
        table[name], at = _decode_value(octets, at, end, depth + 1)
    return table, end


def _decode_value(octets: bytes, at: int, end: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise FieldSyntaxError(f"tables are nested more than {MAX_DEPTH} deep")
    if at >= end:
        raise FieldSyntaxError("ends before the type of a field")
    code = octets[at]
    at += 1
    match code:
        case 0x53:  # S
            begin, stop = _extent(octets, at, end, "a long string")
            return octets[begin:stop].decode("utf-8", "surrogateescape"), stop
        case 0x46:  # F
            return _decode_table(octets, at, end, depth)
        case 0x41:  # A
            at, stop = _extent(octets, at, end, "an array")
            items = []
            while at < stop:
                item, at = _decode_value(octets, at, stop, depth + 1)
                items.append(item)
            return items, stop
        case 0x78:  # x
            begin, stop = _extent(octets, at, end, "a byte array")
            return octets[begin:stop], stop
        case 0x56 | 0x00:  # V
            return None, at
    if code in _FIXED:
        form = _FIXED[code]
        _check_room(at, form.size, end, code)
        number = form.unpack_from(octets, at)[0]
        return _typed(chr(code), number), at + form.size
    match code:
        case 0x74:  # t
            _check_room(at, 1, end, code)
            return octets[at] != 0, at + 1
        case 0x54:  # T
            _check_room(at, 8, end, code)
            seconds: int = struct.unpack_from(">Q", octets, at)[0]
            moment = _EPOCH + timedelta(seconds=seconds) if seconds <= _LAST_SECOND else FarTimestamp(seconds)
            return moment, at + 8
        case 0x44:  # D
            _check_room(at, 5, end, code)
            return pamqp_decode.decimal(octets[at : at + 5])[1], at + 5
    raise FieldSyntaxError(f"a field has the unknown type 0x{code:02x}")


def _typed(code: str, number: Any) -> Any:
    kind = WIRE_NUMBERS.get(code)
    if kind is None or (kind is Int64 and not -0x8000_0000 <= number <= 0x7FFF_FFFF):
        return number
    return kind(number)


def _check_room(at: int, size: int, end: int, code: int) -> None:
    if at + size > end:
        raise FieldSyntaxError(f"a field of type {chr(code)} is cut short")
