"""What a barrier asks about while there are several explanations."""

from __future__ import annotations

from amqpspec.model.judging.acceptor_questions import AcceptorQuestions
from tests.model.judging.test_acceptor import Conversation


def test_a_letter_because_of_deliveries_that_nobody_saw_is_asked_for() -> None:
    """m1 was given back once; it may have been with the consumer again, cancelled by now: that is once too often."""
    talk = Conversation("rabbitmq-4.0").send("a.1 queue.declare r durable")
    talk.see("a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0)
    talk.send(
        'a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=1 x-dead-letter-exchange=""'
        " x-dead-letter-routing-key=r"
    ).see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    questions = AcceptorQuestions(talk.acceptor)
    assert not questions.is_doubtful()
    talk.send("a.1 basic.reject 1 requeue &", "a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t")
    talk.send("a.2 queue.declare q passive")
    talk.see("a.2", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert questions.is_doubtful()
    assert questions.is_as_counted("q")
    assert "r" in questions.unproven()


def test_a_consumer_that_hears_nothing_of_a_deletion_answers_before_all_is_at_rest() -> None:
    """The acknowledgement crosses the deletion: by one explanation it came first, and m3 is on its way to t."""
    talk = Conversation("amqp-0-9-1").send("a.2 queue.declare q")
    talk.see("a.2", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.2 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.2 basic.publish q body=m2", "a.2 basic.publish q body=m3").rest()
    talk.send("a.1 basic.ack 1 &", "a.2 queue.delete q").see("a.2", "queue.delete-ok", message_count=2)
    questions = AcceptorQuestions(talk.acceptor)
    assert len(talk.acceptor.explanations) > 1
    assert ("a", 1) in [channel for channel, _ in questions.touched()] + questions.served_elsewhere()
    talk.send("a.2 queue.declare q")
    talk.deliver("a.1", 2, "m2")
    assert talk.acceptor.failures == []


def test_counts_are_those_by_which_the_broker_does_what_brokers_do() -> None:
    """A cancel-ok that nobody asked for may close the connection as well, which the next reply there tells."""
    talk = Conversation().send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok").rest()
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.publish q body=m1").deliver("b.1", 1, "m1").rest()
    talk.send("b.1 basic.cancel-ok t", "a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert len(talk.acceptor.explanations) > 1
    assert talk.acceptor.explanations[0].is_unusual
    assert AcceptorQuestions(talk.acceptor).is_as_counted("q")


def test_what_may_have_ended_a_channel_is_not_known_to_be_processed() -> None:
    """A cancel-ok that nobody asked for breaks the connection, which deletes q, or it does not. What another channel
    says of q may come from before that.
    """
    talk = Conversation("rabbitmq-3").send("a.1 queue.declare q durable auto-delete")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    questions = AcceptorQuestions(talk.acceptor)
    assert questions.unprocessed() == []
    talk.send("a.1 basic.cancel-ok t")
    assert questions.unprocessed() == [("a", 1)]
    talk.send("a.1 basic.qos 0").see("a.1", "basic.qos-ok")
    assert questions.unprocessed() == []


def test_a_cancel_that_races_a_deletion_is_not_known_to_be_processed() -> None:
    """Where the deletion comes first the broker cancels as well, and nothing but c.1 itself shows which it was."""
    talk = Conversation().send("a.1 queue.declare q")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("c.1 basic.consume q tag=t").see("c.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("c.1 basic.cancel t nowait &", "a.1 queue.delete q")
    talk.see("a.1", "queue.delete-ok", message_count=0)
    assert AcceptorQuestions(talk.acceptor).unprocessed() == [("c", 1)]
