"""What is done to nodes, and in which order: nodes without containers."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.cluster_faults import ClusterFaults
from amqpspec.targets.errors import OperatorError, OperatorMissing


class Node:
    """Notes what is done to it. The others see it while it is up, and not cut off."""

    def __init__(self, number: int, cluster: list[Node]) -> None:
        self.number = number
        self.done: list[str] = []
        self.is_up, self.is_paused, self.is_cut, self.was_paused = True, False, False, False
        self.partitions = "[]"
        self.address = Address(host="127.0.0.1", port=5672 + number)
        self._cluster = cluster
        cluster.append(self)

    def start(self) -> None:
        self.done.append("start")
        self.is_up, self.partitions, self.was_paused = True, "[]", False

    def await_ready(self, timeout: float) -> None:
        self.done.append("ready")

    def stop(self, timeout: float) -> None:
        self.done.append("stop")
        self.is_up = False

    def kill(self) -> None:
        self.done.append("kill")
        self.is_up = False

    def pause(self) -> None:
        self.is_paused = self.was_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def cut(self) -> None:
        self.is_cut = True

    def heal(self) -> None:
        self.is_cut = False

    def evaluate(self, expressions: str) -> str:
        if "case catch rabbit_node_monitor:partitions()" in expressions:
            return self.partitions
        if "ra:transfer_leadership" in expressions:
            return "timeout"
        seen = [each for each in self._cluster if each is not self and each.is_up and not each.is_cut]
        return "[" + ",".join(f"rabbit@node{each.number}" for each in seen if not self.is_cut) + "]"


def cluster() -> tuple[list[Node], ClusterFaults]:
    nodes: list[Node] = []
    for number in (1, 2, 3):
        Node(number, nodes)
    return nodes, ClusterFaults(nodes, 0.2)  # type: ignore[arg-type]


def do(faults: ClusterFaults, name: str, **arguments: Any) -> None:
    faults.inject(Fault(OPERATOR, 0, name, arguments, sent=True))


def test_one_node_is_stopped_and_started_again() -> None:
    nodes, faults = cluster()
    do(faults, "broker.restart", node=2)
    assert nodes[1].done == ["stop", "start", "ready"]
    assert "stop" not in nodes[0].done + nodes[2].done
    assert faults.address_of(2) == nodes[1].address


def test_a_node_that_cannot_come_up_alone_is_not_waited_for() -> None:
    nodes, faults = cluster()
    do(faults, "broker.kill")
    do(faults, "broker.restart", node=1)
    do(faults, "broker.restart", node=2)
    assert [node.done for node in nodes[:2]] == [["kill", "start"], ["kill", "start"]]
    do(faults, "broker.restart", node=3)
    assert [node.done for node in nodes] == [["kill", "start", "ready"]] * 3


def test_everything_is_undone() -> None:
    nodes, faults = cluster()
    do(faults, "broker.kill", node=1)
    do(faults, "broker.pause", node=2)
    do(faults, "network.cut", node=3)
    faults.undo()
    assert all(node.is_up and not node.is_paused and not node.is_cut for node in nodes)


def test_a_node_that_went_on_without_the_others_is_started_again() -> None:
    nodes, faults = cluster()
    do(faults, "broker.pause", node=2)
    nodes[0].partitions = "[rabbit@node2]"
    do(faults, "broker.resume", node=2)
    faults.undo()
    assert nodes[1].done == ["ready", "stop", "start", "ready"]


def test_what_cannot_be_done_is_told() -> None:
    _, faults = cluster()
    with pytest.raises(OperatorMissing, match=r"cannot do network\.slow"):
        do(faults, "network.slow", node=1, milliseconds=5)
    with pytest.raises(OperatorMissing, match="no node 4: the cluster has 3"):
        do(faults, "broker.kill", node=4)
    with pytest.raises(OperatorError, match="node 2 does not lead the queue q: timeout"):
        do(faults, "queue.transfer-leader", queue="q", node=2)


def test_what_does_not_become_whole_is_told_in_time() -> None:
    nodes, faults = cluster()
    do(faults, "network.cut", node=3)
    nodes[2].evaluate = lambda expressions: "[]"  # type: ignore[method-assign]
    with pytest.raises(OperatorError, match=r"network.heal: it stays at \["):
        do(faults, "network.heal", node=3)
