"""Which nodes of a cluster take part, and whose clients are answered."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.nodes import has_majority, is_mute, node_of


@pytest.mark.parametrize(("connection", "node"), [("a", 1), ("a@2", 2), ("broker", 1), ("b@3", 3)])
def test_a_connection_names_its_node(connection: str, node: int) -> None:
    assert node_of(connection) == node


@pytest.mark.parametrize(
    ("failed", "mute"),
    [
        ((), set()),
        ((2,), {"b@2"}),
        ((1,), {"a"}),
        ((1, 2), {"a", "b@2", "c@3"}),  # one node is no majority
        ((1, 2, 3), {"a", "b@2", "c@3"}),
    ],
)
def test_who_need_not_be_answered(failed: tuple[int, ...], mute: set[str]) -> None:
    assert {name for name in ("a", "b@2", "c@3") if is_mute(failed, name)} == mute
    assert has_majority(failed) == (len(failed) < 2)
