"""Who of the nodes is asked for what the operator does."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.methods import OPERATOR, OperatorAction
from amqpspec.targets.brokers.cluster_operator import ClusterOperator
from amqpspec.targets.brokers.operator import Peer
from amqpspec.targets.errors import OperatorError


class Node:
    def __init__(self, number: int, *, is_up: bool = True, is_cut: bool = False) -> None:
        self.number, self.is_up, self.is_cut, self.is_paused = number, is_up, is_cut, False
        self.asked: list[str] = []

    def evaluate(self, expressions: str) -> str:
        self.asked.append(expressions)
        return "amqpspec_done"


def carried_out(nodes: list[Node], action: str, /, **arguments: object) -> list[int]:
    """The numbers of the nodes that were asked."""
    done = OperatorAction(OPERATOR, 0, action, arguments, sent=True)
    ClusterOperator(nodes).carry_out([done], lambda name: Peer(1, name))  # type: ignore[arg-type]
    return [node.number for node in nodes if node.asked]


def test_what_holds_for_all_is_done_once_and_settings_on_each_node() -> None:
    assert carried_out([Node(1), Node(2), Node(3)], "operator.add-user", user="u", password="p") == [1]
    assert carried_out([Node(1), Node(2), Node(3)], "operator.configure", consumer_timeout=1) == [1, 2, 3]


def test_a_connection_is_closed_at_its_node() -> None:
    assert carried_out([Node(1), Node(2)], "operator.close-connection", name="a@2", reason="r") == [2]
    assert carried_out([Node(1), Node(2)], "operator.close-connection", name="a", reason="r") == [1]


def test_nobody_asks_who_is_down_and_last_of_all_who_is_cut_off() -> None:
    assert carried_out([Node(1, is_up=False), Node(2, is_cut=True), Node(3)], "operator.set-alarm") == [3]
    with pytest.raises(OperatorError, match=r"operator\.set-alarm: the node is down"):
        carried_out([Node(1, is_up=False)], "operator.set-alarm")
