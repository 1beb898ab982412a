"""Judging goes on after what brokers of the text do against it; nobody is excused."""

from __future__ import annotations

import pytest

from amqpspec.model.defects.habits import HABITS
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from tests.model.judging.test_acceptor import Conversation


def holding(dialect: str) -> Conversation:
    """m1 and m2 are with a.1, which has acknowledged m1 twice; nothing came of the second time."""
    talk = Conversation(dialect).send("b.1 queue.declare q")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", left=1).rest()
    talk.send("a.1 basic.get q").got("a.1", 2, "m2", left=0).rest()
    talk.send("a.1 basic.ack 1").rest()
    talk.send("a.1 basic.ack 1 multiple")
    talk.acceptor.overdue()
    return talk


@pytest.mark.known_defects
def test_what_is_behind_an_unknown_tag_that_is_ignored_is_judged() -> None:
    talk = holding("amqp-0-9-1")
    failure = talk.failure
    assert (failure.requirement, failure.detail, failure.defect) == ("ACK-006", "channel.close for basic.ack", "")
    assert not talk.acceptor.finished
    talk.rest().send("a.1 basic.reject 2 requeue").rest()
    lost = talk.fork()
    talk.send("b.1 basic.get q").got("b.1", 1, "m2", left=0, redelivered=True)
    assert talk.acceptor.failures == [failure]
    lost.send("b.1 queue.declare q passive")
    lost.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    lost.acceptor.overdue()
    assert [each.detail for each in lost.acceptor.failures[1:]] == ["messages ready"], "m2 was settled with m1"
    assert lost.acceptor.refuted == frozenset()


@pytest.mark.known_defects
def test_what_a_purge_took_from_its_holder_is_not_missed() -> None:
    talk = Conversation("amqp-0-9-1").send("b.1 queue.declare q")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", left=1).rest()
    talk.send("b.1 queue.purge q").see("b.1", "queue.purge-ok", message_count=2).rest()
    assert (talk.failure.requirement, talk.failure.detail) == ("QUEUE-024", "queue.purge-ok message-count")
    talk.send("a.1 basic.reject 1 requeue").rest()
    talk.send("b.1 basic.get q")
    assert len(talk.fork().see("b.1", "basic.get-empty").rest().acceptor.failures) == 1
    assert len(talk.got("b.1", 1, "m1", left=0, redelivered=True).acceptor.failures) == 2


def test_rabbitmq_has_no_habits() -> None:
    assert holding("rabbitmq-4.3").acceptor.finished


def test_no_habit_is_a_known_defect() -> None:
    assert not any(habit.is_excuse or habit.name in KNOWN_DEFECTS for habit in HABITS)
