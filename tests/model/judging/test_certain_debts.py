"""Frames that are owed whatever is processed next are told at once."""

from __future__ import annotations

import pytest

from amqpspec.model.judging.certain_debts import is_certainly_owed
from amqpspec.model.protocol.methods import Method
from tests.model.judging.test_acceptor import Conversation


def consuming() -> Conversation:
    """A consumer waits for the messages of q, and a publisher's confirms are on."""
    talk = Conversation().send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    return talk.send("b.1 confirm.select").see("b.1", "confirm.select-ok").rest()


@pytest.mark.parametrize(
    ("lines", "is_certain"),
    [
        ([], False),
        (["b.1 basic.publish q body=m1 &"], True),
        (["b.1 basic.publish q body=m1 &", "b.1 channel.close &"], False),
        (["a.1 basic.publish q body=m1 &"], False),
        (["b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2 &"], True),
        (["b.1 basic.publish q body=m1 &", "b.1 basic.qos 1 &"], True),
        (["a.1 basic.publish q body=m1 &", "b.1 confirm.select nowait &"], False),
        (["b.1 basic.publish q body=m1", "b.1 channel.close &"], False),
        (["b.1 basic.publish q body=m1", "b.1 basic.qos 1 &", "b.0 connection.close &"], False),
    ],
)
def test_it_is_told_at_once_or_left_to_be_found_out(lines: list[str], is_certain: bool) -> None:
    talk = consuming().send(*lines)
    (only,) = talk.acceptor.explanations
    assert is_certainly_owed(only) == is_certain
    assert talk.acceptor.owes() == bool(lines)


def test_a_channel_that_is_opened_is_answered() -> None:
    talk = consuming().send("b.2 channel.close").see("b.2", "channel.close-ok").rest()
    talk.acceptor.overlapping = True
    talk.acceptor.sent(Method("b", 2, "channel.open", {}, sent=True))
    (only,) = talk.acceptor.explanations
    assert only.pending
    assert is_certainly_owed(only)
    assert talk.acceptor.owes()
