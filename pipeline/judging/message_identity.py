"""How a message is known again in another recording: by its body, and by what a broker leaves as it is.

Its *form* is a digest of all that comes through a broker unchanged besides the body: exchange, routing key, properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import orjson

from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.traces.trace_values import encode_value

_SPECIFIED_INTEGER = re.compile(rb'\{"\$L":(-?\d+)\}')
_REPLY_ADDRESS = "amq.rabbitmq.reply-to"


def text_of(row: TraceRow) -> str:
    """The body of a content, or what stands for it."""
    if "body_sha256" in row:
        return f"{row['body_size']} octets, SHA-256 {row['body_sha256']}"
    text = row.get("body")
    return text if text is not None else row.get("body_base64", "")


def message_of(row: TraceRow) -> int:
    """A number for the body, equal for equal ones."""
    return _digest(text_of(row).encode("utf-8", "surrogatepass"))


def form_of(row: TraceRow) -> int:
    """A number for exchange, routing key and properties, equal for equal ones.

    Left out is what a broker may add or take away: headers that begin with "x-", BCC, and times of arrival.
    """
    arguments, properties = row["arguments"], row.get("properties", {})
    said: list[Any] = [arguments.get("exchange") or "", arguments.get("routing_key") or ""]
    kept = {name: value for name, value in properties.items() if name not in ("headers", "timestamp")}
    if headers := _own_headers(properties.get("headers") or {}):
        kept["headers"] = headers
    if str(kept.get("reply_to", "")).startswith(_REPLY_ADDRESS):
        kept["reply_to"] = _REPLY_ADDRESS  # the broker writes after it whose it is
    if str(kept.get("expiration", "")).startswith("+"):
        kept["expiration"] = kept["expiration"][1:]
    if kept:
        said.append(encode_value(kept))
    try:
        octets = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        octets = repr(said).encode("utf-8", "surrogatepass")
    return _digest(_SPECIFIED_INTEGER.sub(_as_rabbitmq_writes, octets) if b'"$L"' in octets else octets)


def _as_rabbitmq_writes(found: re.Match[bytes]) -> bytes:
    """It reads the specification's type `L`, and writes its own `l`."""
    value = int(found[1])
    return found[1] if not -(2**31) <= value < 2**31 else b'{"$l":%b}' % found[1]


def _own_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in headers.items()
        if name not in ("BCC", "timestamp_in_ms") and not str(name).startswith("x-")
    }


def _digest(octets: bytes) -> int:
    return int.from_bytes(blake2b(octets, digest_size=8).digest(), "big", signed=True)
