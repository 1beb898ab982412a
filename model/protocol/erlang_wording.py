"""How RabbitMQ's reply texts print field values, and what they call their types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from amqpspec.model.protocol.field_types import Float32, WireInteger


def wire_type(value: Any) -> str:
    """What rabbit_binary_parser calls the type; whole numbers are sent as `I` where they fit, else as `l`."""
    if isinstance(value, WireInteger | Float32):
        return value.term
    if type(value) is int:
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    for kind, name in (
        (bool, "bool"), (str, "longstr"), (int, "timestamp"), (float, "double"), (bytes, "binary"),
        (Mapping, "table"), (datetime, "timestamp"), (Decimal, "decimal"),
    ):  # fmt: skip
        if isinstance(value, kind):
            return name
    return "void" if value is None else "array"


def printed(value: Any) -> str:
    """The value as rabbit_misc:val has it: text as it is, everything else as io:format prints a term with `~p`."""
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else term(value)


def atom(text: str) -> str:
    """As the broker prints one of its own words: in quotes where it is no plain one."""
    return text if re.fullmatch(r"[a-z][A-Za-z0-9_@]*", text) else f"'{text}'"


def term(value: Any) -> str:
    """The Erlang term that the broker holds for a field value."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        mantissa, exponent, power = repr(value).partition("e")
        # Erlang: 1.0e22 where Python has 1e+22
        return f"{mantissa}.0e{int(power)}" if exponent and "." not in mantissa else mantissa + exponent + power
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("latin-1")
        return f'<<"{text}">>' if text else "<<>>"
    if isinstance(value, Mapping):
        fields = (f'{{<<"{name}">>,{wire_type(item)},{term(item)}}}' for name, item in value.items())
        return f"[{','.join(fields)}]"
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return str(int(moment.timestamp()))
    if isinstance(value, list | tuple):
        return f"[{','.join(f'{{{wire_type(item)},{term(item)}}}' for item in value)}]"
    return str(value)
