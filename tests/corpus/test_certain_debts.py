"""What is told to be owed for certain, in recordings."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpspec.model.judging.acceptor import DEFAULT_BOUND, Acceptor
from amqpspec.model.judging.certain_debts import is_certainly_owed
from amqpspec.model.judging.points import may_be_quiet
from tests.corpus.expectations import judge_recording, recordings


def test_silence_is_never_right_where_something_is_certainly_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each frame of recordings."""
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
