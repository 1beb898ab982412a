"""Sessions that send single and bad frames: the sequence goes on, and so do its other connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace, sequences
from amqpspec.conformance.traces.trace_row import event_row, row_event, row_line
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Method, RawFrame, TraceEvent
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

DIALECT_NAMES = [name for name in DIALECTS if name.startswith("rabbitmq")]


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceWriter]:
    with TraceWriter(tmp_path / "trace.jsonl") as writer:
        yield writer


def run(trace: TraceWriter, *lines: str, dialect: str = "rabbitmq-4.3", fault: str | None = None) -> SequenceJudgement:
    description = TargetDescription("embedded", "amqpspec", "0", dialect)
    with EmbeddedBroker(DIALECTS[dialect], fault=fault) as broker:
        target = TargetUnderTest(broker.address, description, 2.0)
        with Session(target, trace, "s") as session:
            for line in lines:
                session.run(parse_command(line))
            judgement = session.finish()
    (sequence,) = sequences(read_trace(trace.path))
    assert judge(sequence) == judgement, "the trace tells all that the judge saw"
    return judgement


BAD = {
    "a.1 frame.body body=abc": "CHAN-012",
    "a.1 frame.other type=9": "CONN-016",
    "a.1 frame.other payload=003c000a end=205": "CONN-015",
    "a.1 frame.other size=200000": "CONN-014",
    "a.1 frame.method class-id=99": "CONN-017",
    "a.1 frame.method class-id=60 method-id=10 payload=01": "CONN-018",
    "a.0 frame.body body=abc": "CHAN-012",
    "a.7! frame.other type=8": "CHAN-020",
}


@pytest.mark.parametrize("dialect", DIALECT_NAMES)
@pytest.mark.parametrize("line", BAD)
def test_one_connection_is_gone_and_the_others_go_on(trace: TraceWriter, line: str, dialect: str) -> None:
    judgement = run(
        trace,
        "b.1 queue.declare q",
        "a.1 basic.consume q tag=t",
        "b.1 basic.publish q body=m1",
        line,
        # nobody hears this
        "a.1 basic.publish q body=m2",
        "b.1 basic.get q no-ack",
        "c.1 basic.publish q body=m3",
        "b.1 basic.get q",
        dialect=dialect,
    )
    assert judgement.verdict is Verdict.PASS and not judgement.failures
    assert judgement.exercised[BAD[line]] == 1
    assert judgement.exercised["GET-001"] == 2


def test_pieces_are_a_message_with_its_properties(trace: TraceWriter) -> None:
    judgement = run(
        trace,
        "a.1 queue.declare q",
        "a.1 basic.publish q unfinished",
        "a.1 frame.header body-size=6 payload=8000057465787431",
        "a.1 frame.body body=abc",
        "a.1 frame.body body=def",
        "a.1 frame.body body=x",
        "b.1 basic.get q",
        "b.1 basic.get q",
    )
    assert judgement.verdict is Verdict.PASS
    assert judgement.exercised["CHAN-012"] == 1
    (got,) = [row for row in read_trace(trace.path) if row.get("method") == "basic.get-ok"]
    assert (got["body"], got["properties"]) == ("abcdef", {"content_type": "text1"})


def test_an_unfinished_content_holds_nothing_up(trace: TraceWriter) -> None:
    judgement = run(
        trace,
        "a.1 queue.declare q",
        "a.1 basic.publish q unfinished",
        "a.1 frame.header body-size=6",
        "a.2 basic.publish q body=m1",
        "a.2 basic.get q no-ack",
    )
    assert judgement.verdict is Verdict.PASS
    assert judgement.exercised["GET-001"] == 1


@pytest.mark.parametrize("lie", ["size=100 payload=00", "size=1 payload=00ce00", "size=4000000000 payload=00"])
def test_after_a_lie_about_a_size_nothing_is_asked_of_the_connection(trace: TraceWriter, lie: str) -> None:
    judgement = run(
        trace,
        "b.1 queue.declare q",
        "a.1 basic.consume q tag=t",
        f"a.1 frame.other {lie}",
        "a.1 basic.qos 1",
        "a.1 basic.qos 1",
        "b.1 queue.declare r",
        "b.1 basic.publish r body=m1",
        "b.1 basic.get r",
    )
    assert judgement.verdict is Verdict.PASS and not judgement.failures


def test_the_barrier_needs_no_channel_beyond_channel_max(trace: TraceWriter) -> None:
    judgement = run(
        trace,
        "a connection.open channel-max=1",
        "a.3 queue.declare q",
        "a.3 basic.publish q body=m1",
        "a.3 basic.publish q body=m2",
        "a.3 basic.get q",
        "a.4 channel.open",
    )
    assert judgement.verdict is Verdict.PASS and not judgement.failures
    assert judgement.exercised["CONN-013"] >= 1


@pytest.mark.parametrize(
    "event",
    [
        RawFrame("a", 1, "frame.method", {"class_id": 60, "method_id": 10, "payload": "00ff", "fault": "table"}, True),
        RawFrame(
            "a", 1, "frame.header", {"body_size": 2**64 - 1, "payload": "1000", "properties": {"headers": {}}}, True
        ),
        RawFrame("a", 0, "frame.body", {}, True, Content({}, b"\xff\x00")),
        RawFrame("a", 0, "frame.body", {}, True, Content({}, b"")),
        RawFrame("a", 65_535, "frame.other", {"type": 255, "size": 2**32 - 1, "payload": "", "end": 0}, True),
        Method("a", 1, "basic.publish", {"routing_key": "q"}, True),
        Method("a", 1, "basic.publish", {"routing_key": "q"}, True, Content({}, b"")),
    ],
    ids=lambda frame: frame.name,
)
def test_every_single_frame_has_a_row(event: TraceEvent, tmp_path: Path) -> None:
    row = event_row("s", event)
    assert row_event(row) == event
    file = tmp_path / "trace.jsonl"
    file.write_bytes(row_line(row))
    assert [row_event(each) for each in read_trace(file)] == [event]
