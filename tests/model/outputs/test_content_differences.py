"""Of two tables a reader is shown what differs, whole, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.outputs.content_differences import table_differences

LONG = "x" * 1000


@pytest.mark.parametrize(
    ("expected", "observed", "said"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["b=2 in place of 3"]),
        ({"a": 1}, None, ["a=1, which is missing"]),
        (None, {"a": "1"}, ["no a, which is '1'"]),
        ({"a": {"b": True}}, {"a": {"b": None}}, ["a.b=true in place of null"]),
        (
            {"x-death": [{"count": 2, "queue": "q", "reason": "rejected"}]},
            {"x-death": [{"count": 1, "queue": "q", "reason": "rejected"}, {"count": 1}]},
            ["x-death[0].count=2 in place of 1", "no x-death[1], which is {'count': 1}"],
        ),
        ({"a": "1"}, {"a": 1}, ["a='1' in place of 1"]),
        ({"a": LONG}, {"a": LONG + "y"}, [f"a='{LONG}' in place of '{LONG}y'"]),
        ({"a": [1]}, {"a": "1"}, ["a=[1] in place of '1'"]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_each_entry_that_differs_has_a_line(expected: Any, observed: Any, said: list[str]) -> None:
    assert table_differences(expected, observed) == said
