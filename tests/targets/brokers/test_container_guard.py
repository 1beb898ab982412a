"""The process that takes away the containers of one that was killed (`tests.end_to_end.test_ended_from_outside`)."""

from __future__ import annotations

import errno
import os
import subprocess
from typing import Any

import pytest

from amqpspec.targets.brokers import container_guard
from amqpspec.targets.brokers.readiness import BrokerUnavailable


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is started, by this process, which has no guard yet: nothing can be."""
    found: list[list[str]] = []

    def popen(command: list[str], **options: Any) -> None:
        found.append(command)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(container_guard, "_guards", {})
    monkeypatch.setattr(subprocess, "Popen", popen)
    return found


@pytest.mark.quick
def test_a_guard_that_cannot_be_started_is_an_error_of_one_line(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_guard, "owner", lambda: "boot pid:[1] 7 8")
    with pytest.raises(BrokerUnavailable, match=r"^cannot start the guard of the containers: [^\n]+$"):
        container_guard.ensure_guard()
    assert [command[-1] for command in commands] == ["boot pid:[1] 7 8"]


@pytest.mark.quick
def test_who_cannot_be_known_has_no_guard(commands: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is no /proc: nobody could tell what is its."""
    monkeypatch.setattr(container_guard, "owner", lambda: "")
    container_guard.ensure_guard()
    assert commands == []
