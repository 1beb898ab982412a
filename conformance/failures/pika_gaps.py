"""Values of field tables that pika 1.x cannot send or receive as they are, and what reproducers add to it for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.model.protocol.field_types import Float32, WireInteger, values_within

_FLOATS = '''

def encode_float(pieces: Any, value: Any, others: Any = pika.data.encode_value) -> int:
    """pika cannot send floating-point numbers, and cuts those that it receives."""
    if not isinstance(value, float):
        return int(others(pieces, value))
    pieces.append(b"d" + struct.pack(">d", value))
    return 9


def decode_float(octets: bytes, at: int, others: Any = pika.data.decode_value) -> Any:
    double = octets[at : at + 1] == b"d"
    return (struct.unpack_from(">d", octets, at + 1)[0], at + 9) if double else others(octets, at)


pika.data.encode_value, pika.data.decode_value = encode_float, decode_float
'''

_DECIMALS = '''

def encode_decimal(pieces: Any, value: Any, others: Any = pika.data.encode_value) -> int:
    """pika leaves out the zeros at the end of decimal numbers."""
    if not isinstance(value, decimal.Decimal):
        return int(others(pieces, value))
    places = max(0, -value.as_tuple().exponent)
    pieces.append(b"D" + struct.pack(">Bi", places, int(value.scaleb(places))))
    return 6


pika.data.encode_value = encode_decimal
'''

_NUMBERS = '''

class Number(float):
    """A number of a type of field that pika does not choose: its code, the form of its octets, its worth."""

    def __new__(cls, code: str, form: str, value: Any) -> "Number":
        number = super().__new__(cls, value)
        number.octets = code.encode() + struct.pack(form, value)  # type: ignore[attr-defined]
        return number


def encode_number(pieces: Any, value: Any, others: Any = pika.data.encode_value) -> int:
    if not isinstance(value, Number):
        return int(others(pieces, value))
    pieces.append(value.octets)  # type: ignore[attr-defined]
    return len(value.octets)  # type: ignore[attr-defined]


pika.data.encode_value = encode_number
'''

#: Which values need something, the module that must be imported for them, and what is added to pika.
_GAPS: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (lambda value: isinstance(value, datetime), "datetime", ""),
    (lambda value: isinstance(value, Decimal), "decimal", _DECIMALS),
    (lambda value: isinstance(value, float) and not isinstance(value, Float32), "", _FLOATS),
    (lambda value: isinstance(value, WireInteger | Float32), "", _NUMBERS),
)


def imports_and_additions(commands: Iterable[Command]) -> tuple[str, str]:
    """For a program that sends those commands: lines of imports, and definitions to stand after the client part."""
    values = [value for command in commands for value in _values_of(command)]
    needed = [(module, text) for is_such, module, text in _GAPS if any(map(is_such, values))]
    return "".join(f"import {module}\n" for module, _ in needed if module), "".join(text for _, text in needed)


def _values_of(command: Command) -> Iterator[Any]:
    yield from values_within(command.arguments)
    if command.content is not None:
        yield from values_within(command.content.properties)
