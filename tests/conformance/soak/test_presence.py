"""When the broker of a soak is lost."""

from __future__ import annotations

import pytest

from amqpspec.conformance.soak.presence import Presence
from amqpspec.model.protocol.methods import event_of
from amqpspec.targets.errors import TargetUnreachable

NODES = [1, 2, 3]


def start(presence: Presence, cluster: str, connection: str = "a") -> None:
    told = {"server_properties": {"product": "RabbitMQ", "cluster_name": cluster}}
    presence.hear(event_of(connection, 0, "connection.start", told, False, None))


def opened(presence: Presence, connection: str) -> None:
    presence.hear(event_of(connection, 0, "connection.open-ok", {}, False, None))


@pytest.mark.quick
def test_a_node_that_serves_nobody_for_long_is_lost() -> None:
    presence = Presence()
    for node in NODES:
        presence.tried(node, 0.0)
    opened(presence, "a@1")
    opened(presence, "b@3")
    presence.tried(2, 50.0)
    presence.look(NODES, 60.0, 60.0)
    with pytest.raises(TargetUnreachable, match="no connection to node 2 could be opened for 60 s"):
        presence.look(NODES, 61.0, 60.0)


@pytest.mark.quick
def test_what_answers_and_lets_nobody_in_serves_nobody() -> None:
    presence = Presence()
    presence.tried(1, 0.0)
    start(presence, "rabbit@here")
    with pytest.raises(TargetUnreachable, match="no connection could be opened"):
        presence.look([1], 61.0, 60.0)


@pytest.mark.quick
def test_a_node_that_is_down_on_purpose_has_its_time_when_it_is_back() -> None:
    presence = Presence()
    presence.tried(2, 0.0)
    presence.look([1, 3], 61.0, 60.0)
    presence.tried(2, 62.0)
    presence.look(NODES, 100.0, 60.0)


@pytest.mark.quick
def test_another_broker_at_its_address_is_not_taken_for_it() -> None:
    presence = Presence()
    start(presence, "rabbit@here", "a@1")
    start(presence, "rabbit@there", "a@2")  # so is the name of each node of a cluster that nobody has named
    start(presence, "rabbit@here", "b@1")
    with pytest.raises(TargetUnreachable, match="another one answers at its address"):
        start(presence, "rabbit@there", "c@1")
