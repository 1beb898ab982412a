"""Alternatives: what a broker may do in place of the usual is right as well, and the usual is what is blamed."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation, declared


def declaring(line: str = "a.1 queue.declare q", dialect: str = "rabbitmq-4.3") -> Conversation:
    return Conversation(dialect).send("a.1 queue.declare r durable").see(
        "a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0
    ).rest().send(line)  # fmt: skip


def refused(talk: Conversation) -> Conversation:
    text = "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated."
    return talk.see("a", "connection.close", reply_code=541, reply_text=text, class_id=50, method_id=10)


def test_a_transient_queue_may_be_made() -> None:
    talk = declaring().see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    assert talk.acceptor.verdict is Verdict.PASS
    assert talk.explanations == 1
    assert talk.acceptor.exercised["QUEUE-018"] == 1
    assert "q" in talk.rest().acceptor.broker.queues


def test_or_refused_where_the_configuration_forbids_it() -> None:
    talk = refused(declaring()).rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert talk.acceptor.exercised["QUEUE-018"] == 1
    assert "q" not in talk.acceptor.broker.queues


def test_not_before_4_3_and_not_if_durable_or_exclusive() -> None:
    assert refused(declaring(dialect="rabbitmq-4.0")).failure.requirement == "QUEUE-018"
    assert refused(declaring("a.1 queue.declare q durable")).failure.requirement == "QUEUE-001"
    assert refused(declaring("a.1 queue.declare q exclusive")).failure.requirement == "QUEUE-001"


def test_a_wrong_answer_is_blamed_as_without_the_alternative() -> None:
    talk = declaring().see("a.1", "queue.declare-ok", queue="p", message_count=0, consumer_count=0)
    assert talk.failure.requirement == "QUEUE-001"
    assert talk.failure.detail == "queue.declare-ok queue"


def test_in_flight_the_next_frame_tells() -> None:
    talk = declaring("a.1 queue.declare q nowait &").send("a.1 basic.qos 1")
    made, not_made = talk.fork().see("a.1", "basic.qos-ok"), refused(talk.fork())
    assert made.rest().acceptor.verdict is not_made.rest().acceptor.verdict is Verdict.PASS
    assert "q" in made.acceptor.broker.queues
    assert "q" not in not_made.acceptor.broker.queues


def committing(dialect: str) -> Conversation:
    """a.1 commits a publish to the stream q, which b.1 has deleted meanwhile."""
    talk = Conversation(dialect).send("b.1 queue.declare q durable x-queue-type=stream")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").send("a.1 basic.publish q body=m1").rest()
    talk.send("b.1 queue.delete q").see("b.1", "queue.delete-ok", message_count=0).rest()
    return talk.send("a.1 tx.commit")


def test_a_commit_may_find_a_stream_whose_deletion_is_not_at_its_end() -> None:
    """Whether or not the channel has dealt with it before."""
    assert committing("rabbitmq-4.0").see("a.1", "tx.commit-ok").rest().acceptor.verdict is Verdict.PASS
    text = "RESOURCE_ERROR - Stream not found for queue 'q' in vhost '/'"
    talk = committing("rabbitmq-4.0")
    talk.see("a", "connection.close", reply_code=506, reply_text=text, class_id=90, method_id=20)
    assert talk.acceptor.verdict is Verdict.PASS


@pytest.mark.parametrize("refuses", [False, True])
def test_a_get_may_come_to_a_limited_quorum_queue_ahead_of_a_publish(refuses: bool) -> None:
    """Then m2 is not too much, and the queue does not refuse what comes next. Either is right."""
    talk = declared("quorum x-max-length=1 x-overflow=reject-publish")
    talk.send("b.1 confirm.select").see("b.1", "confirm.select-ok")
    talk.send("b.1 basic.publish q body=m1").confirm("b.1", 1).rest()
    talk.send("b.1 basic.publish q body=m2 &", "a.1 basic.get q").got("a.1", 1, "m1", left=0 + refuses)
    talk.confirm("b.1", 2).rest().send("b.1 basic.publish q body=m3")
    if refuses:
        talk.see("b.1", "basic.nack", delivery_tag=3, multiple=True, requeue=True)
    else:
        talk.confirm("b.1", 3)
    assert talk.rest().acceptor.verdict is Verdict.PASS
    assert [each.content.body for each in talk.acceptor.broker.queues["q"].messages] == [b"m2", b"m3"][: 2 - refuses]


def test_what_has_no_time_may_be_a_dead_letter_ahead_of_what_its_transaction_rejects() -> None:
    """A commit publishes before it settles; a queue looks at what is over at once, or when it comes to that."""
    talk = Conversation("rabbitmq-4.3")
    for name, options in (("r", ""), ("q", 'x-dead-letter-exchange="" x-dead-letter-routing-key=r')):
        talk.send(f"a.1 queue.declare {name} durable {options}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q").got("a.1", 1, "m1", left=0).rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    talk.send("a.1 basic.reject 1").rest().send("a.1 basic.publish q body=m2 expiration=0").rest().send("a.1 tx.commit")
    orders = {
        tuple(message.deaths[0]["reason"] for message in each.broker.queues["r"].messages)
        for each in talk.acceptor.explanations
    }
    assert orders == {("rejected",), ("expired", "rejected")}
    assert not talk.see("a.1", "tx.commit-ok").acceptor.failures
