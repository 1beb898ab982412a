"""Transactions in flight: what may come before commit-ok, what it proves, and what is blamed."""

from __future__ import annotations

import pytest

from amqpspec.model.judging.acceptor_questions import AcceptorQuestions
from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation


def transacting(*lines: str, dialect: str = "rabbitmq-4.3") -> Conversation:
    """b.1 is in transaction mode, and the queue `q` is there."""
    talk = Conversation(dialect)
    talk.send("a.1 queue.declare q").see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("b.1 tx.select").see("b.1", "tx.select-ok").rest()
    for line in lines:
        talk.send(line)
    return talk


def test_nothing_is_delivered_before_the_commit() -> None:
    talk = transacting("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.get q")
    assert talk.fork().see("a.1", "basic.get-empty").rest().acceptor.verdict is Verdict.PASS
    assert talk.got("a.1", 1, "m1", 0).failure.requirement == "TX-002"


def test_commit_ok_proves_what_was_published() -> None:
    talk = transacting("b.1 basic.publish q body=m1", "b.1 tx.commit")
    early = talk.fork().send("a.1 basic.get q")
    assert early.see("a.1", "basic.get-empty").see("b.1", "tx.commit-ok").acceptor.verdict is Verdict.PASS
    talk.see("b.1", "tx.commit-ok").send("a.1 basic.get q")
    assert talk.fork().got("a.1", 1, "m1", 0).rest().acceptor.verdict is Verdict.PASS
    assert talk.see("a.1", "basic.get-empty").failure.requirement == "TX-002"


def test_nothing_but_commit_ok_confirms() -> None:
    talk = transacting("b.1 basic.publish q body=m1", "b.1 tx.commit")
    assert talk.confirm("b.1", 1).failure.requirement == "TX-004"


@pytest.mark.parametrize("follower", ["b.1 basic.qos 1", "b.1 tx.commit", "b.1 basic.publish q body=m2"])
def test_what_follows_a_waiting_commit_is_refused_or_comes_behind_it(follower: str) -> None:
    talk = transacting("b.1 basic.publish q body=m1", "b.1 tx.commit &", follower)
    text = "CHANNEL_ERROR - unexpected command while processing 'tx.commit'"
    class_id, method_id = {"basic.qos": (60, 10), "tx.commit": (90, 20), "basic.publish": (60, 40)}[follower.split()[1]]
    refused = talk.fork().see("b.0", "connection.close", reply_code=504, reply_text=text,
                              class_id=class_id, method_id=method_id)  # fmt: skip
    assert refused.acceptor.verdict is Verdict.PASS
    assert refused.acceptor.exercised["TX-010"]
    assert talk.see("b.1", "tx.commit-ok").acceptor.verdict is Verdict.PASS


def test_a_channel_may_be_closed_before_its_commit_is_answered() -> None:
    talk = transacting("b.1 basic.publish q body=m1", "b.1 tx.commit &", "b.1 channel.close")
    answered = talk.fork().see("b.1", "tx.commit-ok").see("b.1", "channel.close-ok")
    assert answered.acceptor.verdict is Verdict.PASS
    assert talk.see("b.1", "channel.close-ok").acceptor.verdict is Verdict.PASS


def test_what_follows_a_commit_that_fails_is_refused_or_ignored() -> None:
    talk = Conversation()
    talk.send("a.1 queue.declare q x-max-length=0 x-overflow=reject-publish")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("b.1 tx.select").see("b.1", "tx.select-ok").rest()
    talk.send("b.1 basic.publish q body=m1").rest().send("b.1 tx.commit &", "b.1 basic.qos 1")
    partial = {"reply_code": 406, "reply_text": "PRECONDITION_FAILED - partial tx completion"}
    ignored = talk.fork().see("b.1", "channel.close", class_id=90, method_id=20, **partial)
    assert ignored.acceptor.verdict is Verdict.PASS
    text = "CHANNEL_ERROR - unexpected command while processing 'tx.commit'"
    talk.see("b.0", "connection.close", reply_code=504, reply_text=text, class_id=60, method_id=10)
    assert talk.acceptor.verdict is Verdict.PASS


def test_a_commit_waits_for_returns() -> None:
    talk = transacting("b.1 basic.publish nosuch mandatory body=m1", "b.1 tx.commit")
    assert talk.see("b.1", "tx.commit-ok").failure.requirement == "TX-003"


def test_a_return_waits_for_the_commit() -> None:
    talk = transacting("b.1 basic.publish nosuch mandatory body=m1")
    arguments = {"reply_code": 312, "reply_text": "NO_ROUTE", "exchange": "", "routing_key": "nosuch"}
    assert talk.see("b.1", "basic.return", "m1", **arguments).failure.requirement == "TX-003"


def test_a_get_that_crosses_a_commit_need_not_count_what_it_published() -> None:
    """The frames of two connections come in any order."""
    talk = transacting("a.1 basic.publish q body=m1").rest()
    talk.send("b.1 basic.publish q body=m2").rest().send("a.1 basic.get q &", "b.1 tx.commit")
    talk.see("b.1", "tx.commit-ok")
    assert talk.fork().got("a.1", 1, "m1", 0).acceptor.verdict is Verdict.PASS
    assert talk.got("a.1", 1, "m1", 1).acceptor.verdict is Verdict.PASS


def test_what_is_held_is_looked_at_behind_a_rollback() -> None:
    """Also where nothing was settled in the transaction: Qpid Broker-J gives all of it back."""
    talk = transacting("a.1 basic.publish q body=m1", dialect="amqp-0-9-1").rest()
    talk.send("b.1 basic.get q").got("b.1", 1, "m1", 0).rest()
    talk.send("b.1 tx.rollback").see("b.1", "tx.rollback-ok")
    assert (("b", 1), "q") in AcceptorQuestions(talk.acceptor).touched()
