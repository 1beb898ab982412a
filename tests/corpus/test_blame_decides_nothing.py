"""What only words failures is forgotten after each frame of recordings: all else is judged as before."""

from __future__ import annotations

import pytest

from amqpspec.conformance.explore.forgetting import forget_blame
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.judging.acceptor import Acceptor
from tests.corpus.expectations import judge_recording, recordings

#: What is said of the same failures differs, and so do the known defects that they are credited to.
Outcome = list[tuple[str, str, list[tuple[str, str]]]]


def outcome(name: str) -> Outcome:
    judgements = judge_recording(next(each for each in recordings() if each.stem == name))
    return [
        (each.sequence, each.verdict, [(failure.shape, failure.detail) for failure in each.failures])
        for each in judgements
    ]


@pytest.mark.parametrize(
    "name",
    ["rabbitmq-4.3-search-consumers", "rabbitmq-4.3-search-timeouts", "rabbitmq-3.10-search-traffic",
     "garagemq-search", "broker-j-search", "embedded-search"],
)  # fmt: skip
def test_what_only_words_failures_decides_no_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = outcome(name)
    sent, received = Acceptor.sent, Acceptor.received

    def forget(acceptor: Acceptor) -> None:
        for explanation in acceptor.explanations:
            # by which requirement a frame is owed says whether the dialect demands it, and whether a barrier does
            forget_blame(explanation.broker, but_of=(Expected, PendingGet))

    monkeypatch.setattr(Acceptor, "sent", lambda acceptor, event: (sent(acceptor, event), forget(acceptor)))
    monkeypatch.setattr(Acceptor, "received", lambda acceptor, event: (received(acceptor, event), forget(acceptor)))
    assert outcome(name) == usual
