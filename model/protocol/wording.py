"""How values and arguments are put into words: one line that a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Longest text of a value that is shown whole.
LONGEST_VALUE = 120


def value_text(value: Any) -> str:
    """A value as the command language writes it; long ones are cut in the middle of nothing, at the end."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        text = value if value and not set(value) & set(" \t\n\"'=") else repr(value)
    elif isinstance(value, Mapping):
        text = "{" + ", ".join(f"{key}: {value_text(item)}" for key, item in value.items()) + "}"
    else:
        text = str(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """`name=value` pairs; names with hyphens, as the AMQP text writes them. Zero values are left out."""
    return " ".join(
        f"{name.rstrip('_').replace('_', '-')}={value_text(value)}"
        for name, value in arguments.items()
        if value not in ("", False, None, {}) or name in ("redelivered", "message_count", "consumer_count")
    )
