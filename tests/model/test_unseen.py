"""Deliveries that nobody sees count: a message may have had enough of them when its consumers' connection is gone."""

from __future__ import annotations

import pytest

from model.verdict import Verdict
from tests.model.test_acceptor import Conversation


def torn(talk: Conversation, limit: int, *options: str) -> Conversation:
    """A message was with one of two consumers when their connection closed: the other may have got it behind that."""
    talk.send(f"b.1 queue.declare q durable x-queue-type=quorum x-delivery-limit={limit} {' '.join(options)}")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for channel in ("a.1", "a.2"):
        talk.send(f"{channel} basic.consume q tag=t").see(channel, "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    return talk.send("a connection.close reply-code=200 reply-text=done").see("a", "connection.close-ok")


def counted(talk: Conversation, messages: int, queue: str = "q") -> Conversation:
    talk.send(f"b.1 queue.declare {queue} passive")
    return talk.see("b.1", "queue.declare-ok", queue=queue, message_count=messages, consumer_count=0)


@pytest.mark.parametrize("messages", [0, 1])
def test_beyond_the_limit_the_message_is_there_or_gone(messages: int) -> None:
    talk = counted(torn(Conversation(), 1), messages)
    talk.acceptor.overdue()
    assert talk.rest().acceptor.verdict is Verdict.PASS
    counted(talk, messages).rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert counted(talk, 1 - messages).acceptor.verdict is Verdict.FAIL, "it does not come back, nor go later"


def test_within_the_limit_the_message_is_there() -> None:
    talk = counted(torn(Conversation(), 2), 0)
    talk.acceptor.overdue()
    assert talk.acceptor.verdict is Verdict.FAIL


def test_what_was_given_up_may_be_a_dead_letter() -> None:
    talk = Conversation().send("b.1 queue.declare dead durable")
    talk.see("b.1", "queue.declare-ok", queue="dead", message_count=0, consumer_count=0).rest()
    torn(talk, 1, 'x-dead-letter-exchange=""', "x-dead-letter-routing-key=dead")
    moved = counted(counted(talk, 0), 1, "dead")
    moved.acceptor.overdue()
    assert moved.rest().acceptor.verdict is Verdict.PASS
    assert counted(moved, 1).acceptor.verdict is Verdict.FAIL, "it is in one of the two"


def test_what_is_recalled_and_confirmed_may_be_away_all_the_same() -> None:
    """The confirm says that the message was in its queue, not that it is back; its consumer is counted as long."""
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish q body=m1 &", "a.1 basic.publish q body=m2 &", "a.1 basic.cancel t")
    talk.see("a.1", "basic.cancel-ok", consumer_tag="t").confirm("a.1", 2, multiple=True)
    talk.send("b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=1)
    unreturned = talk.fork()
    unreturned.acceptor.overdue()
    assert unreturned.acceptor.verdict is Verdict.FAIL, "it has to come back"
    counted(talk, 2).acceptor.overdue()
    assert talk.rest().acceptor.verdict is Verdict.PASS


def test_who_waits_for_the_seat_is_not_taken_for_one_that_is_counted_yet() -> None:
    """A cancelled consumer settles what it holds: the queue may count it once more, and once again."""
    talk = Conversation().send("e.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true")
    talk.see("e.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for channel in ("a.1", "b.1", "c.1", "d.1"):
        talk.send(f"{channel} basic.consume q tag=t").see(channel, "basic.consume-ok", consumer_tag="t").rest()
    for channel, body in (("a.1", "m1"), ("b.1", "m2")):
        talk.send(f"e.1 basic.publish q body={body}").deliver(channel, 1, body).rest()
        talk.send(f"{channel} basic.cancel t").see(channel, "basic.cancel-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.ack 1")
    for count in (3, 3, 2):
        talk.send("e.1 queue.declare q passive")
        talk.see("e.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=count)
    assert {failure.departure for failure in talk.acceptor.failures} <= {"quorum-consumer-count"}
