"""Single active consumers where RabbitMQ may serve nobody, or the wrong one: a broker that serves the right one passes.

What is credited to the known defects there: `test_windows_of_rabbitmq.py`.
"""

from __future__ import annotations

import pytest

from tests.model.broker.test_dispatch import QUORUM, SINGLE, consume, conversation
from tests.model.judging.test_acceptor import Conversation

ALL = pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])


def with_its_tag_again(dialect: str) -> Conversation:
    """The first consumer was cancelled with m1 in hand; one of its tag waits while another one is active."""
    talk = consume(consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "t"), "b.1", "u")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    return consume(talk, "a.1", "t")


@pytest.mark.parametrize("dialect", ["rabbitmq-4.0", "rabbitmq-4.3"])
def test_the_next_one_after_one_that_ended_while_it_was_quiescing(dialect: str) -> None:
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
    for tag, body in enumerate(("m2", "m3"), 1):
        talk.send(f"c.1 basic.publish q body={body}").deliver("d.1", tag, body, consumer="third").rest()
    assert talk.acceptor.failures == []


@ALL
def test_one_of_a_cancelled_ones_tag_becomes_active(dialect: str) -> None:
    talk = with_its_tag_again(dialect)
    talk.send("b.1 basic.cancel u").see("b.1", "basic.cancel-ok", consumer_tag="u").rest()
    talk.send("a.1 basic.ack 1").rest().send("c.1 basic.publish q body=m2").deliver("a.1", 2, "m2").rest()
    assert talk.acceptor.failures == []


@ALL
def test_one_of_a_cancelled_ones_tag_that_is_cancelled_waits_no_more(dialect: str) -> None:
    talk = consume(with_its_tag_again(dialect), "d.1", "v")
    for channel, tag in (("a.1", "t"), ("b.1", "u")):
        talk.send(f"{channel} basic.cancel {tag}").see(channel, "basic.cancel-ok", consumer_tag=tag).rest()
    talk.send("c.1 basic.publish q body=m2").deliver("d.1", 1, "m2", consumer="v").rest()
    assert talk.acceptor.failures == []


@pytest.mark.parametrize("dialect", ["rabbitmq-4.0", "rabbitmq-4.3"])
def test_one_of_higher_priority_takes_over_from_one_of_a_cancelled_ones_tag(dialect: str) -> None:
    talk = consume(conversation(f"{QUORUM} {SINGLE}", dialect), "a.1", "t")
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    talk = consume(consume(talk, "a.1", "t"), "b.1", "high", "x-priority=1")
    talk.send("c.1 basic.publish q body=m2").deliver("b.1", 1, "m2", consumer="high").rest()
    assert talk.acceptor.failures == []
