"""Patterns: what a broker may choose, and that the embedded broker's choice is one of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpspec.model.protocol.patterns import Anything, Between, Generated, Pattern, between, choose, matches

values = st.one_of(st.none(), st.booleans(), st.integers(-5, 20), st.text(max_size=4), st.binary(max_size=4))
patterns = st.one_of(
    st.builds(Anything, st.text(max_size=4)),
    st.builds(lambda low, width: Between(low, low + width), st.integers(0, 9), st.integers(0, 5)),
    st.builds(Generated, st.sampled_from(["amq.gen-", "amq.ctag-"]), st.integers(0, 10**9)),
)


@given(patterns)
def test_what_is_chosen_matches(pattern: Pattern) -> None:
    assert pattern.matches(choose(pattern))
    assert matches(pattern, choose(pattern))


@given(values)
def test_a_plain_value_is_its_own_pattern(value: Any) -> None:
    assert choose(value) == value
    assert matches(value, value)
    assert not matches(value, "something else")
    assert Anything().matches(value)


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        (Between(2, 4), [2, 3, 4], [1, 5, -3, "3", None, 3.5]),
        (Between(0, 0), [0], [1, -1]),
        (Generated("amq.gen-", 1), ["amq.gen-x", "amq.gen-JzTY20BRgKO-HjmUJj0wLg"], ["amq.gen-", "amq.ctag-x", "", 7]),
    ],
)
def test_what_matches(pattern: Pattern, right: list[Any], wrong: list[Any]) -> None:
    assert [value for value in right if not pattern.matches(value)] == []
    assert [value for value in wrong if pattern.matches(value)] == []


def test_between_of_one_number_is_the_number() -> None:
    assert between(3, 3) == 3
    assert between(3, 4) == Between(3, 4)
    assert str(between(3, 4)) == "3..4"
    assert str(Anything("x")) == "anything"
    assert str(Generated("amq.gen-", 1)) == "amq.gen-…"


def test_generated_names_differ() -> None:
    names = {Generated("amq.gen-", serial).choose() for serial in range(100)}
    assert len(names) == 100
    assert {len(name) for name in names} == {len("amq.gen-") + 22}, "as long as RabbitMQ's"


def test_a_name_that_is_taken_is_not_made_up_again() -> None:
    first = Generated("amq.ctag-", 1).choose()
    second = Generated("amq.ctag-", 1, (first,))
    assert not second.matches(first)
    assert second.matches(second.choose()) and second.choose() != first
