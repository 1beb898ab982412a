"""How many octets properties take on the wire (0-9-1 sections 4.2.5 and 4.2.6.1, with RabbitMQ's types of fields)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from amqpspec.model.protocol.patterns import AnyMoment

#: Every content header has them, also without any property.
FLAGS = 2
_ONE_OCTET = ("delivery_mode", "priority")
_LENGTH = 4


def properties_size(properties: Mapping[str, Any]) -> int:
    """Octets of the flags and of the properties that are there."""
    return FLAGS + sum(_property(name, value) for name, value in properties.items() if value is not None)


def _property(name: str, value: Any) -> int:
    if name in _ONE_OCTET:
        return 1
    if name == "headers":
        return _table(value)
    return 8 if name == "timestamp" else _short_text(value)


def _short_text(text: str) -> int:
    return 1 + _octets(text)


def _octets(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogateescape"))


def _table(table: Mapping[str, Any]) -> int:
    return _LENGTH + sum(_short_text(name) + 1 + _field(value) for name, value in table.items())


def _field(value: Any) -> int:
    """What follows the octet that names the type."""
    match value:
        case bool():
            return 1
        case None:
            return 0
        case int():
            return 4 if -0x8000_0000 <= value <= 0x7FFF_FFFF else 8
        case float() | datetime() | AnyMoment():
            return 8
        case Decimal():
            return 5
        case str() | bytes():
            return _LENGTH + _octets(value)
        case Mapping():
            return _table(value)
        case _:
            return _LENGTH + sum(1 + _field(item) for item in value)
