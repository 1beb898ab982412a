"""JSON of a trace, by a fast library; what it refuses, and may be in a trace, by the one of Python.

That is halves of surrogate pairs, which a broker may send. Integers have 64 bits at most, as in AMQP: of longer ones
the fast library makes other numbers when it reads them, so none is written.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from amqpspec.conformance.traces.trace_values import TAG_MARK, ValueNotRecordable, decode_value, encode_value

_SLOWER = json.JSONDecoder()


def line_of(value: Any) -> bytes:
    """One line of JSON, with its end. Raises `ValueNotRecordable`."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        _refuse_long_integers(value)
        return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def parsed(line: bytes) -> Any:
    """The one value of a line. Raises `json.JSONDecodeError`, `UnicodeDecodeError` and `RecursionError`."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        text = line.decode("utf-8")
        value, end = _SLOWER.raw_decode(text)
        if text[end:].strip():
            raise json.JSONDecodeError("more than one value on a line", text, end) from None
        return value


def parsed_lines(block: bytes) -> list[Any] | None:
    """The values of lines, one on each; None: something is wrong with a line, or it is one for the slower library."""
    try:
        values: list[Any] = orjson.loads(b"[%b]" % block.removesuffix(b"\n").replace(b"\n", b","))
    except orjson.JSONDecodeError:
        return None
    return values if len(values) == block.count(b"\n") + (not block.endswith(b"\n")) else None


def encoded(value: Any) -> str:
    """The text of a value with tags. Raises `ValueNotRecordable`."""
    return line_of(encode_value(value))[:-1].decode("utf-8")


def decoded(text: str) -> Any:
    """The value of a text with tags. Raises `ValueError` and `RecursionError`."""
    line = text.encode("utf-8")
    value = parsed(line)
    return decode_value(value) if TAG_MARK in line else value


def _refuse_long_integers(value: Any) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _refuse_long_integers(each)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueNotRecordable("an integer of more than 64 bits cannot be recorded")
