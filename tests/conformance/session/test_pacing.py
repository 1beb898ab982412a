"""What follows a command can be changed: lockstep, and one that has a single barrier, after the last command."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.barrier import complete_barrier
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.pacing import Lockstep, Pace
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, read_trace
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

LINES = (
    "a.1 queue.declare q", "b.1 basic.publish q body=m1", "a.1 basic.consume q tag=t", "a.1 basic.ack 1",
    "a.1 basic.cancel t",
)  # fmt: skip


class OneBarrier:
    """Waits for what each command owes, and makes one barrier, after the last of them."""

    mode = "one barrier"

    def __init__(self) -> None:
        self._commands: list[Command] = []

    def after(self, command: Command, conversation: Conversation) -> None:
        self._commands.append(command)
        if not command.in_flight:
            conversation.collect()

    def at_end(self, conversation: Conversation) -> None:
        conversation.collect()
        complete_barrier(conversation, self._commands)


def run(path: Path, pace: Pace, *lines: str, fault: str | None = None) -> tuple[SequenceJudgement, list[TraceRow]]:
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(path) as trace:
        description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
        with Session(TargetUnderTest(broker.address, description, 0.5), trace, "s", pace=pace) as session:
            for line in lines:
                session.run(parse_command(line))
        judgement = session.finish()
    rows = list(read_trace(path))
    assert judge(rows) == judgement, "offline says the same"
    return judgement, rows


def marks(rows: list[TraceRow]) -> Counter[str]:
    return Counter(row["mark"] for row in rows if row["kind"] == "mark")


def test_in_lockstep_each_command_has_its_barrier(tmp_path: Path) -> None:
    judgement, rows = run(tmp_path / "t.jsonl", Lockstep, *LINES, "a.1 basic.qos 1 &", "a.1 basic.qos 2")
    assert judgement.verdict is Verdict.PASS
    assert rows[0]["mode"] == "lockstep"
    # and one is for the queues at rest
    assert marks(rows) == {"barrier": len(LINES) + 2, "quiescent": len(LINES) + 2}, "but not what is in flight"


def test_one_barrier_at_the_end(tmp_path: Path) -> None:
    judgement, rows = run(tmp_path / "t.jsonl", OneBarrier, *LINES)
    assert (judgement.verdict, judgement.reason) == (Verdict.PASS, None)
    assert rows[0]["mode"] == "one barrier"
    assert marks(rows) == {"barrier": 1, "quiescent": 1}
    last = max(place for place, row in enumerate(rows) if row["kind"] == "command")
    assert all(row["kind"] != "mark" for row in rows[:last])


def test_what_is_wrong_is_found_either_way(tmp_path: Path) -> None:
    lines = ("a.1 queue.declare q", "a.1 basic.publish q body=m1", "a.1 basic.recover requeue", "a.1 basic.qos 1")
    for pace in (Lockstep, OneBarrier):
        judgement, _ = run(tmp_path / "t.jsonl", pace, *lines, fault="recover-ok-missing")
        assert judgement.verdict is Verdict.FAIL
        assert [failure.detail for failure in judgement.failures] == ["basic.recover-ok"]


def test_what_the_last_command_owes_is_waited_for_whether_it_was_to_be_or_not(tmp_path: Path) -> None:
    for end in ("", " &"):
        judgement, _ = run(tmp_path / f"trace{end}.jsonl", Lockstep, f"a.1 basic.get nosuch{end}", fault="get-unknown")
        assert judgement.verdict is Verdict.FAIL


def test_a_header_that_is_no_number_comes_as_it_was_sent(tmp_path: Path) -> None:
    """A nan equals nothing, itself neither."""
    publish = 'a.1 basic.publish q body=m1 headers={"h": {"$float": "nan"}}'
    judgement, _ = run(tmp_path / "trace.jsonl", Lockstep, "a.1 queue.declare q", publish, "a.1 basic.get q")
    assert judgement.verdict is Verdict.PASS, judgement.failures
