"""Explanations that differ by a number only, of which one includes the other."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging import narrower
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.narrower import without_narrower
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.patterns import Between
from tests.model.judging.test_acceptor import Conversation


def owing(*counts: int | Between) -> Explanation:
    talk = Conversation().send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    [only] = talk.acceptor.explanations
    for count in counts:
        owed = Expected("queue.delete-ok", {"message_count": count}, ("QUEUE-024",))
        only.broker.channels[("a", 1)].owed.append(owed)
        only.broker.debtors[("a", 1)] = None
    return only


def test_only_the_widest_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrower, "FEW", 1)
    wide, other, apart = owing(Between(1, 5)), owing(Between(4, 8)), owing(9)
    narrow, same = owing(Between(2, 5)), owing(Between(1, 5))
    assert without_narrower([owing(5), wide, narrow, other, same, apart]) == [wide, other, apart]
    two = [owing(Between(1, 5), 3), owing(Between(2, 5), Between(1, 3)), owing(2, 3)]
    assert without_narrower(two) == two[:2], "neither of the first two includes the other"
    assert without_narrower([wide, owing(), owing()])[0] is wide


def test_a_deletion_among_publishes_whose_confirms_come_one_by_one_needs_few_explanations() -> None:
    """Each moment of the deletion, before and after each confirm, would be an explanation of its own."""
    count = 40
    talk = Conversation().send("a.1 queue.declare q")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok")
    talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok").rest()
    talk.send("b.1 queue.delete q &", *[f"a.1 basic.publish q body=m{n} &" for n in range(1, count + 1)])
    most = 0
    for tag in range(1, count + 1):
        talk.confirm("a.1", tag)
        most = max(most, talk.explanations)
    talk.see("b.1", "queue.delete-ok", message_count=20).rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert most <= 2 * count
