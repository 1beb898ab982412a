"""Frames that are owed whatever is processed next: told at once, and never told where silence would be right."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpspec.model.judging.acceptor import DEFAULT_BOUND, Acceptor
from amqpspec.model.judging.certain_debts import is_certainly_owed
from amqpspec.model.judging.points import may_be_quiet
from tests.corpus.expectations import judge_recording, recordings
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
        (["b.1 basic.publish q body=m1 &"], False),
        (["b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2 &"], True),
        (["b.1 basic.publish q body=m1 &", "b.1 basic.qos 1 &"], True),
        (["b.1 basic.publish q body=m1 &", "b.1 confirm.select nowait &"], False),
        (["b.1 basic.publish q body=m1", "b.1 channel.close &"], False),
        (["b.1 basic.publish q body=m1", "b.1 basic.qos 1 &", "b.0 connection.close &"], False),
    ],
)
def test_it_is_told_at_once_or_left_to_be_found_out(lines: list[str], is_certain: bool) -> None:
    talk = consuming().send(*lines)
    (only,) = talk.acceptor.explanations
    assert is_certainly_owed(only) == is_certain
    assert talk.acceptor.owes() == bool(lines)


def test_silence_is_never_right_where_something_is_certainly_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind each frame of recordings."""
    looked_at: Counter[bool] = Counter()
    sent, received = Acceptor.sent, Acceptor.received

    def look(acceptor: Acceptor) -> None:
        for explanation in acceptor.explanations:
            if explanation.defect is None and explanation.pending:
                is_certain = is_certainly_owed(explanation)
                looked_at[is_certain] += 1
                assert not (is_certain and may_be_quiet(explanation, acceptor._defects, DEFAULT_BOUND))

    monkeypatch.setattr(Acceptor, "sent", lambda acceptor, event: (sent(acceptor, event), look(acceptor)))
    monkeypatch.setattr(Acceptor, "received", lambda acceptor, event: (received(acceptor, event), look(acceptor)))
    for name in ("rabbitmq-3.10-search-traffic", "rabbitmq-4.3-search-timeouts", "embedded-search"):
        judge_recording(next(each for each in recordings() if each.stem == name))
    assert looked_at[True] > 100
    assert looked_at[False] > 100
