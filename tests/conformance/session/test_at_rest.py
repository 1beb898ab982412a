"""After the last command the queues are what the model says, also those that no command has looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.embedded.hooks import Fault, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

TWO_QUEUES = (
    "a.1 queue.declare q durable", "a.1 queue.declare r durable", "a.1 basic.publish q body=m1",
    "a.1 basic.publish r body=m2",
)  # fmt: skip
HELD_AT_THE_END = (*TWO_QUEUES, "b.1 basic.get q", "a connection.close", "b connection.close")


def run(path: Path, *lines: str, fault: Fault | None = None) -> SequenceJudgement:
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(path) as trace:
        description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        with Session(TargetUnderTest(broker.address, description, 0.5), trace, "s") as session:
            for line in lines:
                session.run(parse_command(line))
        judgement = session.finish()
        assert session.left_behind == ()
    assert judge(list(read_trace(path))) == judgement, "offline says the same"
    return judgement


def purge_the_other(broker: ServedBroker, method: Any, proceed: Proceed) -> None:
    for name in broker.queues:
        proceed(altered(method, queue=name, nowait=name != method.arguments["queue"]))


def settle_what_it_held(broker: ServedBroker, method: Any, proceed: Proceed) -> None:
    if (method.connection, 1) in broker.channels:
        proceed(Method(method.connection, 1, "basic.ack", {"delivery_tag": 0, "multiple": True}, sent=True))
    proceed(method)


def fault(method: str, hook: Any) -> Fault:
    return Fault("at-rest", "QUEUE-001", "It shows where nobody looks.", frozenset({method}), input_hook=hook)


def test_who_keeps_what_it_holds_passes(tmp_path: Path) -> None:
    assert run(tmp_path / "t.jsonl", *TWO_QUEUES, "a.1 queue.purge r").verdict is Verdict.PASS
    assert run(tmp_path / "u.jsonl", *HELD_AT_THE_END).verdict is Verdict.PASS


def test_a_purge_that_takes_another_queue_along_is_found(tmp_path: Path) -> None:
    judgement = run(tmp_path / "t.jsonl", *TWO_QUEUES, "a.1 queue.purge r", fault=fault("queue.purge", purge_the_other))
    (failure,) = judgement.failures
    assert failure.detail == "queue.declare-ok message-count"
    assert failure.command == "a.1 queue.purge r"


def test_what_is_lost_with_the_last_connection_is_found(tmp_path: Path) -> None:
    judgement = run(tmp_path / "t.jsonl", *HELD_AT_THE_END, fault=fault("connection.close", settle_what_it_held))
    (failure,) = judgement.failures
    assert failure.detail in ("queue.declare-ok message-count", "messages ready")


def test_a_sequence_may_have_a_connection_of_the_same_name(tmp_path: Path) -> None:
    judgement = run(tmp_path / "t.jsonl", "fresh.1 queue.declare q durable", "fresh.1 basic.publish q body=m1")
    assert judgement.verdict is Verdict.PASS


def test_where_no_queue_is_left_nothing_is_asked(tmp_path: Path) -> None:
    run(tmp_path / "t.jsonl", "a.1 basic.qos 1")
    assert {row["connection"] for row in read_trace(tmp_path / "t.jsonl") if row["kind"] == "frame"} == {"a"}
