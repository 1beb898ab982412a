"""A real cluster of three: nodes that go and come back, networks that part them from each other and from no client."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.brokers.cluster_broker import ClusterBroker
from amqpspec.targets.brokers.readiness import BrokerUnavailable, answers_amqp
from amqpspec.targets.brokers.resolve import is_target, operator_of


def do(cluster: ClusterBroker, name: str, **arguments: Any) -> None:
    cluster.faults().inject(Fault(OPERATOR, 0, name, arguments, sent=True))


def answering(cluster: ClusterBroker) -> list[int]:
    faults = cluster.faults()
    return [node for node in faults.nodes if answers_amqp(faults.address_of(node), timeout=5)]


def test_it_is_a_target() -> None:
    assert is_target("cluster:rabbitmq:4.3")
    assert not is_target("cluster:")


def test_outside_the_block_there_is_none() -> None:
    with pytest.raises(BrokerUnavailable, match="is not running"):
        _ = ClusterBroker("amqpspec/none").address
    with pytest.raises(BrokerUnavailable, match="no image amqpspec/none on this"), ClusterBroker("amqpspec/none"):
        pass


def test_each_node_serves_and_is_killed_by_itself(cluster_4_3: ClusterBroker) -> None:
    assert answering(cluster_4_3) == [1, 2, 3]
    do(cluster_4_3, "broker.kill", node=2)
    assert answering(cluster_4_3) == [1, 3]
    do(cluster_4_3, "broker.restart", node=2)
    assert answering(cluster_4_3) == [1, 2, 3]


def test_a_node_that_is_cut_off_can_be_reached_by_clients_and_operated(cluster_4_3: ClusterBroker) -> None:
    do(cluster_4_3, "network.cut", node=3)
    try:
        assert answering(cluster_4_3) == [1, 2, 3]
        assert operator_of(cluster_4_3) is not None
    finally:
        cluster_4_3.faults().undo()
    assert answering(cluster_4_3) == [1, 2, 3]
