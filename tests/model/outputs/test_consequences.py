"""What follows from a failure that was told is not told again under other names."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation, declared

TEXT = "amqp-0-9-1"


def counted(talk: Conversation, messages: int) -> Conversation:
    talk.send("b.1 queue.declare q passive")
    return talk.see("b.1", "queue.declare-ok", queue="q", message_count=messages, consumer_count=0)


@pytest.mark.parametrize("method", ["purge", "delete"])
def test_a_queue_without_its_messages_is_blamed_on_who_lost_them(method: str) -> None:
    """Seen of MetalMQ, whose default exchange takes messages and keeps none."""
    talk = counted(counted(declared(dialect=TEXT).send("b.1 basic.publish q body=m1"), 1), 0)
    talk.send(f"b.1 queue.{method} q").see("b.1", f"queue.{method}-ok", message_count=0)
    requirements = {failure.requirement for failure in talk.acceptor.failures}
    assert requirements == {"PUBLISH-002"}


def test_a_number_that_is_right_begins_anew() -> None:
    talk = counted(counted(counted(declared(dialect=TEXT).send("b.1 basic.publish q body=m1"), 1), 0), 1)
    talk.send("b.1 queue.purge q").see("b.1", "queue.purge-ok", message_count=0)
    assert talk.acceptor.failures[-1].requirement == "QUEUE-024"


def test_a_close_for_the_next_method_is_not_one_with_a_wrong_method() -> None:
    """Seen of MetalMQ, which takes channel.close-ok for the end of an open channel."""
    talk = declared(dialect=TEXT).send("a.1 queue.declare-ok &", "a.1 basic.qos 1")
    talk.see("a.0", "connection.close", reply_code=504, reply_text="", class_id=60, method_id=10)
    assert [failure.detail for failure in talk.acceptor.failures] == ["connection.close reply-code"]


@pytest.mark.parametrize("is_ignored", [True, False])
def test_a_clients_cancel_ok_ends_its_consumer_or_nothing(is_ignored: bool) -> None:
    talk = declared(dialect=TEXT).send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.1 basic.cancel-ok t", "b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=int(is_ignored))
    talk.acceptor.overdue()
    talk.rest()
    assert talk.acceptor.verdict is Verdict.PASS, talk.acceptor.failures


def test_what_needs_no_acknowledgement_is_not_counted_among_the_unacknowledged() -> None:
    """Seen of dispatchd, whose basic.get-ok says 1 whatever there is."""
    talk = counted(declared(dialect=TEXT).send("b.1 basic.publish q body=m1"), 1)
    talk.send("a.1 basic.get q no-ack").got("a.1", 1, "m1", left=1)
    assert [failure.detail for failure in talk.acceptor.failures] == ["basic.get-ok message-count"]
