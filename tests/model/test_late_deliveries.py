"""Deliveries that were under way when their channel ended (area CHAN): they are seen until its end is."""

from __future__ import annotations

import pytest

from model.verdict import Verdict
from tests.model.test_acceptor import Conversation, declared


def closing(options: str = "") -> Conversation:
    """m1 is on its way to t, whose channel is closed; u, on another one, takes what is left."""
    talk = declared()
    talk.send(f"a.1 basic.consume q tag=t x-priority=1{options}").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.2 basic.consume q tag=u").see("a.2", "basic.consume-ok", consumer_tag="u").rest()
    return talk.send("b.1 basic.publish q body=m1 &").send("a.1 channel.close")


def passes(talk: Conversation) -> bool:
    return talk.rest().acceptor.verdict is Verdict.PASS


def test_the_delivery_may_be_overtaken_by_the_next_one_of_the_message() -> None:
    talk = closing().deliver("a.2", 1, "m1", redelivered=True, consumer="u").deliver("a.1", 1, "m1")
    assert passes(talk.see("a.1", "channel.close-ok"))


def test_it_may_come_in_its_order_or_not_at_all() -> None:
    in_order = closing().deliver("a.1", 1, "m1").deliver("a.2", 1, "m1", redelivered=True, consumer="u")
    assert passes(in_order.see("a.1", "channel.close-ok"))
    for redelivered in (False, True):
        unseen = closing().deliver("a.2", 1, "m1", redelivered=redelivered, consumer="u")
        assert passes(unseen.see("a.1", "channel.close-ok"))


def test_not_behind_the_end() -> None:
    talk = closing().deliver("a.2", 1, "m1", redelivered=True, consumer="u").see("a.1", "channel.close-ok")
    assert talk.deliver("a.1", 1, "m1").failure.requirement == "CHAN-016"


def test_not_of_what_went_to_another_one_first() -> None:
    talk = closing().deliver("a.2", 1, "m1", consumer="u").deliver("a.1", 1, "m1")
    assert talk.acceptor.failures


def test_not_twice_and_not_with_another_tag() -> None:
    talk = closing().deliver("a.2", 1, "m1", redelivered=True, consumer="u")
    assert talk.fork().deliver("a.1", 1, "m1").deliver("a.1", 2, "m1").acceptor.failures
    assert talk.deliver("a.1", 2, "m1").failure.requirement == "CONSUME-014"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_without_acknowledgement_it_is_nobody_elses(elsewhere: bool) -> None:
    """What the channel held is with u before the last message for t is seen."""
    talk = declared()
    talk.send("b.1 basic.publish q body=m0").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m0", 0).rest()
    talk.send("a.1 basic.consume q tag=t no-ack x-priority=1").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.2 basic.consume q tag=u").see("a.2", "basic.consume-ok", consumer_tag="u").rest()
    talk.send("b.1 basic.publish q body=m1 &").send("a.1 channel.close")
    talk.deliver("a.2", 1, "m0", redelivered=True, consumer="u")
    if elsewhere:
        talk.deliver("a.2", 2, "m1", redelivered=True, consumer="u")
    talk.deliver("a.1", 2, "m1")
    if elsewhere:
        assert talk.acceptor.failures
    else:
        assert passes(talk.see("a.1", "channel.close-ok"))


def failing_consume() -> Conversation:
    """A basic.consume is under way when the next method on its channel fails; u, on another one, takes what is left."""
    talk = declared()
    talk.send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.consume q tag=t &", "a.1 basic.ack 1")
    return talk.see("a.1", "basic.consume-ok", consumer_tag="t").see(
        "a.1", "channel.close",
        reply_code=406, reply_text="PRECONDITION_FAILED - unknown delivery tag 1", class_id=60, method_id=80,
    )  # fmt: skip


def test_behind_the_close_for_an_error_it_is_a_known_failure_and_judging_goes_on() -> None:
    talk = failing_consume().deliver("a.1", 1, "m1").send("a.1 channel.close-ok")
    assert (talk.failure.requirement, talk.failure.departure) == ("CHAN-005", "delivers-behind-channel-close")
    talk.rest().send("b.1 basic.get q").got("b.1", 1, "m1", 0, redelivered=True)
    assert len(talk.rest().acceptor.failures) == 1


def test_behind_the_close_nothing_else_comes() -> None:
    assert failing_consume().deliver("a.1", 1, "m2").failure.departure == ""
    assert failing_consume().deliver("a.1", 1, "m1", consumer="u").failure.departure == ""
    assert failing_consume().send("a.1 channel.close-ok").rest().deliver("a.1", 1, "m1").failure.departure == ""
