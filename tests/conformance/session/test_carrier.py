"""What carries commands can be changed: a session says the same over the wire and to a model in its own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.language.names import plain
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.carrier import Carrier, Driver
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.clock import COMMON
from tests.conformance.session.in_process import NOWHERE, InProcess

DESCRIPTION = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")

SEQUENCES = {
    "traffic": (
        "a.1 queue.declare q", "b.1 confirm.select", "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2",
        "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "a.1 basic.ack 1", "a.1 basic.cancel t",
        "a.1 basic.nack 2 requeue", "b.1 basic.get q no-ack",
    ),
    "endings": (
        "a.1 queue.declare q exclusive", "a.1 basic.ack 9", "a.2 basic.recover requeue", "b.1 queue.declare q passive",
        "a connection.close", "b.1 queue.delete q", "a.1 basic.qos 1",
    ),
    "names again": ("a.1 queue.declare q", "a socket.abort", "a connection.open", "a.1 queue.delete q"),
}  # fmt: skip


def run(target: TargetUnderTest, path: Path, lines: tuple[str, ...]) -> tuple[SequenceJudgement, list[Any]]:
    """The judgement, and the rows of frames without their times and what differs with each run."""
    with TraceWriter(path) as trace, Session(target, trace, "s") as session:
        for line in lines:
            session.run(parse_command(line))
        judgement = session.finish()
    told = ("connection", "channel", "direction", "method", "arguments", "properties", "body")
    rows = [[plain(str(row.get(key))) for key in told] for row in read_trace(path) if row["kind"] == "frame"]
    return judgement, [row for row in rows if row[3] not in ("connection.start", "socket.closed")]


@pytest.mark.parametrize("name", SEQUENCES)
def test_without_sockets_the_frames_are_the_same(name: str, tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        wire = run(TargetUnderTest(broker.address, DESCRIPTION, 2.0), tmp_path / "wire.jsonl", SEQUENCES[name])
    near = run(TargetUnderTest(NOWHERE, DESCRIPTION, 2.0, driver=InProcess), tmp_path / "near.jsonl", SEQUENCES[name])
    assert near[0].verdict is wire[0].verdict is Verdict.PASS
    assert near[1] == wire[1]
    assert near[0].exercised == wire[0].exercised


def test_both_are_what_a_session_needs() -> None:
    """That they are is mypy's to say; this keeps the names in use."""
    drivers: list[Driver] = [WireClient, InProcess]
    carriers: list[Carrier] = [
        driver(NOWHERE, lambda frame: None, write_patience=1.0, clock=COMMON) for driver in drivers
    ]
    assert not any(carrier.open_names() for carrier in carriers)
