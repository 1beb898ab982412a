"""Which connections of a sequence are answered, by what was done to the nodes."""

from __future__ import annotations

from amqpspec.conformance.session.nodes import Nodes


def test_of_a_single_broker() -> None:
    nodes = Nodes()
    assert nodes.answers("a") and nodes.any_answers
    nodes.paused.add(1)
    assert not nodes.answers("a") and not nodes.any_answers


def test_of_a_cluster() -> None:
    nodes = Nodes((1, 2, 3))
    nodes.cut.add(2)
    assert nodes.answers("a") and nodes.answers("c@3") and not nodes.answers("b@2")
    nodes.down.add(1)  # one of three is no majority
    assert not nodes.answers("c@3") and not nodes.any_answers
