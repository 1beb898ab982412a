"""Where a message goes that is given back is in no text: RabbitMQ's place is one of several."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation


@pytest.mark.parametrize(("dialect", "blamed"), [("amqp-0-9-1", []), ("rabbitmq-4.3", ["ACK-016"])])
def test_what_is_given_back_comes_at_any_place(dialect: str, blamed: list[str]) -> None:
    talk = Conversation(dialect).send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for body in ("m1", "m2"):
        talk.send(f"a.1 basic.publish q body={body}").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", 1).rest()
    talk.send("a.1 basic.reject 1 requeue").rest()
    talk.send("a.1 queue.declare q passive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=2, consumer_count=0).rest()
    talk.send("a.1 basic.get q").got("a.1", 2, "m2", 1).rest()
    assert [each.requirement for each in talk.acceptor.failures] == blamed


def test_what_was_published_later_does_not_come_first() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for body in ("m1", "m2"):
        talk.send(f"a.1 basic.publish q body={body}").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m2", 1)
    assert [each.requirement for each in talk.acceptor.failures] == ["PUBLISH-015"]


def test_nor_does_it_where_another_was_given_back() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for body in ("m1", "m2", "m3"):
        talk.send(f"a.1 basic.publish q body={body}").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", 2).rest()
    talk.send("a.1 basic.reject 1 requeue").rest()
    talk.send("a.1 basic.get q").got("a.1", 2, "m3", 2)
    assert [each.requirement for each in talk.acceptor.failures] == ["PUBLISH-015"]
