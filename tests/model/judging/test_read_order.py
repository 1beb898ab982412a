"""Frames of several connections, read in another order than they were sent in, while deliveries time out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.rules.extensions.queue_expiry import expire_punctually
from tests.model.judging.test_acceptor import Conversation
from tests.model.timed_client import QUORUM, Timed

TIME = "x-consumer-timeout=500"


def handed_round(waiting: float = 2.3) -> Timed:
    """The message goes from c to d, on the other connection, and from there to e, all while nobody reads."""
    timed = Timed(f"{QUORUM} x-single-active-consumer=true").hold(TIME)
    timed.consume(1.1, TIME, tag="d", on="b").rest().consume(1.2, TIME, tag="e").rest()
    return timed.wait(waiting).told(waiting + 0.01)


def test_what_others_were_handed_before_is_read_behind_it() -> None:
    timed = handed_round().deliver(2.32, 2, tag="e", acquired=2)
    assert timed.blamed == "", "who had it in between may not have been read of yet"
    timed.redeliver(2.33, 1, tag="d", on="b").told(2.34, tag="d", on="b")
    assert timed.rest().blamed == ""
    assert [entry.consumer.tag for entry in timed.acceptor.broker.channels["a", 1].unacknowledged.values()
            if entry.consumer] == ["e"]  # fmt: skip


def test_frames_of_one_connection_keep_their_order() -> None:
    timed = handed_round(2.4).deliver(2.42, 2, tag="e", acquired=2).told(2.43, tag="e")
    assert list(timed.acceptor.broker.channels["a", 1].timed_out) == [1]
    timed.redeliver(2.44, 1, tag="d", on="b").told(2.45, tag="d", on="b")
    assert timed.rest().blamed == ""
    assert list(timed.acceptor.broker.channels["a", 1].timed_out) == [1, 2]


def test_when_the_client_goes_on_or_all_is_at_rest_it_is_wrong() -> None:
    def passed_over() -> Timed:
        return handed_round().deliver(2.32, 2, tag="e", acquired=2)

    assert passed_over().rest().blamed == "TIMEOUT-029"
    assert passed_over().send(2.7, "b.1 basic.qos 1").blamed == "TIMEOUT-029"
    late = passed_over()
    late.acceptor.overdue()
    assert late.blamed == "TIMEOUT-029"


@pytest.mark.parametrize("comes", ["get-ok", "nothing"])
def test_what_expires_behind_a_message_that_is_got_may_be_read_before_that(comes: str) -> None:
    timed = Timed('x-dead-letter-exchange="" x-dead-letter-routing-key=s')
    timed.ask(0.2, "a.1 queue.declare s", "queue.declare-ok", queue="s", message_count=0, consumer_count=0)
    timed.send(0.3, "b.1 basic.consume s tag=t").see(0.31, "basic.consume-ok", on="b", consumer_tag="t").rest()
    timed.publish(0.5).send(0.6, "a.1 basic.publish q body=m2 expiration=0").count(0.7, 2)
    timed.send(0.8, "a.1 basic.get q")
    lawful = copy_broker(timed.acceptor.broker)
    got = next(permitted(lawful))
    observe(lawful, got)
    expire_punctually(lawful, 0.81)
    delivery = next(permitted(lawful))
    assert (got.name, delivery.name) == ("basic.get-ok", "basic.deliver")
    timed.acceptor.received(replace(delivery, time=0.82))
    assert timed.acceptor.failures == [], "the other connection has not been read yet"
    if comes == "get-ok":
        timed.acceptor.received(replace(got, time=0.83))
    else:
        timed.acceptor.overdue()
    assert (timed.blamed == "") == (comes == "get-ok")


def test_without_deadlines_it_is_wrong_at_once() -> None:
    timed = Timed(f"{QUORUM} x-single-active-consumer=true").publish(0.8).count(0.9, 1)
    timed.consume(1.0).deliver(1.02).rest()
    timed.consume(1.1, tag="d", on="b").rest().consume(1.2, tag="e").rest()
    timed.publish(1.3, "m2").deliver(1.31, 2, "m2", tag="e")
    assert timed.blamed


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_the_next_active_consumer_is_handed_may_be_read_before_what_the_former_was(kind: str) -> None:
    def crossing() -> Conversation:
        talk = Conversation().send(f"a.1 queue.declare q durable x-queue-type={kind} x-single-active-consumer=true")
        talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
        talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
        talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
        talk.send("b.1 basic.consume q tag=u").see("b.1", "basic.consume-ok", consumer_tag="u").rest()
        talk.send("a.2 basic.publish q body=m1 &", "a.2 basic.publish q body=m2 &", "a.1 basic.cancel t")
        return talk.deliver("b.1", 1, "m2", consumer="u")

    talk = crossing().deliver("a.1", 1, "m1").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    assert talk.acceptor.failures == []
    late = crossing().see("a.1", "basic.cancel-ok", consumer_tag="t").deliver("a.1", 1, "m1").rest()
    assert late.acceptor.failures, "behind cancel-ok nothing comes"
