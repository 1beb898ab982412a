"""Mirrored classic queues when a node fails, as the judge sees it: the queue is at node 2, and a@1 publishes."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.mirrors import UNTIL_GONE
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import OPERATOR, Fault, OperatorAction, event_of
from tests.model.judging.test_failing_nodes import Cluster

TOLD: dict[str, Any] = {"consumer_tag": "t", "nowait": True}


def mirrored(dialect: str = "rabbitmq-3", late: bool = False) -> Cluster:
    talk = Cluster(dialect)
    policy = {"policy": "p", "queue": "q", "ha_mode": "all"}
    action = OperatorAction(OPERATOR, 0, "operator.set-policy", policy, sent=True)
    if late:
        talk.declared("classic").acceptor.sent(action)
        return talk.rest()
    talk.acceptor.sent(action)
    return talk.declared("classic").confirming("a.1")


def asking(talk: Cluster, tag: str) -> Cluster:
    """A consumer that wants to be told of another leader."""
    talk.send(f"c@3.1 basic.consume q tag={tag} x-cancel-on-ha-failover=true")
    return talk.see("c@3.1", "basic.consume-ok", consumer_tag=tag).rest()


def published(talk: Cluster, *bodies: str) -> Cluster:
    for tag, body in enumerate(bodies, 1):
        talk.send(f"a.1 basic.publish q body={body}").confirm("a.1", tag).rest()
    return talk


def lost(talk: Cluster, by: str = "broker.kill", node: int = 2) -> Cluster:
    return talk.fault(by, node=node).closed("b@2") if node == 2 else talk.fault(by, node=node)


@pytest.mark.parametrize("by", ["broker.stop", "broker.kill"])
@pytest.mark.parametrize("redelivered", [False, True])
def test_what_was_confirmed_is_there_when_the_leader_is_lost(by: str, redelivered: bool) -> None:
    talk = lost(published(mirrored(), "m1"), by).send("a.1 basic.get q")
    assert talk.fork().see("a.1", "basic.get-empty").failure.requirement == "CLUSTER-013"
    talk.got("a.1", 1, "m1", 0, redelivered).rest()
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-013"]


def test_nothing_changes_when_a_mirror_is_lost() -> None:
    talk = lost(published(mirrored(), "m1"), node=3).send("a.1 basic.get q")
    assert talk.fork().see("a.1", "basic.get-empty").failure.requirement != "CLUSTER-013"
    assert talk.fork().got("a.1", 1, "m1", 0).rest().is_right
    assert talk.got("a.1", 1, "m1", 0, redelivered=True).failure.detail.endswith("redelivered")


def paused(at: float = 10.0) -> Cluster:
    """A mirror does nothing, and a message is published to it."""
    talk = mirrored()
    talk.acceptor.sent(Fault(OPERATOR, 0, "broker.pause", {"node": 3}, sent=True, time=at))
    return talk.send("a.1 basic.publish q body=m1")


def confirmed(talk: Cluster, at: float) -> Cluster:
    arguments = {"delivery_tag": 1, "multiple": False}
    talk.acceptor.received(event_of("a", 1, "basic.ack", arguments, sent=False, time=at))
    return talk


def test_a_confirm_waits_for_each_mirror() -> None:
    talk = paused()
    assert not talk.acceptor.owes()
    assert confirmed(talk.fork(), 10.0 + UNTIL_GONE / 2).failure.requirement == "CLUSTER-013"
    assert confirmed(talk.fork(), 10.0 + UNTIL_GONE).is_right  # the others may take it for gone
    assert talk.rest().is_right
    talk.acceptor.sent(Fault(OPERATOR, 0, "broker.resume", {"node": 3}, sent=True, time=11.0))
    assert talk.acceptor.owes()
    assert talk.fork().rest().failure.shape is Shape.MISSING
    assert confirmed(talk, 11.0).rest().is_right
    assert talk.acceptor.exercised["CLUSTER-013"] == 1


def test_a_consumer_goes_on() -> None:
    talk = lost(mirrored().consuming("c@3.1", "t").rest())
    assert talk.fork().see("c@3.1", "basic.cancel", **TOLD).failure.shape is Shape.UNEXPECTED
    talk.send("a.1 basic.publish q body=m1").confirm("a.1", 1)
    assert talk.fork().rest().failure.shape is Shape.MISSING
    talk.deliver("c@3.1", 1, "m1").rest()
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-014"] == 1


def test_one_that_asks_for_it_is_cancelled() -> None:
    talk = lost(asking(mirrored(), "t"))
    assert talk.fork().rest().failure.requirement == "CLUSTER-014"
    talk.see("c@3.1", "basic.cancel", **TOLD).rest()
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-014"] == 1


def test_what_clients_hold_may_come_again_beyond_their_limit() -> None:
    talk = mirrored().send("c@3.1 basic.qos prefetch=1").see("c@3.1", "basic.qos-ok").consuming("c@3.1", "t").rest()
    talk.send("a.1 basic.publish q body=m1").confirm("a.1", 1).deliver("c@3.1", 1, "m1").rest()
    lost(talk)
    assert talk.fork().rest().is_right
    talk.deliver("c@3.1", 2, "m1", redelivered=True).send("c@3.1 basic.ack 2 multiple").rest()
    assert talk.is_right


def test_nobody_knows_what_mirrors_have_of_a_policy_that_came_later() -> None:
    talk = lost(mirrored(late=True).consuming("c@3.1", "t").rest())
    assert talk.fork().rest().is_right
    assert talk.see("c@3.1", "basic.cancel", **TOLD).rest().is_right


def test_nobody_knows_who_leads_the_second_time() -> None:
    talk = lost(asking(mirrored(), "t")).see("c@3.1", "basic.cancel", **TOLD).rest()
    asking(talk.fault("broker.restart", node=2), "u").fault("broker.kill", node=1).closed("a")
    assert talk.fork().rest().is_right
    assert talk.see("c@3.1", "basic.cancel", consumer_tag="u", nowait=True).rest().is_right


def test_from_4_0_on_nothing_is_mirrored() -> None:
    talk = lost(mirrored("rabbitmq-4.0").consuming("c@3.1", "t").rest())
    assert talk.fork().rest().failure.requirement == "CLUSTER-010"
    assert talk.see("c@3.1", "basic.cancel", **TOLD).rest().is_right
