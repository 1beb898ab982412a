"""Which explanations an output fits."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation


@pytest.mark.known_defects
@pytest.mark.parametrize("ends", [True, False])
def test_a_rare_way_that_is_right_does_not_hide_a_usual_one_that_is_known_to_tell_wrong_numbers(ends: bool) -> None:
    """A cancel-ok that answers nothing ends the consumer or is ignored. RabbitMQ counts who holds deliveries of a
    quorum queue as consumers, so the number of one tells nothing; that m2 is delivered, or not, tells it.
    """
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.2 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.2 basic.publish q body=m2", "a.1 basic.cancel-ok t", "a.2 queue.declare q passive")
    told = {"queue": "q", "message_count": 1, "consumer_count": 1}
    talk.see("a.2", "queue.declare-ok", **told)
    talk.acceptor.overdue()  # it may have been too early to count one less; it is no more
    talk.rest().send("a.2 queue.declare q passive").see("a.2", "queue.declare-ok", **told).rest()
    talk.send("a.1 basic.ack 1")
    if not ends:
        talk.deliver("a.1", 2, "m2")
    talk.rest()
    assert talk.acceptor.failures == []


@pytest.mark.known_defects
def test_a_rare_way_that_was_taken_long_ago_does_not_make_all_that_comes_later_rare() -> None:
    """A cancel that crosses channel.close need not be answered. What the channel does then is as usual as ever: a
    cancel-ok that answers nothing ends the consumer, so that it hears nothing of the deletion.
    """
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("b.1 basic.consume q tag=s").see("b.1", "basic.consume-ok", consumer_tag="s").rest()
    talk.send("b.1 basic.cancel s &", "b.1 channel.close").see("b.1", "channel.close-ok").rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.2 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.1 basic.cancel-ok t", "a.2 queue.declare q passive")
    told = {"queue": "q", "message_count": 0, "consumer_count": 1}
    talk.see("a.2", "queue.declare-ok", **told)
    talk.acceptor.overdue()  # it may have been too early to count one less; it is no more
    talk.rest().send("a.2 queue.declare q passive").see("a.2", "queue.declare-ok", **told).rest()
    talk.send("a.2 queue.delete q").see("a.2", "queue.delete-ok", message_count=0)
    talk.acceptor.overdue()
    talk.rest()
    assert talk.acceptor.failures == []


def test_a_way_that_the_text_leaves_open_does_not_hide_a_habit_of_counting() -> None:
    """A refused recover-async gives m1 back: so says a number that takes in what is acknowledged in a transaction. That
    the connection is not closed tells that the number was wrong.
    """
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    talk.send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", left=0).rest()
    talk.send("a.1 basic.ack 1").rest()
    talk.send("a.1 basic.recover-async requeue", "a.2 queue.declare q passive")
    talk.see("a.2", "queue.declare-ok", queue="q", message_count=1, consumer_count=0)
    talk.acceptor.overdue()
    assert talk.acceptor.failures == []
    talk.rest().send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    assert talk.acceptor.failures == []


def test_what_overtakes_another_is_blamed_by_what_has_been_processed() -> None:
    """m0 is in no queue: it went where the text leaves a choice, the less usual way, and nothing else explains that."""
    talk = Conversation("amqp-0-9-1")
    for queue in ("q", "gone"):
        talk.send(f"b.1 queue.declare {queue} durable")
        talk.see("b.1", "queue.declare-ok", queue=queue, message_count=0, consumer_count=0).rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    talk.send("a.1 basic.publish gone body=m0").rest()
    talk.send("b.1 queue.delete gone").see("b.1", "queue.delete-ok", message_count=0).rest()
    talk.send("b.1 queue.declare gone durable")
    talk.see("b.1", "queue.declare-ok", queue="gone", message_count=0, consumer_count=0).rest()
    talk.send("a.1 tx.commit").see("a.1", "tx.commit-ok")
    talk.send("b.2 queue.declare gone passive")
    talk.see("b.2", "queue.declare-ok", queue="gone", message_count=0, consumer_count=0)
    talk.acceptor.overdue()
    talk.rest().send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    assert talk.acceptor.failures == []
    talk.send("a.2 basic.publish q body=m1 &", "a.2 basic.publish q body=m2")
    assert talk.deliver("b.1", 1, "m2").failure.requirement == "PUBLISH-015"


def test_a_habit_of_counting_does_not_hide_that_a_broker_goes_the_less_usual_way() -> None:
    """A close-ok that nobody asked for closes the connection, which gives m1 back, or it is ignored."""
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest()
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t")
    talk.deliver("b.1", 1, "m1").rest()
    talk.send("b.1 channel.close-ok", "b.2 queue.declare q passive")
    talk.see("b.2", "queue.declare-ok", queue="q", message_count=1, consumer_count=1)
    talk.acceptor.overdue()
    talk.rest()
    assert all(failure.requirement == "QUEUE-001" for failure in talk.acceptor.failures)
    assert not talk.acceptor.finished
