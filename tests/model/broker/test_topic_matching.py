"""Topic bindings: the words of a key, and which keys fit a pattern."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpspec.model.broker.topic_matching import topic_matches, words


def by_definition(pattern: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """The definition, word for word: exponential, and obviously right."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return by_definition(pattern[1:], key) or (bool(key) and by_definition(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and by_definition(pattern[1:], key[1:])


@pytest.mark.parametrize(
    ("key", "expected"),
    [("", ()), (".", ("", "")), ("a", ("a",)), ("a.b", ("a", "b")), ("a..b", ("a", "", "b")), (".a.", ("", "a", ""))],
)
def test_words(key: str, expected: tuple[str, ...]) -> None:
    assert words(key) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", ("",), (".", "a")),
        ("*", ("a", "*", "#"), ("", ".", "a.b")),
        ("#", ("", ".", "a", "a.b.c"), ()),
        ("*.*", (".", "a.b", "a."), ("", "a", "a.b.c")),
        ("*.#", ("a", "a.b", ".", "a.b.c"), ("",)),
        ("a.*.c", ("a.b.c", "a..c"), ("a.c", "a.b.b.c", "A.b.c")),
        ("a.#.c", ("a.c", "a.b.c", "a..c", "a.b.b.c"), ("a", "c", "a.b")),
        ("#.b.#", ("b", "a.b", "b.c", "a.b.c", "b.b"), ("", "a.c", "ab")),
        ("a*.#c", ("a*.#c",), ("ab.bc", "a.c")),
        ("#.a.*", ("a.a", "a.a.a", "b.a.c", "a.a.b"), ("a", "a.b.c")),
    ],
)
def test_patterns(pattern: str, matching: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert [key for key in (*matching, *others) if topic_matches(pattern, key)] == list(matching)


some_words = st.lists(st.sampled_from(("", "a", "b")), max_size=7).map(".".join)
patterns = st.lists(st.sampled_from(("", "a", "b", "*", "#", "#")), max_size=6).map(".".join)


@given(patterns, some_words)
def test_as_defined(pattern: str, key: str) -> None:
    assert topic_matches(pattern, key) == by_definition(words(pattern), words(key))


def test_many_wildcards_and_words_take_no_time() -> None:
    """A matcher that tries every way would not end: a key of 127 words against 40 times `#`."""
    begin = time.process_time()
    assert not topic_matches(".".join(["#", "a"] * 40 + ["b"]), ".".join(["a"] * 127))
    assert time.process_time() - begin < 5
