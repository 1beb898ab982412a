"""Whom a queue with a single active consumer may serve while one consumer follows another as the active one."""

from __future__ import annotations

import pytest

from amqpspec.model.protocol.methods import Content
from tests.model.judging.test_acceptor import Conversation
from tests.model.timed_client import QUORUM, Timed

SINGLE = "x-single-active-consumer=true"


def test_an_active_consumer_that_holds_nothing_is_followed_though_deliveries_were_on_their_way() -> None:
    timed = Timed(f"{QUORUM} {SINGLE}").publish(0.2).count(0.3, 1)
    timed.send(0.4, "a.1 basic.consume q tag=c no-ack").send(0.41, "b.1 basic.consume q tag=d x-priority=10")
    timed.see(0.42, "basic.consume-ok", on="b", consumer_tag="d").see(0.42, "basic.consume-ok", consumer_tag="c")
    timed.deliver(0.43).rest()
    timed.publish(0.5, "m2").deliver(0.51, 1, "m2", tag="d", on="b").rest()
    assert timed.blamed == ""


def test_what_a_cancelled_consumer_was_handed_is_read_behind_what_its_successor_gets() -> None:
    timed = Timed(SINGLE).send(0.2, "b.1 basic.qos 1").see(0.21, "basic.qos-ok", on="b")
    timed.publish(0.3).publish(0.31, "m2").count(0.4, 2)
    timed.consume(0.5, on="b").deliver(0.52, on="b").rest().consume(0.6, tag="d").rest()
    timed.send(0.7, "b.1 basic.reject 1 requeue").send(0.71, "b.1 basic.cancel c")
    timed.deliver(0.72, 1, "m2", tag="d")
    again = {"consumer_tag": "c", "delivery_tag": 2, "redelivered": True, "exchange": "", "routing_key": "q"}
    timed.see(0.73, "basic.deliver", Content({}, b"m1"), on="b", **again)
    timed.see(0.74, "basic.cancel-ok", on="b", consumer_tag="c").rest()
    assert timed.blamed == ""


def with_two_messages() -> Conversation:
    talk = Conversation().send(f"a.1 queue.declare q {QUORUM} {SINGLE}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    return talk.send("a.1 basic.publish q body=m1").rest().send("a.1 basic.publish q body=m2").rest()


@pytest.mark.parametrize("channel", ["b.1", "a.2"])
@pytest.mark.parametrize(
    ("mode", "read", "blamed"),
    [
        ("no-ack", ["m1", "m2"], ""),
        ("no-ack", ["m2", "m1"], ""),
        ("no-ack", ["m2"], "CONSUME-001"),
        ("no-ack", ["m2", "m1 again"], "PUBLISH-015"),
        ("", ["m2", "m1"], "PUBLISH-015"),
    ],
)
def test_what_a_consumer_got_before_it_was_taken_over_from_may_be_read_late(
    channel: str, mode: str, read: list[str], blamed: str
) -> None:
    """One that acknowledges would have had to do that first."""
    talk = with_two_messages()
    talk.send(f"{channel} basic.qos 2").see(channel, "basic.qos-ok").rest()
    talk.send(f"a.1 basic.consume q tag=s {mode} x-priority=-1 &", f"{channel} basic.consume q tag=t")
    talk.see("a.1", "basic.consume-ok", consumer_tag="s").see(channel, "basic.consume-ok", consumer_tag="t")
    taken = {
        "m1": ("a.1", 1, "m1", "s"),
        "m2": (channel, 1, "m2", "t"),
        "m1 again": (channel, 2, "m1", "t"),
    }
    for each in read:
        where, tag, body, consumer = taken[each]
        talk.deliver(where, tag, body, consumer=consumer)
    talk.rest()
    assert [failure.requirement for failure in talk.acceptor.failures] == ([blamed] if blamed else [])


def test_what_is_to_be_read_late_is_owed_though_the_successor_has_no_room() -> None:
    talk = with_two_messages()
    talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=s no-ack x-priority=-1 &", "b.1 basic.consume q tag=t")
    talk.see("a.1", "basic.consume-ok", consumer_tag="s").see("b.1", "basic.consume-ok", consumer_tag="t")
    talk.deliver("b.1", 1, "m2", consumer="t")
    assert talk.acceptor.owes()
    assert talk.fork().deliver("a.1", 1, "m1", consumer="s").rest().acceptor.failures == []
    assert talk.rest().failure.requirement == "CONSUME-001"
