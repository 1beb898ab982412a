"""A broker that goes down and comes back, as the judge sees it: a doubt for each message, and no fork of the state."""

from __future__ import annotations

import copy
from typing import Self

import pytest

from amqpspec.model.promises.verdict import Shape, Verdict
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import OPERATOR, Fault, SocketEvent
from tests.model.judging.test_acceptor import Conversation


class Restarted(Conversation):
    """a.1 and b.1 talk before the restart, c.1 after it."""

    def fault(self, name: str) -> Self:
        self.acceptor.overlapping = False
        self.acceptor.sent(Fault(OPERATOR, 0, name, {}, sent=True))
        return self

    def closed(self, *names: str) -> Self:
        for name in names:
            self.acceptor.received(SocketEvent(name, 0, "socket.closed", {"reason": "reset"}, sent=False))
        return self

    def restart(self, by: str = "broker.kill", *ends: str) -> Self:
        return self.fault(by).closed(*ends).fault("broker.restart")

    def declared(self, kind: str = "classic", **more: str) -> Self:
        options = "".join(f" {name}={value}" for name, value in more.items())
        self.send(f"a.1 queue.declare q durable x-queue-type={kind}{options}")
        return self.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()

    def confirmed(self, *bodies: str) -> Self:
        self.send("b.1 confirm.select").see("b.1", "confirm.select-ok")
        for number, body in enumerate(bodies, 1):
            self.send(f"b.1 basic.publish q body={body} delivery-mode=2").confirm("b.1", number)
        return self.rest()

    def counted(self, number: int) -> Self:
        self.send("c.1 queue.declare q passive")
        return self.see("c.1", "queue.declare-ok", queue="q", message_count=number, consumer_count=0)

    def get(self, tag: int, body: str, left: int, redelivered: bool = False) -> Self:
        self.send("c.1 basic.get q")
        return self.see(
            "c.1", "basic.get-ok", body, properties={"delivery_mode": 2},
            delivery_tag=tag, redelivered=redelivered, exchange="", routing_key="q", message_count=left,
        )  # fmt: skip

    def deliver_persistent(self, channel: str, redelivered: bool) -> Self:
        return self.see(
            channel, "basic.deliver", "m1", properties={"delivery_mode": 2},
            consumer_tag="t", delivery_tag=1, redelivered=redelivered, exchange="", routing_key="q",
        )  # fmt: skip

    def nothing(self) -> Self:
        return self.send("c.1 basic.get q").see("c.1", "basic.get-empty")

    def fork(self) -> Restarted:
        return copy.deepcopy(self)

    @property
    def is_right(self) -> bool:
        return self.acceptor.verdict is Verdict.PASS

    @property
    def blamed(self) -> str:
        return self.failure.requirement


def outstanding(number: int, kind: str = "classic") -> Restarted:
    """m0 was confirmed, and `number` more were sent when the broker was killed, of which nothing was seen."""
    talk = Restarted().declared(kind).confirmed("m0")
    return talk.send(*(f"b.1 basic.publish q body=m{each} delivery-mode=2 &" for each in range(1, number + 1)))


def test_what_was_confirmed_must_be_there_after_a_kill() -> None:
    talk = Restarted().declared().confirmed("m1").restart()
    assert talk.fork().get(1, "m1", 0).is_right
    lost = talk.nothing().failure
    assert (lost.requirement, lost.shape) == ("DURABLE-004", Shape.UNEXPECTED)


def test_what_was_not_confirmed_may_be_there_or_not() -> None:
    talk = outstanding(1).restart()
    assert talk.fork().counted(1).get(1, "m0", 0).nothing().is_right
    assert talk.fork().counted(2).get(1, "m0", 1).get(2, "m1", 0).is_right
    assert talk.fork().counted(0).blamed == "DURABLE-001"
    assert talk.fork().counted(3).failure.shape is Shape.WRONG_ARGUMENT


def test_a_number_settles_the_doubt() -> None:
    absent = outstanding(2).restart().counted(1)
    assert not any(message.may_be_absent for message in absent.acceptor.broker.queues["q"].messages)
    assert absent.fork().get(1, "m0", 0).send("c.1 basic.get q").see(
        "c.1", "basic.get-ok", "m1", properties={"delivery_mode": 2},
        delivery_tag=2, redelivered=True, exchange="", routing_key="q", message_count=0,
    ).acceptor.failures  # fmt: skip
    present = outstanding(2).restart().counted(3).get(1, "m0", 2).get(2, "m1", 1)
    assert present.is_right and present.nothing().acceptor.failures


def test_a_number_in_between_leaves_it_open() -> None:
    talk = outstanding(2).restart().counted(2)
    assert talk.fork().get(1, "m0", 1).get(2, "m1", 0).is_right
    assert talk.fork().get(1, "m0", 1).get(2, "m2", 0).is_right


def test_what_is_passed_over_is_gone() -> None:
    talk = outstanding(2).restart().get(1, "m0", 1).get(2, "m2", 0)
    assert talk.is_right
    assert not talk.acceptor.broker.queues["q"].messages


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_doubts_make_no_explanations(kind: str) -> None:
    talk = outstanding(200, kind).restart()
    assert talk.explanations == 1
    assert talk.acceptor.broker.queues["q"].messages[200].may_be_absent


def test_a_consumer_is_owed_only_what_is_certain() -> None:
    talk = outstanding(1).restart()
    talk.send("c.1 basic.consume q tag=t").see("c.1", "basic.consume-ok", consumer_tag="t")
    assert talk.fork().rest().blamed == "DURABLE-004"
    talk.see(
        "c.1", "basic.deliver", "m0", properties={"delivery_mode": 2},
        consumer_tag="t", delivery_tag=1, redelivered=True, exchange="", routing_key="q",
    )  # fmt: skip
    assert talk.fork().rest().is_right
    later = talk.rest().see(
        "c.1", "basic.deliver", "m1", properties={"delivery_mode": 2},
        consumer_tag="t", delivery_tag=2, redelivered=True, exchange="", routing_key="q",
    )  # fmt: skip
    assert later.is_right


def test_an_acknowledgement_under_way_is_one_doubt() -> None:
    talk = Restarted().declared("quorum").confirmed("m1")
    talk.send("a.1 basic.get q").see(
        "a.1", "basic.get-ok", "m1", properties={"delivery_mode": 2},
        delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=0,
    ).rest()  # fmt: skip
    talk.send("a.1 basic.ack 1 &").restart()
    assert talk.explanations == 1
    assert talk.fork().nothing().is_right
    counts = {"x-delivery-count": Int64(1), "x-acquired-count": Int64(1)}
    talk.send("c.1 basic.get q").see(
        "c.1", "basic.get-ok", "m1", properties={"headers": counts, "delivery_mode": 2},
        delivery_tag=1, redelivered=True, exchange="", routing_key="q", message_count=0,
    )  # fmt: skip
    assert talk.is_right


def test_what_a_classic_queue_has_settled_may_come_again_after_a_kill_and_is_flagged() -> None:
    def settled(by: str) -> Restarted:
        talk = Restarted().declared().confirmed("m1", "m2")
        talk.send("a.1 basic.get q").see(
            "a.1", "basic.get-ok", "m1", properties={"delivery_mode": 2},
            delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=1,
        ).rest().send("a.1 basic.ack 1").rest()  # fmt: skip
        return talk.restart(by)

    assert settled("broker.kill").get(1, "m1", 1, redelivered=True).get(2, "m2", 0, redelivered=True).is_right
    assert settled("broker.kill").get(1, "m2", 0).nothing().is_right
    assert settled("broker.kill").get(1, "m1", 1).blamed == "DURABLE-012"
    assert settled("broker.stop").get(1, "m1", 1, redelivered=True).blamed == "DURABLE-012"


def test_while_it_goes_down_nothing_is_owed_and_all_that_was_may_come() -> None:
    talk = outstanding(1).fault("broker.kill")
    assert not talk.acceptor.owes()
    talk.fork().rest().acceptor.overdue()
    assert talk.fork().closed("a", "b").is_right
    seen = talk.confirm("b.1", 2).closed("b", "a").fault("broker.restart")
    assert seen.is_right and seen.nothing().blamed == "DURABLE-004"


def test_a_stop_says_320_or_nothing_and_a_kill_nothing() -> None:
    def forced(by: str) -> Restarted:
        return Restarted().declared().fault(by).see("a", "connection.close", reply_code=320, reply_text="any")

    assert forced("broker.stop").closed("a").is_right
    assert forced("broker.stop").see("a", "connection.close", reply_code=320).acceptor.failures
    assert forced("broker.kill").acceptor.failures
    assert Restarted().declared().fault("broker.stop").closed("a").is_right


def test_what_else_was_under_way_has_happened_or_not() -> None:
    talk = Restarted().declared().confirmed("m1").send("a.1 queue.delete q &").restart()
    assert talk.explanations == 2
    assert talk.fork().counted(1).is_right
    gone = talk.send("c.1 queue.declare q passive").see(
        "c.1", "channel.close", reply_code=404, reply_text="NOT_FOUND - no queue 'q' in vhost '/'",
        class_id=50, method_id=10,
    )  # fmt: skip
    assert gone.is_right


def test_what_a_limit_drops_of_what_is_not_certain_is_undecided() -> None:
    talk = Restarted().declared(**{"x-max-length": "2"}).confirmed("m1")
    talk.send("b.1 basic.publish q body=m2 delivery-mode=2 &").restart()
    assert talk.acceptor.verdict is Verdict.INCONCLUSIVE and talk.counted(7).acceptor.failures == []


def test_a_number_does_not_tell_what_came_since_from_what_was_in_doubt() -> None:
    talk = outstanding(2).restart().get(1, "m0", 1).send("c.1 basic.publish q body=n1 delivery-mode=2")
    talk.counted(1).rest()
    assert talk.is_right
    assert talk.fork().get(2, "n1", 0).is_right
    assert talk.fork().get(2, "m2", 0).is_right


def test_what_one_client_held_may_be_handed_to_another_one_before_its_end_is_seen() -> None:
    talk = Restarted().declared().confirmed("m1")
    for name in ("a", "b"):
        talk.send(f"{name}.2 basic.qos 1").see(f"{name}.2", "basic.qos-ok")
        talk.send(f"{name}.2 basic.consume q tag=t").see(f"{name}.2", "basic.consume-ok", consumer_tag="t")
        if name == "a":
            talk.deliver_persistent("a.2", redelivered=False)
    talk.rest()
    assert talk.fork().deliver_persistent("b.2", redelivered=True).blamed == "ACK-001"
    talk.fault("broker.stop").deliver_persistent("b.2", redelivered=True).closed("b", "a").fault("broker.restart")
    assert talk.get(1, "m1", 0, redelivered=True).is_right
