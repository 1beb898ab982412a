"""Values of AMQP field tables as JSON, without loss.

JSON has no octets, no decimals, no time stamps, no infinite numbers, and only text as keys. A value of these
kinds is written as an object with one key that begins with `$`, its tag:

| tag | value | example |
|---|---|---|
| `$bytes` | octets, base64 | `{"$bytes": "AP8="}` |
| `$bytearray` | octets of a field of type `x` | `{"$bytearray": "AP8="}` |
| `$decimal` | decimal number | `{"$decimal": "1.50"}` |
| `$datetime` | time stamp, ISO 8601 | `{"$datetime": "2024-02-29T12:00:00+00:00"}` |
| `$float` | `nan`, `inf` or `-inf` | `{"$float": "inf"}` |
| `$table` | a table that would be misread: pairs | `{"$table": [["$bytes", "mine"], [1, "x"]]}` |
| `$b` `$B` `$s` `$u` `$i` `$l` `$L` `$f` | a number of that type (`model.protocol.field_types`) | `{"$u": 7}` |

Any table whose keys are not all text, or of which one key begins with `$`, is written with `$table`. So
whatever a user puts into a header table comes back as it was.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from amqpspec.model.protocol.field_types import WIRE_NUMBERS, Float32, WireInteger

#: What every tag looks like in the text of a trace; a line without it needs no decoding.
TAG_MARK = b'"$'

#: Deeper nesting than this is refused: a broker that sends it is not allowed to exhaust the stack.
MAX_DEPTH = 200
TOO_DEEP = f"tables and lists are nested too deep: more than {MAX_DEPTH}"


class ValueNotRecordable(ValueError):
    """A value that has no written form, or a written form that is no value."""


#: Types whose values are their own form, in JSON too.
_PLAIN = frozenset({str, int, bool, type(None)})


def is_plain(table: Mapping[Any, Any]) -> bool:
    """Is the table its own written form? Most are."""
    for key, value in table.items():
        if type(value) not in _PLAIN or type(key) is not str or key.startswith("$"):
            return False
    return True


def encode_value(value: Any, depth: int = 0) -> Any:
    """`value` in the form that JSON can hold. Tuples become lists. Raises `ValueNotRecordable`."""
    if isinstance(value, WireInteger | Float32):
        number = int(value) if isinstance(value, WireInteger) else encode_value(float(value))
        return {f"${value.code}": number}
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > MAX_DEPTH:
        raise ValueNotRecordable(TOO_DEEP)
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode_value(item, depth + 1) for key, item in value.items()}
        pairs = value.items()
        return {"$table": [[encode_value(key, depth + 1), encode_value(item, depth + 1)] for key, item in pairs]}
    if isinstance(value, list | tuple):
        return [encode_value(item, depth + 1) for item in value]
    if isinstance(value, bytearray):
        return {"$bytearray": b64encode(value).decode("ascii")}
    if isinstance(value, bytes | memoryview):
        return {"$bytes": b64encode(value).decode("ascii")}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    raise ValueNotRecordable(f"a value of type {type(value).__name__} cannot be recorded")


def decode_value(value: Any, depth: int = 0) -> Any:
    """The inverse of `encode_value`. Raises `ValueNotRecordable` for a tag unknown or misused, or too deep nesting."""
    if not isinstance(value, list | dict):
        return value
    if depth > MAX_DEPTH:
        raise ValueNotRecordable(TOO_DEEP)
    if isinstance(value, list):
        return [decode_value(item, depth + 1) for item in value]
    if len(value) == 1:
        ((tag, written),) = value.items()
        if tag.startswith("$"):
            return _untag(tag, written, depth)
    for key in value:
        if key.startswith("$"):
            raise ValueNotRecordable(f"a tag such as {key!r} must be the only key of its object")
    return {key: decode_value(item, depth + 1) for key, item in value.items()}


def _untag(tag: str, written: Any, depth: int) -> Any:
    try:
        match tag:
            case "$bytes":
                return b64decode(written, validate=True)
            case "$bytearray":
                return bytearray(b64decode(written, validate=True))
            case "$decimal":
                return Decimal(written)
            case "$datetime":
                return datetime.fromisoformat(written)
            case "$float":
                return float(written)
            case "$table":
                return {decode_value(key, depth + 1): decode_value(item, depth + 1) for key, item in written}
            case _ if (kind := WIRE_NUMBERS.get(tag[1:])) is not None:
                return kind(decode_value(written, depth + 1))
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise ValueNotRecordable(f"the value of the tag {tag} is not one: {error}") from error
    raise ValueNotRecordable(f"unknown tag {tag!r}")
