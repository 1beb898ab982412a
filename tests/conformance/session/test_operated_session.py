"""Sessions with an operator: what an operator makes is there for the sequence, and gone after it, however it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace, sequences
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Method, OperatorAction
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.operator import PeerOf, nobody, undoing
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.errors import OperatorError, OperatorMissing

MADE = (
    "broker operator.add-user lim password=secret",
    "broker operator.add-vhost v",
    "broker operator.set-permissions lim virtual-host=v configure=^q write=.* read=.*",
    "broker operator.set-permissions lim configure=.*",
    "broker operator.set-alarm",
)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def target(broker: EmbeddedBroker) -> TargetUnderTest:
    description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
    return TargetUnderTest(broker.address, description, 2.0, broker.operator())


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceWriter]:
    with TraceWriter(tmp_path / "trace.jsonl") as writer:
        yield writer


def model_of(broker: EmbeddedBroker) -> ServedBroker:
    return broker.responder.own.broker


def send(session: Session, *lines: str) -> None:
    for line in lines:
        session.run(parse_command(line))


def test_what_he_makes_carries_the_prefix_and_is_undone(
    broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter
) -> None:
    with Session(target, trace, "s") as session:
        send(session, *MADE)
        model = model_of(broker)
        (user,) = model.users.values()
        prefix = user.name.removesuffix("lim")
        assert prefix.startswith("amqpspec-")
        assert user.permissions == {f"{prefix}v": (f"^{prefix}q", ".*", ".*"), "/": (".*", "", "")}
        assert model.vhosts[f"{prefix}v"] and model.alarm
    assert session.finish().verdict is Verdict.PASS
    assert not model.users and not model.alarm and not model.vhosts.get(f"{prefix}v")


class Noting:
    """An operator that does nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        self.asked += [(action.name, action.arguments["virtual_host"]) for action in actions]

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        self.carry_out(undoing(actions), nobody)


def test_policies_and_permissions_hold_in_the_virtual_host_of_the_target(
    target: TargetUnderTest, trace: TraceWriter
) -> None:
    operator = Noting()
    elsewhere = replace(target, operator=operator, address=replace(target.address, vhost="other"))
    policies = [f"broker operator.set-policy p queue=q max-length=1{each}" for each in ("", " virtual-host=v")]
    with Session(elsewhere, trace, "s") as session:
        send(session, "broker operator.set-permissions u", *policies, "broker operator.clear-policy p")
    hosts = [(name.partition(".")[2], host.rpartition("-")[2]) for name, host in operator.asked]
    assert hosts == [
        ("set-permissions", "other"), ("set-policy", "other"), ("set-policy", hosts[2][1]), ("clear-policy", "other"),
        ("clear-policy", hosts[2][1]),
    ]  # fmt: skip
    assert hosts[2][1].endswith("v")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_it_is_undone_after_a_failure_or_an_interruption(
    error: type[BaseException], broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter
) -> None:
    with pytest.raises(error), Session(target, trace, "s") as session:
        send(session, *MADE, "a.1 basic.publish nowhere body=m1")
        raise error
    model = model_of(broker)
    assert not model.users and not model.alarm
    assert [name for name, exists in model.vhosts.items() if exists] == ["/"]


class Interrupted:
    """An operator that is interrupted the first time that it undoes something."""

    def __init__(self, target: TargetUnderTest) -> None:
        assert target.operator is not None
        self._operator = target.operator
        self.undone = 0

    def carry_out(self, methods: Sequence[Method], peer_of: PeerOf) -> None:
        self._operator.carry_out(methods, peer_of)

    def undo(self, methods: Sequence[Method]) -> None:
        self.undone += 1
        if self.undone == 1:
            raise KeyboardInterrupt
        self._operator.undo(methods)


def test_an_interruption_while_it_is_undone_leaves_nothing_behind(
    broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter
) -> None:
    operator = Interrupted(target)
    with pytest.raises(KeyboardInterrupt), Session(replace(target, operator=operator), trace, "s") as session:
        send(session, *MADE[:4], "a.1 queue.declare q durable")
    model = model_of(broker)
    assert operator.undone == 2
    assert not model.users and not model.queues


class Failing(Interrupted):
    """An operator who cannot undo anything."""

    def undo(self, methods: Sequence[Method]) -> None:
        raise OperatorError("no node")


def test_queues_are_deleted_also_where_the_operator_fails(
    broker: EmbeddedBroker, target: TargetUnderTest, trace: TraceWriter
) -> None:
    with (
        pytest.raises(OperatorError, match="no node"),
        Session(replace(target, operator=Failing(target)), trace, "s") as session,
    ):
        send(session, MADE[0], "a.1 queue.declare q durable")
    assert not model_of(broker).queues


def test_without_an_operator_it_is_an_error(target: TargetUnderTest, trace: TraceWriter) -> None:
    unmanaged = replace(target, operator=None)
    with Session(unmanaged, trace, "s") as session, pytest.raises(OperatorMissing, match="set-alarm"):
        send(session, "broker operator.set-alarm")


def test_a_blocked_connection_is_not_waited_for(target: TargetUnderTest, trace: TraceWriter) -> None:
    """All commands on it are answered when the alarm is over; until then nothing is overdue."""
    with Session(target, trace, "s") as session:
        send(session, "a connection.open connection.blocked=false", "a.1 queue.declare q durable")
        send(session, "broker operator.set-alarm", "a.1 basic.publish q body=m1", "a.1 queue.declare q passive")
        connection = session.judge.questions.connection("a")
        assert connection is not None and not connection.answers
        send(session, "b.1 queue.declare q passive", "broker operator.clear-alarm", "a.1 basic.get q")
        judgement = session.finish()
    assert (judgement.verdict, session.overdue) == (Verdict.PASS, 0)
    assert judgement.exercised["CAP-004"]


def test_a_limited_user_is_not_asked_what_he_may_not_tell(target: TargetUnderTest, trace: TraceWriter) -> None:
    """Barriers look at queues; on the connection of a user who may not, that would close the channel."""
    with Session(target, trace, "s") as session:
        send(session, MADE[0], "broker operator.set-permissions lim write=.*", "a.1 queue.declare q durable")
        send(session, "b connection.open user=lim password=secret")
        send(session, "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2", "a.1 basic.get q")
        send(session, "b.1 basic.qos 2")
        judgement = session.finish()
    assert judgement.verdict is Verdict.PASS


def test_the_recorded_trace_says_the_same(target: TargetUnderTest, trace: TraceWriter, tmp_path: Path) -> None:
    lines = ["a.1 queue.declare q durable", *MADE[:3], "b connection.open v user=lim password=secret",
             "b.1 queue.declare other durable", "a.2 basic.get q", "broker operator.close-connection a reason=enough",
             "broker operator.delete-vhost v"]  # fmt: skip
    with Session(target, trace, "s") as session:
        send(session, *lines)
        live = session.finish()
    (rows,) = sequences(read_trace(tmp_path / "trace.jsonl"))
    again = judge(rows)
    assert (live.verdict, dict(live.exercised)) == (again.verdict, dict(again.exercised))
    assert live.verdict is Verdict.PASS and live.exercised["CONN-023"] == 2
