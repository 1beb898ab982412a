"""A binding that is not there may be taken back or not, by the text; a queue that is not there may not."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation

CLOSE = {"reply_text": "", "class_id": 50, "method_id": 50}


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    return talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()


@pytest.mark.parametrize(
    ("on", "frame", "arguments"),
    [
        ("a.1", "queue.unbind-ok", {}),
        ("a.1", "channel.close", {"reply_code": 404, **CLOSE}),
        ("a", "connection.close", {"reply_code": 530, **CLOSE}),
    ],
    ids=["done", "refused on the channel", "refused on the connection"],
)
def test_a_binding_that_is_not_there(talk: Conversation, on: str, frame: str, arguments: dict[str, object]) -> None:
    talk.send("a.1 queue.unbind q amq.direct routing-key=k").see(on, frame, **arguments)
    assert talk.acceptor.failures == []


def test_a_queue_that_is_not_there(talk: Conversation) -> None:
    talk.send("a.1 queue.unbind missing amq.direct routing-key=k").see("a.1", "queue.unbind-ok")
    assert [each.requirement for each in talk.acceptor.failures] == ["BIND-002"]


def test_no_queue_at_all(talk: Conversation) -> None:
    talk.send("a.2 queue.unbind exchange=amq.direct").see("a.2", "channel.close", reply_code=404, **CLOSE)
    assert talk.acceptor.failures == []
