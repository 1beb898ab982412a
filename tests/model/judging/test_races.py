"""Races that the model does not follow: what they may have brought about is undecided."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation


def limited(limit: str) -> Conversation:
    """a.1 may hold one message of the classic queue `q`, and holds it."""
    talk = Conversation().send(f"a.1 queue.declare q {limit}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    return talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()


def test_an_acknowledgement_may_overtake_a_publish() -> None:
    """The queue drops what it cannot hand out at once: m2, unless it has heard of the acknowledgement before."""
    talk = limited("x-max-length=0").send("a.1 basic.publish q body=m2 &", "a.1 basic.ack 1").deliver("a.1", 2, "m2")
    assert talk.acceptor.failures == []
    assert talk.rest().acceptor.verdict is Verdict.INCONCLUSIVE
    assert "an acknowledgement comes to a classic queue" in str(talk.acceptor.why_undecided)


@pytest.mark.parametrize("settlement", ["basic.reject 1", "basic.nack 1"])
def test_but_what_is_rejected_does_not(settlement: str) -> None:
    talk = limited("x-max-length=0").send("a.1 basic.publish q body=m2 &", f"a.1 {settlement}")
    assert talk.deliver("a.1", 2, "m2").acceptor.verdict is Verdict.FAIL


def test_nor_does_an_acknowledgement_that_comes_later() -> None:
    talk = limited("x-max-length=0").send("a.1 basic.publish q body=m2").rest().send("a.1 basic.ack 1")
    assert talk.deliver("a.1", 2, "m2").acceptor.verdict is Verdict.FAIL
