"""Ends of consumers: told or not, in what order, and what crosses what (area CANCEL)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation

CLASSIC = " durable"
QUORUM = " durable x-queue-type=quorum"


def consuming(tags: Sequence[str] = ("t",), queue: str = "q", kind: str = CLASSIC) -> Conversation:
    """a.1 consumes from the queue; b.1 is another connection that has done something already."""
    talk = Conversation().send(f"a.1 queue.declare {queue}{kind}")
    talk.see("a.1", "queue.declare-ok", queue=queue, message_count=0, consumer_count=0).rest()
    talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok").rest()
    for tag in tags:
        talk.send(f"a.1 basic.consume {queue} tag={tag}").see("a.1", "basic.consume-ok", consumer_tag=tag).rest()
    return talk


def told(talk: Conversation, tag: str) -> Conversation:
    return talk.see("a.1", "basic.cancel", consumer_tag=tag, nowait=True)


def deleted(talk: Conversation) -> Conversation:
    return talk.see("b.1", "queue.delete-ok", message_count=0)


def answered(talk: Conversation, tag: str = "t") -> Conversation:
    return talk.see("a.1", "basic.cancel-ok", consumer_tag=tag)


def passes(talk: Conversation) -> bool:
    return talk.rest().acceptor.verdict is Verdict.PASS


# ------------------------------------------------------------------------------------------- several consumers


@pytest.mark.parametrize("order", [("t", "u", "v"), ("v", "u", "t"), ("u", "v", "t")])
def test_consumers_of_a_channel_are_told_in_any_order(order: tuple[str, ...]) -> None:
    talk = deleted(consuming(("v", "t", "u")).send("b.1 queue.delete q"))
    for tag in order:
        told(talk, tag)
    assert passes(talk)
    assert talk.acceptor.exercised["CANCEL-012"] == 2
    assert talk.acceptor.exercised["CANCEL-007"] == 3


def test_who_is_told_of_one_only_misses_the_others() -> None:
    talk = told(deleted(consuming(("t", "u")).send("b.1 queue.delete q")), "t").rest()
    assert talk.failure.requirement == "CANCEL-012"
    nobody = deleted(consuming(("t", "u")).send("b.1 queue.delete q")).rest()
    assert nobody.failure.requirement == "CANCEL-007"


def test_nobody_is_told_two_times_or_of_a_consumer_that_goes_on() -> None:
    talk = told(deleted(consuming().send("b.1 queue.delete q")), "t")
    assert told(talk.fork(), "t").failure.requirement == "CANCEL-007"
    others = consuming(("t",)).send("a.1 queue.declare r durable")
    others.see("a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0).rest()
    others.send("a.1 basic.consume r tag=u").see("a.1", "basic.consume-ok", consumer_tag="u").rest()
    assert told(deleted(others.send("b.1 queue.delete q")), "u").failure.requirement == "CANCEL-007"


def test_who_cancelled_a_consumer_is_not_told_of_it() -> None:
    talk = answered(consuming(("t", "u")).send("a.1 basic.cancel t")).rest().send("b.1 queue.delete q")
    assert told(deleted(talk.fork()), "t").failure.requirement == "CANCEL-002"
    assert passes(told(deleted(talk), "u"))


def test_a_notice_in_place_of_cancel_ok() -> None:
    assert told(consuming().send("a.1 basic.cancel t"), "t").failure.requirement == "CANCEL-002"


# ------------------------------------------------------------------------------------------------ crossing


def crossing(kind: str = CLASSIC, first: str = "delete") -> Conversation:
    lines = {"delete": "b.1 queue.delete q", "cancel": "a.1 basic.cancel t"}
    second = "cancel" if first == "delete" else "delete"
    return consuming(kind=kind).send(f"{lines[first]} &").send(lines[second])


@pytest.mark.parametrize("first", ["delete", "cancel"])
@pytest.mark.parametrize(("kind", "requirement"), [(CLASSIC, "CANCEL-005"), (QUORUM, "CANCEL-006")])
def test_a_cancel_that_crosses_the_deletion_is_answered_told_or_not(first: str, kind: str, requirement: str) -> None:
    for talk in (
        answered(deleted(crossing(kind, first))),
        deleted(answered(crossing(kind, first))),
        answered(told(deleted(crossing(kind, first)), "t")),
        deleted(answered(told(crossing(kind, first), "t"))),
    ):
        assert passes(talk), talk.acceptor.failures
        assert talk.acceptor.exercised[requirement] >= 1


@pytest.mark.parametrize("kind", [CLASSIC, QUORUM])
def test_nobody_is_told_behind_the_answer(kind: str) -> None:
    talk = told(answered(deleted(crossing(kind))), "t")
    assert talk.failure.requirement == "CANCEL-002"


def test_an_error_is_the_crossings_fault() -> None:
    talk = crossing().see("a.1", "channel.close", reply_code=404, reply_text="NOT_FOUND", class_id=60, method_id=30)
    assert talk.failure.requirement == "CANCEL-005"


def test_the_answer_must_come() -> None:
    assert told(deleted(crossing()), "t").rest().failure.requirement in ("CANCEL-005", "CANCEL-004")


def test_without_reply_the_crossing_is_told_or_not() -> None:
    talk = consuming().send("b.1 queue.delete q &").send("a.1 basic.cancel t nowait")
    assert passes(deleted(talk.fork()))
    assert passes(told(deleted(talk), "t"))


@pytest.mark.parametrize("is_told", [True, False])
def test_on_the_own_channel_delete_ok_comes_first_and_cancel_ok_last(is_told: bool) -> None:
    talk = consuming().send("a.1 queue.delete q &").send("a.1 basic.cancel t")
    early = talk.fork()
    talk.see("a.1", "queue.delete-ok", message_count=0)
    if is_told:
        told(talk, "t")
    assert passes(answered(talk))
    assert told(early, "t").failure.requirement == "CANCEL-011"


@pytest.mark.known_defects
def test_known_defects_of_quorum_queues_are_named() -> None:
    broken = deleted(crossing(QUORUM)).see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR")
    assert broken.failure.defect == "cancel-crossing-deletion-breaks"
    twice = answered(answered(deleted(crossing(QUORUM))))
    assert twice.failure.defect == "cancel-crossing-deletion-answered-twice"
    classic = answered(answered(deleted(crossing())))
    assert classic.failure.defect == ""


@pytest.mark.known_defects
@pytest.mark.parametrize("first", ["delete", "cancel"])
def test_and_so_they_are_where_the_client_is_not_told(first: str) -> None:
    lines = {"delete": "b.1 queue.delete q", "cancel": "a.1 basic.cancel t"}
    second = "cancel" if first == "delete" else "delete"
    talk = consuming(kind=QUORUM)
    talk.acceptor.broker.connections["a"].capabilities = {}
    talk.send(f"{lines[first]} &").send(lines[second])
    assert passes(answered(deleted(talk.fork())))
    twice = answered(deleted(answered(talk.fork())))
    assert twice.failure.defect == "cancel-crossing-deletion-answered-twice"
    well_behind = deleted(consuming(kind=QUORUM).send("b.1 queue.delete q"))
    told(well_behind, "t").rest().send("a.1 basic.cancel t")
    assert answered(answered(well_behind)).failure.defect == ""


@pytest.mark.parametrize("kind", [CLASSIC, QUORUM])
def test_a_channel_that_closes_over_an_error_need_not_say_what_its_queues_answer(kind: str) -> None:
    talk = consuming(kind=kind).send("a.1 basic.consume q tag=u &").send("a.1 basic.get missing")
    text = "NOT_FOUND - no queue 'missing' in vhost '/'"
    close: dict[str, Any] = {"reply_code": 404, "reply_text": text, "class_id": 60, "method_id": 70}
    started: dict[str, Any] = {"consumer_tag": "u"}
    assert passes(talk.fork().see("a.1", "channel.close", **close))
    assert passes(talk.fork().see("a.1", "basic.consume-ok", **started).see("a.1", "channel.close", **close))
    too_late = talk.see("a.1", "channel.close", **close).see("a.1", "basic.consume-ok", **started)
    assert too_late.failure.requirement == "CHAN-005"


@pytest.mark.parametrize("kind", [CLASSIC, QUORUM])
def test_a_channel_that_its_client_closes_need_not_say_what_its_queues_answer(kind: str) -> None:
    talk = consuming(kind=kind).send("a.1 basic.cancel t &").send("a.1 channel.close")
    assert passes(talk.fork().see("a.1", "channel.close-ok"))
    assert passes(answered(talk.fork()).see("a.1", "channel.close-ok"))
    assert talk.rest().failure.requirement in ("CANCEL-001", "CHAN-003")


# --------------------------------------------------------------------------------------- messages under way


def test_messages_may_come_until_the_client_is_told() -> None:
    talk = consuming().send("b.1 basic.publish q body=m1 &").send("b.1 basic.publish q body=m2 &")
    talk = deleted(talk.send("b.1 queue.delete q"))
    delivery = {"consumer_tag": "t", "delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q"}
    late = talk.fork().see("a.1", "basic.deliver", body="m1", **delivery)
    assert passes(told(late, "t"))
    assert passes(told(talk.fork(), "t"))
    too_late = told(talk, "t").see("a.1", "basic.deliver", body="m1", **delivery)
    assert too_late.failure.requirement == "CANCEL-007"


def test_without_reply_messages_may_come_until_everything_has() -> None:
    talk = consuming().send("b.1 basic.publish q body=m1 &").send("a.1 basic.cancel t nowait &").send("a.1 basic.qos 1")
    talk.see("a.1", "basic.qos-ok")
    delivery = {"consumer_tag": "t", "delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q"}
    assert passes(talk.fork().see("a.1", "basic.deliver", body="m1", **delivery))
    too_late = talk.rest().see("a.1", "basic.deliver", body="m1", **delivery)
    assert too_late.failure.requirement == "CANCEL-001"


@pytest.mark.parametrize(("count", "is_right"), [(2, True), (1, True), (0, False)])
def test_without_reply_what_is_on_its_way_is_counted_no_longer(count: int, is_right: bool) -> None:
    """It may be with the channel when the queue is asked, as far as the consumer had room."""
    talk = limited_and_full().send("a.1 basic.ack 1 &").send("a.1 basic.cancel t nowait &").send("a.1 basic.qos 1")
    talk.see("a.1", "basic.qos-ok").send("b.1 queue.declare q passive")
    delivery = {"consumer_tag": "t", "delivery_tag": 2, "redelivered": False, "exchange": "", "routing_key": "q"}
    if count < 2:
        talk.see("a.1", "basic.deliver", body="m2", **delivery)
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=count, consumer_count=0).rest()
    wrong = [] if is_right else ["queue.declare-ok message-count"]
    assert [failure.detail for failure in talk.acceptor.failures] == wrong


def test_without_reply_what_did_not_come_is_counted_again() -> None:
    talk = limited_and_full().send("a.1 basic.ack 1 &").send("a.1 basic.cancel t nowait &").send("a.1 basic.qos 1")
    talk.see("a.1", "basic.qos-ok")
    for _ in range(2):
        assert talk.acceptor.failures == []
        talk.send("b.1 queue.declare q passive")
        talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0).rest()
    assert talk.failure.detail == "queue.declare-ok message-count"


def limited_and_full() -> Conversation:
    """The consumer has a limit of one, and holds the first of three messages."""
    talk = Conversation().send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("b.1 basic.publish q body=m2", "b.1 basic.publish q body=m3", "b.1 queue.declare q passive")
    return talk.see("b.1", "queue.declare-ok", queue="q", message_count=2, consumer_count=1).rest()


# ------------------------------------------------------------------------------------------- the client's cancel-ok


@pytest.mark.known_defects
def test_a_clients_cancel_ok_for_no_consumer() -> None:
    talk = consuming().send("a.1 basic.cancel-ok zz")
    assert passes(talk.fork())
    broken = talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR")
    assert (broken.failure.requirement, broken.failure.defect) == ("CANCEL-009", "cancel-ok-for-no-consumer-breaks")
