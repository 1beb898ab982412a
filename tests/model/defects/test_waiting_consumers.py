"""Whom a quorum queue takes for its active consumer though it is gone, or is another one (known defects)."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.defects import waiting_consumers
from tests.model.broker.test_dispatch import QUORUM, SINGLE, consume, conversation, limit
from tests.model.judging.test_acceptor import Conversation

ALL = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3")


def ended_while_quiescing(dialect: str) -> Conversation:
    """The channel of the active consumer ended while one of higher priority waited, which then was handed m1."""
    talk = consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "low")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1", consumer="low").rest()
    talk = consume(consume(talk, "b.1", "high", "x-priority=1"), "d.1", "third", "x-priority=-1")
    talk.send("a.1 channel.close").see("a.1", "channel.close-ok")
    counts = {"x-delivery-count": 1, **({"x-acquired-count": 1} if dialect == "rabbitmq-4.3" else {})}
    talk.see(
        "b.1", "basic.deliver", "m1", properties={"headers": counts},
        consumer_tag="high", delivery_tag=1, redelivered=True, exchange="", routing_key="q",
    )  # fmt: skip
    talk.rest().send("b.1 basic.ack 1").rest()
    talk.send("b.1 basic.cancel high").see("b.1", "basic.cancel-ok", consumer_tag="high").rest()
    assert talk.acceptor.failures == []
    return talk


def test_one_that_ended_while_it_was_quiescing_comes_back() -> None:
    talk = ended_while_quiescing("rabbitmq-4.3").send("c.1 basic.publish q body=m2").rest()
    assert talk.failure.defect == "closed-consumer-keeps-messages"
    talk.send("c.1 basic.publish q body=m3").rest()
    assert len(talk.acceptor.failures) == 1, "nothing more is owed by such a queue"


@pytest.mark.parametrize("dialect", ["rabbitmq-4.0", "rabbitmq-4.3"])
def test_it_does_not_where_the_next_one_is_served(dialect: str) -> None:
    talk = ended_while_quiescing(dialect).send("c.1 basic.publish q body=m2")
    talk.deliver("d.1", 1, "m2", consumer="third").rest()
    talk.send("c.1 basic.publish q body=m3")
    assert talk.fork().rest().failure.defect != "closed-consumer-keeps-messages", "the right one was seen to be active"
    talk.deliver("d.1", 2, "m3", consumer="third").rest()
    assert talk.acceptor.failures == []


def test_in_other_versions_it_has_no_name() -> None:
    talk = ended_while_quiescing("rabbitmq-4.0").send("c.1 basic.publish q body=m2").rest()
    assert not talk.failure.defect


def with_its_tag_again(dialect: str) -> Conversation:
    """The first consumer was cancelled with m1 in hand; one of its tag waits while another one is active."""
    talk = consume(consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "t"), "b.1", "u")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    return consume(talk, "a.1", "t")


@pytest.mark.parametrize("dialect", ALL)
def test_an_active_one_of_a_cancelled_ones_tag_is_not_served_even_when_all_is_settled(dialect: str) -> None:
    talk = with_its_tag_again(dialect)
    talk.send("b.1 basic.cancel u").see("b.1", "basic.cancel-ok", consumer_tag="u").rest()
    talk.send("a.1 basic.ack 1").rest().send("c.1 basic.publish q body=m2")
    served = talk.fork().deliver("a.1", 2, "m2").rest()
    assert served.acceptor.failures == []
    assert talk.rest().failure.defect == "consumer-of-same-tag-never-active"


@pytest.mark.parametrize("dialect", ALL)
def test_one_of_a_cancelled_ones_tag_that_is_cancelled_waits_on(dialect: str) -> None:
    talk = consume(with_its_tag_again(dialect), "d.1", "v")
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.cancel u").see("b.1", "basic.cancel-ok", consumer_tag="u").rest()
    talk.send("c.1 basic.publish q body=m2")
    served = talk.fork().deliver("d.1", 1, "m2", consumer="v").rest()
    assert served.acceptor.failures == []
    assert talk.rest().failure.defect == "consumer-of-same-tag-waits-on"


def test_a_cancelled_one_that_waits_goes_with_its_channel() -> None:
    talk = consume(with_its_tag_again("rabbitmq-4.3"), "d.1", "v")
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.ack 1").rest().send("a.1 channel.close").see("a.1", "channel.close-ok").rest()
    talk.send("b.1 basic.cancel u").see("b.1", "basic.cancel-ok", consumer_tag="u").rest()
    talk.send("c.1 basic.publish q body=m2").rest()
    assert not talk.failure.defect


@pytest.mark.parametrize("dialect", ["rabbitmq-4.0", "rabbitmq-4.3"])
def test_one_of_a_cancelled_ones_tag_that_takes_over_makes_numbers_ambiguous(dialect: str) -> None:
    talk = consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "low")
    talk = consume(limit(talk, "b.1", 1), "b.1", "t", "x-priority=1")
    talk.send("c.1 basic.publish q body=m1").deliver("b.1", 1, "m1").rest()
    talk.send("b.1 basic.cancel t").see("b.1", "basic.cancel-ok", consumer_tag="t").rest()
    talk = consume(talk, "b.1", "t", "x-priority=1")
    talk.send("c.1 basic.publish q body=m2").deliver("b.1", 2, "m2").rest()
    talk.send("c.1 basic.publish q body=m3").rest().send("b.1 basic.ack 1")
    assert talk.deliver("b.1", 3, "m3").failure.defect == "takeover-forgets-deliveries"
    assert talk.acceptor.finished


@pytest.mark.parametrize("dialect", ["rabbitmq-4.0", "rabbitmq-4.3"])
def test_one_that_outstayed_may_be_followed_by_an_equal_one(dialect: str) -> None:
    talk = limit(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", 2)
    talk = consume(consume(talk, "a.1", "t"), "b.1", "equal")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk = consume(talk, "d.1", "high", "x-priority=1")
    talk.send("d.1 basic.cancel high").see("d.1", "basic.cancel-ok", consumer_tag="high").rest()
    talk.send("a.1 basic.ack 1").rest().send("c.1 basic.publish q body=m2")
    assert talk.deliver("b.1", 1, "m2", consumer="equal").failure.defect == "quiescing-consumer-starves"


@pytest.mark.parametrize("first", ["t no-ack", "t"])
@pytest.mark.parametrize(("limits", "successor"), [((2, 5), "u"), ((5, 2), "t"), ((0, 5), "t"), ((0, 3000), "u")])
def test_of_equal_ones_the_one_with_the_higher_limit_is_next(
    first: str, limits: tuple[int, int], successor: str
) -> None:
    talk = consume(conversation(f"{QUORUM} {SINGLE}", "rabbitmq-4.3"), "b.1", "active")
    talk = consume(limit(talk, "a.1", limits[0]), "a.1", *first.split())
    talk = consume(limit(talk, "a.1", limits[1]), "a.1", "u")
    talk.send("b.1 channel.close").see("b.1", "channel.close-ok").rest().send("c.1 basic.publish q body=m1")
    wrong = talk.fork().deliver("a.1", 1, "m1", consumer="t" if successor == "u" else "u")
    assert wrong.failure.requirement == "SAC-003"
    talk.deliver("a.1", 1, "m1", consumer=successor).rest()
    assert talk.acceptor.failures == []


@pytest.mark.parametrize("dialect", ALL[1:])
def test_one_that_goes_on_as_the_cancelled_one_stays_active_while_that_one_holds_something(dialect: str) -> None:
    talk = consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "t")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    talk = consume(consume(talk, "a.1", "t"), "b.1", "high", "x-priority=1")
    settled = talk.fork().send("a.1 basic.ack 1").rest().send("c.1 basic.publish q body=m2").rest()
    assert not settled.failure.defect
    talk.send("c.1 basic.publish q body=m2")
    assert talk.fork().deliver("b.1", 1, "m2", consumer="high").rest().acceptor.failures == []
    assert talk.rest().failure.defect == "consumer-of-same-tag-stays-active"
    talk.send("a.1 basic.ack 1").deliver("b.1", 1, "m2", consumer="high").rest()
    assert len(talk.acceptor.failures) == 1


@pytest.mark.parametrize("dialect", ALL)
def test_while_no_consumer_is_quiescing_and_no_tag_is_used_again_no_input_is_asked_about(dialect: str) -> None:
    talk = consume(consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "t"), "b.1", "u")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest().send("a.1 basic.ack 1").rest()
    assert waiting_consumers.NAME not in talk.acceptor.broker.armed
    talk = consume(talk, "d.1", "high", "x-priority=1")
    assert waiting_consumers.NAME not in talk.acceptor.broker.armed, "it becomes active at once, or never"


def test_what_is_remembered_of_a_queue_is_copied_with_it() -> None:
    talk = consume(with_its_tag_again("rabbitmq-4.3"), "d.1", "v")
    broker = talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest().acceptor.broker
    copy = copy_broker(broker)
    memory = copy.remembered(waiting_consumers.NAME)
    assert isinstance(memory, waiting_consumers.WaitingMemory)
    places = memory.places[copy.queues["q"]]
    assert broker.queues["q"] not in memory.places
    assert [gone.queue for gone in places.gone] == [copy.queues["q"]]
