"""How frames and values are put into words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpspec.model.protocol.methods import Content, Method
from amqpspec.model.protocol.wording import LONGEST_VALUE, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (7, "7"),
        ("m1", "m1"),
        ("", "''"),
        ("a b", "'a b'"),
        ("a=b", "'a=b'"),
        ("it's", '"it\'s"'),
        (b"m1", "m1"),
        (b"\xff\x00", "\\xff\x00"),
        ({"a": 1, "b": "x y"}, "{a: 1, b: 'x y'}"),
        ([1, 2], "[1, 2]"),
        (None, "None"),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert value_text(value) == text


@given(st.one_of(st.text(), st.binary(), st.dictionaries(st.text(), st.text())))
def test_long_values_are_cut(value: Any) -> None:
    for long in (value, value * 50 if isinstance(value, str | bytes) else {"k": str(value) * 50}):
        text = value_text(long)
        assert len(text) <= LONGEST_VALUE
        assert len(text) < LONGEST_VALUE or text == value_text(long)


def test_a_cut_value_says_so() -> None:
    assert value_text("x" * 500) == "x" * (LONGEST_VALUE - 1) + "…"
    assert value_text("x" * LONGEST_VALUE) == "x" * LONGEST_VALUE


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (
            Method("a", 1, "basic.deliver", {"consumer_tag": "t", "delivery_tag": 1, "redelivered": False,
                                            "exchange": "", "routing_key": "q"}, False, Content({}, b"m1")),
            "a.1 < basic.deliver consumer-tag=t delivery-tag=1 redelivered=false routing-key=q body=m1",
        ),
        (
            Method("b", 2, "basic.publish", {"exchange": "x", "mandatory": True}, True,
                  Content({"delivery_mode": 2, "headers": {"n": 1}}, b"")),
            "b.2 > basic.publish exchange=x mandatory=true body='' delivery-mode=2 headers={n: 1}",
        ),
        (Method("a", 1, "queue.declare-ok", {"queue": "q", "message_count": 0, "consumer_count": 0}, False),
         "a.1 < queue.declare-ok queue=q message-count=0 consumer-count=0"),
        (Method("a", 0, "connection.close-ok", {}, False), "a.0 < connection.close-ok"),
        (Method("a", 1, "basic.ack", {"delivery_tag": 3, "multiple": False}, True), "a.1 > basic.ack delivery-tag=3"),
    ],
)  # fmt: skip
def test_frames(method: Method, text: str) -> None:
    assert str(method) == text
    assert str(method) == text
