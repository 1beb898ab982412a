"""Whom a queue with a single active consumer may serve while one consumer follows another as the active one."""

from __future__ import annotations

from amqpspec.model.protocol.methods import Content
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
