"""The frames that show a failure, as far as the wrong one, from the trace of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.failures.ladder import MOST_RUNGS, with_ladders
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judgement import RunResult, TargetDescription
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker


def a_run(directory: Path, fault: str, *only: str, shrinking_time: float = 20.0) -> RunResult:
    description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(directory / "trace.jsonl") as trace:
        options = RunOptions(only, 1, 0, shrinking_time=shrinking_time)
        result = Runner(TargetUnderTest(broker.address, description, deadline=0.3), trace, options).run()
    return with_ladders(result, read_trace(directory))


@pytest.mark.parametrize("shrinking_time", [0.0, 20.0])
def test_a_frame_that_did_not_come_is_the_last_rung(tmp_path: Path, shrinking_time: float) -> None:
    result = a_run(tmp_path, "multiple-zero-ignored", "ACK-003", shrinking_time=shrinking_time)
    assert result.failures
    for found in result.failures:
        rungs = found.ladder
        assert [rung.text for rung in rungs if rung.kind is Kind.COMMAND] == list(found.commands)
        assert rungs[-1].kind is Kind.MISSING
        assert f"{rungs[-1].place} < {rungs[-1].text}" == found.failure.allowed[0]
        assert Rung(Kind.SENT, "a.1", "basic.ack multiple=true") in rungs
        assert not any(rung.text.startswith(("connection.", "channel.open", "socket.")) for rung in rungs)


def test_a_frame_that_is_not_allowed_is_the_last_rung(tmp_path: Path) -> None:
    result = a_run(tmp_path, "get-empty-with-messages", "GET-001")
    (found,) = [each for each in result.failures if "get-empty" in each.failure.observed][:1]
    last = found.ladder[-1]
    assert last.kind is Kind.WRONG
    assert f"{last.place} < {last.text}" == found.failure.observed
    assert sum(rung.kind is Kind.WRONG for rung in found.ladder) == 1
    assert len(found.ladder) <= MOST_RUNGS + 1
