"""A broker that ends in the middle of a run has failed nothing by that."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import SERVES_ON, TargetDescription
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker


@pytest.mark.parametrize("kill_at", [3, 40, 111])
def test_what_the_end_of_the_broker_shows_is_no_failure(tmp_path: Path, kill_at: int) -> None:
    path = tmp_path / "trace.jsonl"
    is_over = threading.Event()
    with EmbeddedBroker() as broker, TraceWriter(path) as trace:

        def kill() -> None:
            while not is_over.wait(0.002):
                if path.read_bytes().count(b'"kind":"command"') >= kill_at:
                    broker.__exit__(None, None, None)
                    return

        killer = threading.Thread(target=kill)
        killer.start()
        description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        target = TargetUnderTest(broker.address, description, deadline=0.3)
        try:
            result = Runner(target, trace, RunOptions(("ACK", "QOS"), 1, 0)).run()
        finally:
            is_over.set()
            killer.join()
    assert result.lost is not None
    assert [found.failure.requirement for found in result.failures] == [SERVES_ON]
    assert result.exit_code == 3
