"""A session and an embedded broker that share a clock wait for nothing, and judge as if they had."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.promises.verdict import Shape, Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.clock import FastForwardClock
from tests.patience import patience


def run(path: Path, *lines: str, fault: str | None = None) -> tuple[SequenceJudgement, float]:
    """What becomes of these commands, and the seconds that passed by the clock that was shared."""
    clock = FastForwardClock()
    with (
        EmbeddedBroker(DEFAULT_DIALECT, fault=fault, clock=clock) as broker,
        TraceWriter(path / "trace.jsonl") as trace,
    ):
        description = TargetDescription("embedded", "amqpspec", "0", DEFAULT_DIALECT.name)
        target = TargetUnderTest(broker.address, description, deadline=20.0, operator=broker.operator(), clock=clock)
        with Session(target, trace, "s") as session:
            began = clock.now()
            for line in lines:
                session.run(parse_command(line))
            return session.finish(), clock.now() - began


def test_what_is_waited_for_is_skipped(tmp_path: Path) -> None:
    began = time.monotonic()
    judgement, passed = run(
        tmp_path, "a.1 queue.declare q", "a.1 basic.publish q body=m1 expiration=20000", "broker clock.wait 30000",
        "a.1 basic.get q",
    )  # fmt: skip
    assert judgement.verdict is Verdict.PASS
    assert judgement.exercised["TTL-001"] == 1
    assert passed >= 30.0 and time.monotonic() - began < patience(3.0)


def test_what_comes_meanwhile_comes_at_its_time(tmp_path: Path) -> None:
    lines = (
        "a.1 queue.declare w", 'a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w',
        "a.1 basic.consume w tag=t no-ack", "a.1 basic.publish q body=m1 expiration=5000", "broker clock.wait 9000",
    )  # fmt: skip
    judgement, _ = run(tmp_path, *lines)
    assert judgement.verdict is Verdict.PASS
    lost, _ = run(tmp_path, *lines, fault="expired-letter-lost")
    assert [failure.requirement for failure in lost.failures] == ["DLX-001"]


def test_a_frame_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    judgement, passed = run(tmp_path, "a.1 basic.recover requeue", fault="recover-ok-missing")
    assert [failure.shape for failure in judgement.failures] == [Shape.MISSING]
    assert passed >= 20.0 and time.monotonic() - began < patience(2.0)


@pytest.mark.parametrize("silent", [False, True])
def test_heartbeats_go_by_it_as_well(tmp_path: Path, silent: bool) -> None:
    """Neither end gives the other up while time is skipped; the broker gives up a client that is silent."""
    began = time.monotonic()
    silence = ("s socket.silence",) if silent else ()
    judgement, _ = run(
        tmp_path, "s connection.open heartbeat=2", *silence, "broker clock.wait 20000", "s.1 basic.qos 1"
    )
    assert time.monotonic() - began < patience(10.0)
    assert judgement.verdict is Verdict.PASS
    assert bool(judgement.exercised.get("CONN-022")) is silent


def test_what_comes_back_late_is_a_dead_letter_from_then_on(tmp_path: Path) -> None:
    """It is not too old for a queue where letters live for no time at all, but are taken at once."""
    judgement, _ = run(
        tmp_path, "a.1 queue.declare w x-message-ttl=0", "b.1 basic.consume w tag=t no-ack",
        'a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=w',
        "a.1 basic.publish q body=m1 expiration=800", "a.1 basic.get q", "broker clock.wait 9000",
        "a.1 basic.reject 1 requeue",
    )  # fmt: skip
    assert judgement.verdict is Verdict.PASS
    assert judgement.exercised["TTL-005"] == 1
