"""A broker of one node: what changes nothing is not done, and everything is undone."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.single_node import BROKER_FAULTS, SingleNode
from amqpspec.targets.errors import OperatorMissing


class _Node:
    address = Address("h")

    def __init__(self) -> None:
        self.done: list[str] = []

    def stop(self) -> None:
        self.done.append("stop")

    def kill(self) -> None:
        self.done.append("kill")

    def pause(self) -> None:
        self.done.append("pause")

    def resume(self) -> None:
        self.done.append("resume")

    def start_again(self) -> None:
        self.done.append("start")


def _fault(name: str, **arguments: int) -> Fault:
    return Fault(OPERATOR, 0, name, dict(arguments), sent=True)


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        (["broker.stop", "broker.stop", "broker.kill"], ["stop"]),
        (["broker.restart"], ["stop", "start"]),
        (["broker.kill", "broker.restart"], ["kill", "start"]),
        (["broker.pause", "broker.pause", "broker.resume", "broker.resume"], ["pause", "resume"]),
        (["broker.pause", "broker.stop"], ["pause", "resume", "stop"]),
        (["broker.pause", "broker.kill", "broker.resume"], ["pause", "kill"]),
        (["broker.stop", "broker.pause"], ["stop"]),
    ],
)
def test_only_what_changes_something_is_done(asked: list[str], done: list[str]) -> None:
    node = _Node()
    faults = SingleNode(node, BROKER_FAULTS)
    for each in asked:
        faults.inject(_fault(each))
    assert node.done == done


@pytest.mark.parametrize(
    ("asked", "undone"),
    [([], []), (["broker.kill"], ["start"]), (["broker.pause"], ["resume"]), (["broker.restart"], [])],
)
def test_all_is_undone_once(asked: list[str], undone: list[str]) -> None:
    node = _Node()
    faults = SingleNode(node, BROKER_FAULTS)
    for each in asked:
        faults.inject(_fault(each))
    node.done.clear()
    faults.undo()
    faults.undo()
    assert node.done == undone


@pytest.mark.parametrize("fault", [_fault("broker.kill"), _fault("network.cut"), _fault("broker.stop", node=2)])
def test_what_is_not_offered_is_said(fault: Fault) -> None:
    node = _Node()
    with pytest.raises(OperatorMissing, match=fault.name):
        SingleNode(node, ["broker.stop"]).inject(fault)
    assert node.done == []
