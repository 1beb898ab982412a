"""Headers bindings: which headers fit which arguments."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpspec.model.broker.headers_matching import MATCH_KINDS, headers_match
from amqpspec.model.protocol.field_types import Float32, Int8


def matches(arguments: dict[str, Any], headers: dict[str, Any], numbers_by_value: bool = False) -> bool:
    return headers_match(arguments, headers, numbers_by_value=numbers_by_value)


BOTH = {"k": "v", "n": 1}


@pytest.mark.parametrize(
    ("kind", "headers", "expected"),
    [
        (None, {**BOTH, "more": 1}, True),
        (None, {"k": "v"}, False),
        ("all", BOTH, True),
        ("all", {**BOTH, "n": 2}, False),
        ("all", {}, False),
        ("any", {"k": "v"}, True),
        ("any", {"k": "w", "n": 1}, True),
        ("any", {"k": "w", "n": 2}, False),
        ("any", {"K": "v"}, False),
        ("any", {}, False),
    ],
)
def test_all_and_any(kind: str | None, headers: dict[str, Any], expected: bool) -> None:
    arguments: dict[str, Any] = BOTH if kind is None else {"x-match": kind, **BOTH}
    assert matches(arguments, headers) is expected


@pytest.mark.parametrize(
    ("kind", "without_x", "with_x"),
    [("all", True, True), ("any", True, True), ("all-with-x", False, True), ("any-with-x", True, True)],
)
def test_headers_that_begin_with_x_count_where_it_says_so(kind: str, without_x: bool, with_x: bool) -> None:
    arguments = {"x-match": kind, "k": "v", "x-k": "w"}
    assert matches(arguments, {"k": "v"}) is without_x
    assert matches(arguments, {"k": "v", "x-k": "w"}) is with_x
    assert matches(arguments, {"x-k": "w", "x-match": kind}) is (kind == "any-with-x")


def test_without_arguments_all_fits_everything_and_any_nothing() -> None:
    assert matches({}, {}) and matches({"x-match": "all", "x-k": "w"}, {"k": "v"})
    assert not matches({"x-match": "any", "x-k": "w"}, {"x-k": "w"})
    assert not matches({"x-match": "any-with-x"}, {"x-match": "any-with-x"})


def test_no_value_asks_for_presence() -> None:
    present: tuple[Any, ...] = ("v", None, 0, False, {}, [])
    for value in present:
        assert matches({"k": None}, {"k": value})
    assert not matches({"k": None}, {"K": 1})
    assert not matches({"k": ""}, {"k": None})


@pytest.mark.parametrize(
    ("wanted", "value"),
    [("1", 1), (1, True), (0, False), (1, 2), ("v", "V"), ([1], [2]), ([1], ["1"]), ([1], 1), ([1], [1, 2]),
     ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({"a": 1}, {"a": 1.0}), ({"a": 1}, {"a": True}), (b"a", "b"),
     ([b"a"], ["a"])],
)  # fmt: skip
def test_unequal_values(wanted: Any, value: Any) -> None:
    assert not matches({"k": wanted}, {"k": value}, True) and not matches({"k": wanted}, {"k": value}, False)
    assert not matches({"k": value}, {"k": wanted}, True) and not matches({"k": value}, {"k": wanted}, False)


@pytest.mark.parametrize(
    "value",
    ["", "v", "\udcff", 0, -5, 2**40, True, False, 1.5, b"\x00", [], [1, "two", [3]], {"a": {"b": 1}}, Decimal("1.5"),
     datetime(2020, 1, 1, tzinfo=UTC)],
)  # fmt: skip
def test_equal_values(value: Any) -> None:
    assert matches({"k": value}, {"k": value})


def test_wire_types_do_not_count_at_the_top_level() -> None:
    assert matches({"k": b"\xff"}, {"k": "\udcff"})
    assert matches({"k": datetime(1970, 1, 2, tzinfo=UTC)}, {"k": 86400})
    assert not matches({"k": [datetime(1970, 1, 2, tzinfo=UTC)]}, {"k": [86400]})
    assert matches({"k": Float32(1.5)}, {"k": 1.5}) and matches({"k": Int8(1)}, {"k": 1})
    assert not matches({"k": [Float32(1.5)]}, {"k": [1.5]})


def test_numbers_by_value_where_the_dialect_says_so() -> None:
    assert matches({"k": 1}, {"k": 1.0}, True) and not matches({"k": 1}, {"k": 1.0}, False)
    assert not matches({"k": 1}, {"k": 1.5}, True)
    assert not matches({"k": [1]}, {"k": [1.0]}, True)


names = st.sampled_from(("a", "b", "x-a", "x-b"))
values = st.sampled_from((None, 1, "1", True))
tables = st.dictionaries(names, values, max_size=4)


@given(st.sampled_from(MATCH_KINDS), tables, tables)
def test_as_defined(kind: str, wanted: dict[str, Any], headers: dict[str, Any]) -> None:
    """Counted name by name, without a word on types: the values here are of four different ones."""
    counting = {name for name in wanted if kind.endswith("-with-x") or not name.startswith("x-")}
    fitting = {
        name
        for name in counting & headers.keys()
        if wanted[name] is None or (type(wanted[name]), wanted[name]) == (type(headers[name]), headers[name])
    }
    expected = fitting == counting if kind.startswith("all") else bool(fitting)
    assert matches({"x-match": kind, **wanted}, headers) is expected
