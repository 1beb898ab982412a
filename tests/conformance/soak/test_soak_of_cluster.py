"""A short soak of a real cluster: its nodes are one broker, and its clients come to each of them."""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.session.nodes import node_of
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.soak.soak import soak
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.targets.brokers.cluster_broker import ClusterBroker


def test_a_cluster_is_one_broker(cluster_4_3: ClusterBroker, tmp_path: Path) -> None:
    description = TargetDescription("cluster:rabbitmq:4.3", "RabbitMQ", "4.3", "rabbitmq-4.3")
    target = TargetUnderTest(cluster_4_3.address, description, faults=cluster_4_3.faults())
    faults = (Kind.CLIENT, Kind.TRANSFER_LEADER)
    result = soak(target, SoakOptions(1, 5.0, faults, tmp_path, rate=20.0, judges_meanwhile=False))
    assert (result.lost, result.not_known, result.problems, result.judgement.unknown_queues) == ("", 0, (), {})
    served = {node_of(row["connection"]) for row in read_trace(tmp_path) if row.get("method") == "connection.open-ok"}
    assert served == {1, 2, 3}
    assert all(each.confirmed and each.delivered for each in result.judgement.tally.of_types.values())
