"""Errors of the suite, planted where a test wants them."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.client.wire import WireClient

WHAT = "KeyError: 'planted'"


def raising(*_: object, **__: object) -> Any:
    raise KeyError("planted")


def break_judge(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Whatever judges a sequence in which the client sends that method raises something."""
    sent = Acceptor.sent

    def broken(self: Acceptor, event: TraceEvent) -> None:
        if event.name == method:
            raise KeyError("planted")
        sent(self, event)

    monkeypatch.setattr(Acceptor, "sent", broken)


class BreakingClient(WireClient):
    """Carries commands, and comes to an error of its own over basic.recover."""

    def send(self, event: TraceEvent, more: bool = False) -> None:
        if event.name == "basic.recover":
            raise KeyError("planted")
        super().send(event, more=more)
