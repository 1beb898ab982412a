"""Nodes of a cluster that fail, as the judge sees it. a@1, b@2 and c@3 talk; the queue was declared at node 2."""

from __future__ import annotations

import copy
from typing import Any, Self

import pytest

from amqpspec.model.promises.verdict import Shape, Verdict
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import OPERATOR, Fault, SocketEvent
from tests.model.judging.test_acceptor import Conversation


class Cluster(Conversation):
    def fault(self, name: str, **arguments: Any) -> Self:
        self.acceptor.sent(Fault(OPERATOR, 0, name, arguments, sent=True))
        return self

    def closed(self, name: str) -> Self:
        self.acceptor.received(SocketEvent(name, 0, "socket.closed", {"reason": "reset"}, sent=False))
        return self

    def declared(self, kind: str = "quorum", **more: str) -> Self:
        options = "".join(f" {name}={value}" for name, value in more.items())
        self.send(f"b@2.1 queue.declare q durable x-queue-type={kind}{options}")
        return self.see("b@2.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()

    def consuming(self, channel: str, tag: str) -> Self:
        return self.send(f"{channel} basic.consume q tag={tag}").see(channel, "basic.consume-ok", consumer_tag=tag)

    def confirming(self, channel: str) -> Self:
        return self.send(f"{channel} confirm.select").see(channel, "confirm.select-ok").rest()

    def returned(self, flag: bool = True) -> Self:
        """m1 comes to a.1, after another consumer has held it."""
        return self.see(
            "a.1", "basic.deliver", "m1", properties={"headers": {"x-acquired-count": Int64(1)}},
            consumer_tag="u", delivery_tag=1, redelivered=flag, exchange="", routing_key="q",
        )  # fmt: skip

    def fork(self) -> Cluster:
        return copy.deepcopy(self)

    @property
    def is_right(self) -> bool:
        return self.acceptor.verdict is Verdict.PASS


def test_consumers_elsewhere_go_on_when_the_leader_goes() -> None:
    talk = Cluster().declared().consuming("c@3.1", "t").rest()
    talk.send("a.1 basic.publish q body=m1").deliver("c@3.1", 1, "m1").rest()
    talk.fault("broker.kill", node=2).closed("b@2")
    talk.send("a.1 basic.publish q body=m2")
    assert talk.acceptor.owes()
    cancelled = talk.fork().see("c@3.1", "basic.cancel", consumer_tag="t", nowait=True)
    assert cancelled.failure.shape is Shape.UNEXPECTED
    lost = talk.fork().rest()
    assert lost.failure.shape is Shape.MISSING
    talk.deliver("c@3.1", 2, "m2").rest()
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-001"] == 1


def test_what_clients_of_the_node_held_comes_before_their_end_is_seen_or_after_it() -> None:
    talk = Cluster().declared().consuming("c@3.1", "t").rest()
    talk.send("a.1 basic.publish q body=m1").deliver("c@3.1", 1, "m1").rest()
    talk.consuming("a.1", "u").rest().fault("broker.stop", node=3)
    before, after = talk.fork(), talk.fork()
    before.returned().closed("c@3").rest()
    after.closed("c@3").returned().rest()
    for each in (before, after):
        assert each.is_right
        assert each.acceptor.exercised["CLUSTER-007"] == 1
    assert talk.closed("c@3").rest().failure.shape is Shape.MISSING


def test_it_is_flagged_as_redelivered() -> None:
    talk = Cluster().declared().consuming("c@3.1", "t").rest()
    talk.send("a.1 basic.publish q body=m1").deliver("c@3.1", 1, "m1").rest()
    talk.consuming("a.1", "u").rest().fault("broker.kill", node=3).closed("c@3")
    assert talk.returned(False).failure.detail.endswith("redelivered")


def test_nothing_ends_at_nodes_that_are_up() -> None:
    talk = Cluster().declared().consuming("c@3.1", "t").rest().fault("broker.kill", node=2)
    assert talk.closed("c@3").failure.shape is Shape.UNEXPECTED


@pytest.fixture
def alone() -> Cluster:
    """Nodes 1 and 2 are down, and two publishes are under way at node 3."""
    talk = Cluster().declared().confirming("c@3.1")
    talk.send("c@3.1 basic.publish q body=m1").confirm("c@3.1", 1).rest()
    talk.fault("broker.kill", node=1).fault("broker.kill", node=2).closed("b@2")
    return talk.send("c@3.1 basic.publish q body=m2 &", "c@3.1 basic.publish q body=m3 &")


def test_nothing_is_confirmed_without_a_majority(alone: Cluster) -> None:
    assert not alone.acceptor.owes()
    assert alone.confirm("c@3.1", 2).failure.requirement == "CLUSTER-004"


def test_with_a_majority_each_is_confirmed_once(alone: Cluster) -> None:
    alone.fault("broker.restart", node=2)
    assert alone.acceptor.owes()
    assert alone.fork().rest().failure.requirement == "CONFIRM-003"
    alone.confirm("c@3.1", 3, multiple=True)
    assert alone.fork().confirm("c@3.1", 2).failure.requirement == "CONFIRM-005"
    alone.rest()
    assert alone.is_right
    assert alone.acceptor.exercised["CLUSTER-004"] == 1


def test_nothing_is_owed_where_a_node_is_paused_and_it_goes_on_afterwards() -> None:
    talk = Cluster().declared().confirming("a.1").fault("broker.pause", node=1)
    talk.send("a.1 basic.publish q body=m1", "a.1 basic.qos prefetch=1")
    assert not talk.acceptor.owes()
    assert talk.fork().closed("a").is_right  # up to 4.2 such a node may end its connections
    talk.fault("broker.resume", node=1)
    assert talk.acceptor.owes()
    talk.confirm("a.1", 1).see("a.1", "basic.qos-ok").rest()
    assert talk.is_right


def test_what_a_consumer_holds_that_is_cut_off_may_come_to_another_one() -> None:
    talk = Cluster().declared().consuming("c@3.1", "t").rest()
    talk.send("a.1 basic.publish q body=m1").deliver("c@3.1", 1, "m1").rest().consuming("a.1", "u").rest()
    assert talk.fork().returned().failure.shape is Shape.UNEXPECTED
    talk.fault("network.cut", node=3).returned().rest()
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-003"] == 1


def test_who_consumes_from_a_classic_queue_is_told_that_its_node_is_down() -> None:
    talk = Cluster().declared("classic").consuming("c@3.1", "t").rest().fault("broker.stop", node=2).closed("b@2")
    assert talk.fork().rest().failure.requirement == "CLUSTER-010"
    talk.see("c@3.1", "basic.cancel", consumer_tag="t", nowait=True).rest()
    talk.send("c@3.1 basic.get q")
    assert talk.fork().see("c@3.1", "basic.get-empty").failure.requirement == "CLUSTER-011"
    close = {"reply_code": 404, "reply_text": "NOT_FOUND - any", "class_id": 60, "method_id": 70}
    talk.see("c@3.1", "channel.close", **close).send("c@3.1 channel.close-ok").rest()
    assert talk.is_right


def test_who_consumes_from_a_classic_queue_whose_node_is_paused_may_be_told_that_it_is_down() -> None:
    talk = Cluster().declared("classic").consuming("c@3.1", "t").rest().fault("broker.pause", node=2)
    assert talk.fork().rest().is_right
    assert talk.see("c@3.1", "basic.cancel", consumer_tag="t", nowait=True).rest().is_right


@pytest.mark.parametrize("by", ["broker.stop", "broker.kill"])
def test_a_durable_classic_queue_comes_back_with_what_was_confirmed(by: str) -> None:
    talk = Cluster().declared("classic").confirming("a.1")
    talk.send("a.1 basic.publish q body=m1 delivery-mode=2").confirm("a.1", 1).rest()
    talk.fault(by, node=2).closed("b@2").fault("broker.restart", node=2).send("a.1 basic.get q")
    assert talk.fork().see("a.1", "basic.get-empty").failure.shape is Shape.UNEXPECTED
    talk.see(
        "a.1", "basic.get-ok", "m1", properties={"delivery_mode": 2},
        delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=0,
    ).rest()  # fmt: skip
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-012"] == 1


def test_a_moved_leader_changes_nothing() -> None:
    talk = Cluster().declared().consuming("c@3.1", "t").rest().fault("queue.transfer-leader", queue="q", node=1)
    talk.send("c@3.1 basic.publish q body=m1").deliver("c@3.1", 1, "m1").rest()
    assert talk.is_right
    assert {"CLUSTER-005", "CLUSTER-009"} <= talk.acceptor.exercised.keys()


def test_the_next_consumer_becomes_active_when_the_node_of_the_active_one_goes() -> None:
    talk = Cluster().declared(**{"x-single-active-consumer": "true"}).consuming("c@3.1", "t").consuming("a.1", "u")
    talk.rest().fault("broker.kill", node=3).closed("c@3")
    talk.send("a.1 basic.publish q body=m1").deliver("a.1", 1, "m1", consumer="u").rest()
    assert talk.is_right
    assert talk.acceptor.exercised["CLUSTER-006"] == 1


def test_a_queue_that_nobody_leads_may_tell_that_there_is_nothing_and_has_everything() -> None:
    talk = Cluster().declared().confirming("a.1")
    talk.send("a.1 basic.publish q body=m1").confirm("a.1", 1).rest().fault("network.cut", node=2)
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.get q")
    assert talk.is_right
    assert talk.fork().see("a.1", "basic.get-empty").failure.shape is Shape.UNEXPECTED
    assert talk.got("a.1", 1, "m1", 0).is_right
