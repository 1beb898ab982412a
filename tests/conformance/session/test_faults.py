"""Faults in a session: what stands where in the trace, what is sent meanwhile, and that all is as it was at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.errors import OperatorMissing

DECLARED = "a.1 queue.declare q durable x-queue-type=classic"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def target(broker: EmbeddedBroker) -> TargetUnderTest:
    description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
    return TargetUnderTest(broker.address, description, 30.0, broker.operator(), faults=broker.faults())


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceWriter]:
    with TraceWriter(tmp_path / "trace.jsonl") as writer:
        yield writer


def carried_out(target: TargetUnderTest, trace: TraceWriter, *lines: str) -> SequenceJudgement:
    commands = [parse_command(line) for line in lines]
    with Session(target, trace, "broken", planned=commands) as session:
        for command in commands:
            session.run(command)
    return session.finish()


def seen(trace: TraceWriter) -> list[str]:
    """The events of the first sequence, without the suite's own looks and without handshakes."""
    frames = (row for row in read_trace(trace.path) if row["kind"] == "frame")
    return [
        f"{row['connection']}{'>' if row['direction'] == 'sent' else '<'} {row['method']}"
        for row in frames
        if row["channel"] != 2000 and not row["method"].startswith("basic.qos")
    ]


def test_a_fault_stands_before_what_it_does_and_a_restart_behind_the_old_life(
    target: TargetUnderTest, trace: TraceWriter
) -> None:
    judgement = carried_out(target, trace, DECLARED, "broker.kill", "broker.restart", "b.1 basic.get q")
    assert judgement.verdict is Verdict.PASS, judgement
    names = seen(trace)
    killed = names.index("broker> broker.kill")
    assert names[killed : killed + 3] == ["broker> broker.kill", "a< socket.closed", "broker> broker.restart"]


def test_a_restart_of_a_broker_that_is_not_down_stops_it_first(target: TargetUnderTest, trace: TraceWriter) -> None:
    judgement = carried_out(target, trace, DECLARED, "broker.restart", "a.1 basic.get q")
    assert judgement.verdict is Verdict.PASS, judgement
    names = seen(trace)
    stopped, restarted = names.index("broker> broker.stop"), names.index("broker> broker.restart")
    assert names[stopped + 1 : restarted] == ["a< connection.close", "a> connection.close-ok", "a< socket.closed"]
    assert "a< basic.get-empty" in names[restarted:]  # the connection was made again


def test_nobody_is_connected_to_while_it_is_down(target: TargetUnderTest, trace: TraceWriter) -> None:
    judgement = carried_out(target, trace, DECLARED, "broker.stop", "b.1 basic.get q", "a.1 basic.get q")
    assert judgement.verdict is Verdict.PASS, judgement
    assert "b> socket.open" not in seen(trace) and seen(trace)[-1] == "a< socket.closed"


def test_nothing_is_waited_for_while_it_is_paused(target: TargetUnderTest, trace: TraceWriter) -> None:
    publish = "a.1 basic.publish q body=m delivery-mode=2"
    judgement = carried_out(
        target, trace, "a.1 confirm.select", DECLARED, "broker.pause", publish, "b.1 basic.get q", "broker.resume"
    )
    assert judgement.verdict is Verdict.PASS, judgement
    names = seen(trace)
    resumed = names.index("broker> broker.resume")
    assert names[resumed - 1] == "a> basic.publish" and names[resumed + 1] == "a< basic.ack"
    assert "b> socket.open" not in names


@pytest.mark.parametrize("left", ["broker.stop", "broker.kill", "broker.pause"])
def test_it_is_there_again_when_the_sequence_is_over(
    broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter, left: str
) -> None:
    carried_out(target, trace, DECLARED, left)
    assert check_alive(target.present_address)
    assert not broker.responder.own.broker.queues


def test_it_is_there_again_when_the_sequence_is_interrupted(
    broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter
) -> None:
    with pytest.raises(KeyboardInterrupt), Session(target, trace, "broken") as session:
        session.run(parse_command(DECLARED))
        session.run(parse_command("broker.kill"))
        raise KeyboardInterrupt
    assert check_alive(target.present_address)
    assert not broker.responder.own.broker.queues


@pytest.mark.parametrize("line", ["network.cut node=1", "queue.transfer-leader q node=1", "network.cut connection=a"])
def test_what_nobody_can_do_is_said(target: TargetUnderTest, trace: TraceWriter, line: str) -> None:
    with pytest.raises(OperatorMissing, match=line.split()[0]), Session(target, trace, "broken") as session:
        session.run(parse_command(line))  # of connections it must be known before: then they go through a network


def test_what_is_sent_while_the_network_is_cut_comes_when_it_is_healed(
    target: TargetUnderTest, trace: TraceWriter
) -> None:
    judgement = carried_out(
        target,
        trace,
        "a.1 confirm.select",
        DECLARED,
        "network.cut connection=a",
        "a.1 basic.publish q body=m1",
        "b.1 basic.get q",
        "network.heal connection=a",
        "b.1 basic.get q",
    )
    assert judgement.verdict is Verdict.PASS, judgement
    names = seen(trace)
    cut, healed = names.index("broker> network.cut"), names.index("broker> network.heal")
    assert "b< basic.get-empty" in names[cut:healed] and "a< basic.ack" not in names[:healed]
    assert names[healed + 1] == "a< basic.ack" and "b< basic.get-ok" in names[healed:]


def test_a_network_that_stays_cut_is_healed_at_the_end(
    broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter
) -> None:
    lines = (DECLARED, "network.cut connection=a", "a.1 basic.publish q body=m1", "a socket.abort", "a.1 tx.select")
    judgement = carried_out(target, trace, *lines)
    assert judgement.verdict is Verdict.PASS, judgement
    assert "a> socket.abort" not in seen(trace)  # nobody knows when the broker would hear of it
    assert not broker.responder.own.broker.queues


def test_it_is_judged_again_from_its_trace(target: TargetUnderTest, trace: TraceWriter) -> None:
    lines = (DECLARED, "a.1 basic.publish q body=m delivery-mode=2", "broker.restart", "b.1 basic.get q")
    judgement = carried_out(target, trace, *lines)
    again = judge(read_trace(trace.path))
    assert (again.verdict, again.exercised) == (judgement.verdict, judgement.exercised)
