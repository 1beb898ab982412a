"""Field values that keep their type on the wire (0-9-1 section 4.2.5.5, with RabbitMQ's errata).

Most types are told by Python's: bool `t`, str `S`, bytes `x`, float `d`, Decimal `D`, datetime `T`, None `V`, list
`A`, dict `F`, int `I`, or `l` where it needs more than 32 bits. The other numbers are the classes here. They equal
what they are worth, so whoever is not interested in the type need not know of them; `same_field` is.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self, TypeGuard


class WireInteger(int):
    """A whole number of another type than `I`, or than `l` where it is a large one."""

    code: ClassVar[str]
    #: its octets, for the module `struct`
    form: ClassVar[str]
    #: what rabbit_binary_parser calls the type
    term: ClassVar[str]


class Int8(WireInteger):
    code, form, term = "b", "b", "byte"


class UInt8(WireInteger):
    code, form, term = "B", "B", "unsignedbyte"


class Int16(WireInteger):
    code, form, term = "s", "h", "short"


class UInt16(WireInteger):
    code, form, term = "u", "H", "unsignedshort"


class UInt32(WireInteger):
    code, form, term = "i", "I", "unsignedint"


class Int64(WireInteger):
    """RabbitMQ's type for 64 bits."""

    code, form, term = "l", "q", "long"


class SpecifiedInt64(WireInteger):
    """The specification's; RabbitMQ reads it, and writes `l`."""

    code, form, term = "L", "q", "long"


class Float32(float):
    """Rounded to 32 bits; raises `ValueError` for what has no place in them."""

    code: ClassVar[str] = "f"
    form: ClassVar[str] = "f"
    term: ClassVar[str] = "float"

    def __new__(cls, value: float) -> Self:
        try:
            return super().__new__(cls, struct.unpack(">f", struct.pack(">f", value))[0])
        except OverflowError:
            raise ValueError(f"{value} is no float of 32 bits") from None


#: By their codes.
WIRE_NUMBERS: dict[str, type[WireInteger | Float32]] = {
    kind.code: kind for kind in (Int8, UInt8, Int16, UInt16, UInt32, Int64, SpecifiedInt64, Float32)
}


def is_whole_number(value: Any) -> TypeGuard[int]:
    """Is it of one of the integer types? A time stamp is not, though a late one is an `int` (`targets.codec`)."""
    return type(value) is int or isinstance(value, WireInteger)


def same_field(one: Any, other: Any) -> bool:
    """Are these the same value of the same type?"""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_field(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_field, one, other))
    if _type(one) != _type(other):
        return False
    if isinstance(one, float):
        same_sign = math.copysign(1.0, one) == math.copysign(1.0, other)
        return same_sign and bool(one == other or (math.isnan(one) and math.isnan(other)))
    if isinstance(one, Decimal):
        return bool(one.as_tuple() == other.as_tuple())
    equal: bool = one == other
    return equal


def values_within(value: Any) -> Iterator[Any]:
    """The value; of a table or a list those in it, at any depth."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        yield value
        return
    for each in value:
        yield from values_within(each)


def _type(value: Any) -> object:
    """What tells the type. What came as `L` may go on as `l`: RabbitMQ knows them for the same."""
    if isinstance(value, WireInteger):
        return "l" if value.code == "L" else value.code
    if type(value) is int:
        return "I" if -(2**31) <= value < 2**31 else "l"
    return bytes if isinstance(value, bytearray) else type(value)


@dataclass(frozen=True, slots=True)
class Retyped:
    """A field of another type than it should have. `path`: where it is in the header of that name."""

    name: str
    path: str
    value: Any


def retyped(expected: Mapping[str, Any] | None, observed: Mapping[str, Any] | None) -> Retyped | None:
    """The first header that is worth what it should be, and of another type; None if there is none."""
    for name, value in (expected or {}).items():
        told = (observed or {}).get(name)
        if told == value and not same_field(value, told):
            return Retyped(name, *_other(name, value, told))
    return None


def _other(path: str, value: Any, told: Any) -> tuple[str, Any]:
    """Path and value of the field whose type differs, in two that are worth the same and are of different types."""
    if isinstance(value, Mapping) and isinstance(told, Mapping):
        pairs = [(f"{path}.{key}", each, told[key]) for key, each in value.items()]
    elif isinstance(value, list | tuple) and isinstance(told, list | tuple):
        pairs = [(f"{path}[{place}]", *each) for place, each in enumerate(zip(value, told, strict=True))]
    else:
        pairs = []
    return next((_other(*pair) for pair in pairs if not same_field(*pair[1:])), (path, value))
