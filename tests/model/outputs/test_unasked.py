"""Frames that come only where something asked for them: they pin what asked."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.judging.defects_followed import NO_DEFECTS
from amqpspec.model.judging.points import points
from amqpspec.model.outputs.confirms import UNASKED
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.replies import ASKED_FOR, is_unasked
from amqpspec.model.protocol.methods import Method, TraceEvent
from tests.model.judging.test_acceptor import Conversation

COUNTS = {"queue": "q", "message_count": 0, "consumer_count": 0}


def seen(name: str, **arguments: Any) -> TraceEvent:
    return Method("a", 1, name, arguments, sent=False)


@pytest.mark.parametrize("name", sorted(ASKED_FOR))
def test_what_nobody_asked_for_is_wrong(name: str) -> None:
    broker = Conversation().send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest().acceptor.broker
    event = seen(name, delivery_tag=1)
    assert is_unasked(broker, event)
    assert any(mismatch.fatal for mismatch in observe(broker, event))


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (("a.1 basic.qos 1", "a.1 queue.declare q durable"), seen("queue.declare-ok", **COUNTS)),
        (("a.1 confirm.select nowait", "a.1 basic.publish q body=m"), seen("basic.ack", delivery_tag=1)),
        (("a.1 queue.declare q durable nowait", "a.1 basic.get q"), seen("basic.get-empty")),
    ],
)
def test_only_points_behind_the_question_are_looked_at_and_none_is_copied(
    lines: tuple[str, ...], answer: TraceEvent
) -> None:
    talk = Conversation().send(*(f"{line} &" for line in lines))
    [only] = talk.acceptor.explanations
    assert len(only.pending) == 2
    broker = only.broker
    assert [len(point.pending) for point in points(only, NO_DEFECTS, 10)] == [2, 1, 0]
    [point] = points(only, NO_DEFECTS, 10, answer)
    assert point.broker is broker
    assert not point.pending


def test_what_is_owed_was_asked_for() -> None:
    talk = Conversation().send("a.1 basic.qos 1")
    assert not is_unasked(talk.acceptor.broker, seen("basic.qos-ok"))
    assert is_unasked(talk.acceptor.broker, seen("queue.declare-ok", **COUNTS))


def test_judging_goes_on_behind_a_confirm_on_a_channel_that_wants_none() -> None:
    """Of the text, where nothing says of a defect how it goes on: nothing has changed by it."""
    broker = Conversation("amqp-0-9-1").send("a.1 queue.declare q").rest().acceptor.broker
    (mismatch,) = observe(broker, seen("basic.ack", delivery_tag=1))
    assert (mismatch.requirement, mismatch.fatal) == ("CONFIRM-002", False)
    assert mismatch.detail == f"basic.ack {UNASKED}"
