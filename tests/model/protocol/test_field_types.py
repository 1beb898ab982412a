"""Values of fields and their types on the wire."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from amqpspec.model.protocol.field_types import (
    WIRE_NUMBERS,
    Float32,
    Int8,
    Int64,
    Retyped,
    SpecifiedInt64,
    UInt16,
    retyped,
    same_field,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (1, Int64(1), False),
        (2**40, Int64(2**40), True),
        (Int8(1), UInt16(1), False),
        (SpecifiedInt64(1), Int64(1), True),
        (SpecifiedInt64(1), 1, False),
        (0.5, Float32(0.5), False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (Decimal("1.50"), Decimal("1.5"), False),
        (b"\0", bytearray(b"\0"), True),
        (b"a", "a", False),
        ([1, {"k": Int8(2)}], [1, {"k": Int8(2)}], True),
        ([1, {"k": Int8(2)}], [1, {"k": 2}], False),
        ({"k": 1}, {"k": 1, "l": None}, False),
        (None, None, True),
    ],
)
def test_same_field(one: Any, other: Any, same: bool) -> None:
    assert same_field(one, other) is same
    if one.__class__ is not SpecifiedInt64:
        assert same_field(other, one) is same


def test_a_header_of_another_type_is_named() -> None:
    assert retyped({"a": 1, "b": True}, {"a": 1, "b": 1}) == Retyped("b", "b", True)
    assert retyped({"a": 1}, {"a": 2}) is None, "another value is another matter"
    assert retyped({"a": 1}, None) is retyped(None, {"a": 1}) is None


def test_where_in_a_header_the_other_type_is() -> None:
    count = Int64(1)
    assert retyped({"b": [2, {"k": "v", "n": count}]}, {"b": [2, {"k": "v", "n": 1}]}) == Retyped("b", "b[1].n", count)


def test_a_float_of_32_bits_is_rounded_and_has_its_bounds() -> None:
    assert Float32(0.1) == 0.10000000149011612
    with pytest.raises(ValueError, match="no float of 32 bits"):
        Float32(1e300)


def test_codes_are_unique() -> None:
    assert sorted(WIRE_NUMBERS) == sorted("bBsuilLf")
