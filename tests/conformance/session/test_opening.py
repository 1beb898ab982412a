"""Sessions open connections step by step: what is wished for is said, what is refused is judged, names come again."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.scenarios.applicability import absent_methods, not_applicable, obstacle
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace, sequences
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.promises.capabilities import CAPABILITIES
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, DIALECTS
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.codec.methods_codec import encode
from amqpspec.targets.errors import TargetUnreachable
from tests.handshakes import opening
from tests.patience import patience

DESCRIPTION = TargetDescription("embedded", "amqpspec", "0", DEFAULT_DIALECT.name)
STEPS_AFTER_SOCKET = [
    "a protocol.header 414d515000000901",
    "a connection.start-ok",
    "a connection.tune-ok",
    "a! connection.open",
]


class Recorded:
    """Sequences of commands on one target, judged live and from the trace."""

    def __init__(
        self, address: Address, path: Path, dialect: str = DEFAULT_DIALECT.name, deadline: float = 3.0
    ) -> None:
        description = TargetDescription("embedded", "amqpspec", "0", dialect)
        self.target = TargetUnderTest(address, description, deadline)
        self.path = path

    def run(self, *lines: str) -> SequenceJudgement:
        with TraceWriter(self.path) as trace, Session(self.target, trace, "s") as session:
            for line in lines:
                session.run(parse_command(line))
            live = session.finish()
        (rows,) = sequences(read_trace(self.path))
        assert judge(rows) == live, "offline says the same"
        return live

    def frames(self, connection: str = "a") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [dict(row) for row in read_trace(self.path)]
        return [row for row in rows if row["kind"] == "frame" and row["connection"] == connection]

    def sent(self, method: str) -> dict[str, Any]:
        arguments: dict[str, Any] = next(row for row in self.frames() if row["method"] == method)["arguments"]
        return arguments


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Recorded]:
    with EmbeddedBroker() as broker:
        yield Recorded(broker.address, tmp_path / "t.jsonl")


def test_an_ordinary_connection(embedded: Recorded) -> None:
    assert embedded.run("a.1 basic.qos 1").verdict is Verdict.PASS
    assert [row["method"] for row in embedded.frames()][:8] == [
        "socket.open", "protocol.header", "connection.start", "connection.start-ok", "connection.tune",
        "connection.tune-ok", "connection.open", "connection.open-ok",
    ]  # fmt: skip
    assert embedded.sent("connection.start-ok")["response"] == "***"
    start = next(iter(read_trace(embedded.path)))
    assert (start["virtual_host"], start["user"]) == ("/", "guest")


def test_the_name_of_a_user_that_may_be_a_secret_is_not_recorded(tmp_path: Path) -> None:
    with EmbeddedBroker(user="anna", password="Sesame-4711", vhost="v/1") as broker:
        recorded = Recorded(broker.address, tmp_path / "t.jsonl")
        assert recorded.run("a.1 basic.qos 1", "b connection.open password=Sesame-4712").verdict is Verdict.PASS
    start = next(iter(read_trace(recorded.path)))
    assert (start["virtual_host"], start["user"]) == ("v/1", None)
    assert "Sesame-4711" not in recorded.path.read_text()


def test_wishes_are_said(embedded: Recorded) -> None:
    line = "a connection.open frame-max=8192 channel-max=7 heartbeat=3 mechanism=AMQPLAIN locale=de_DE basic.nack=false"
    assert embedded.run(line, "a.1 queue.declare q exclusive").verdict is Verdict.PASS
    assert embedded.sent("connection.tune-ok") == {"channel_max": 7, "frame_max": 8192, "heartbeat": 3}
    said = embedded.sent("connection.start-ok")
    assert (said["mechanism"], said["response"], said["locale"]) == ("AMQPLAIN", "***", "de_DE")
    assert said["client_properties"]["capabilities"] == {"basic.nack": False}


def test_an_agreed_frame_max_is_kept(embedded: Recorded) -> None:
    judgement = embedded.run(
        "a connection.open frame-max=8192",
        "a.1 queue.declare q exclusive",
        "a.1 basic.publish q body-size=50000",
        "a.1 basic.get q no-ack",
    )
    assert judgement.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("line", "requirement"),
    [
        ("a connection.open password=wrong", "CONN-005"),
        ("a connection.open user=nobody", "CONN-005"),
        ("a connection.open password=wrong authentication-failure-close=false", "CONN-006"),
        ("a connection.open mechanism=NOSUCH", "CONN-007"),
        ("a connection.open nowhere", "CONN-008"),
        ("a connection.open frame-max=0", "CONN-011"),
        ("a connection.open frame-max=100", "CONN-012"),
        ("a connection.open header=414d515000000800", "CONN-003"),
        ("a connection.start-ok response=x", "CONN-027"),
        ("a! connection.open", None),
    ],
)
def test_what_is_refused_is_judged(embedded: Recorded, line: str, requirement: str | None) -> None:
    judgement = embedded.run(line, "a.1 basic.qos 1")
    assert judgement.verdict is Verdict.PASS
    if requirement is not None:
        assert judgement.exercised[requirement]
        assert embedded.frames()[-1]["method"] == "socket.closed", "and nothing more is sent there"
    else:
        assert embedded.frames()[-1]["method"] == "basic.qos-ok", "the steps before it are made as well"


def test_steps_do_not_open_what_was_refused(embedded: Recorded) -> None:
    embedded.run("a connection.start-ok response=x", "a connection.tune-ok", "a! connection.open", "a.1 basic.qos 1")
    assert [row["method"] for row in embedded.frames()].count("socket.open") == 1


def test_a_clear_response_is_recorded(embedded: Recorded) -> None:
    embedded.run("a connection.open password=wrong")
    assert embedded.sent("connection.start-ok")["response"] == "\0guest\0wrong"
    embedded.run("a connection.start-ok response=***")
    assert embedded.sent("connection.start-ok")["response"] != "***"


@pytest.mark.parametrize(
    "end",
    [
        ("a connection.close",),
        ("a socket.abort",),
        ("a! connection.open",),
        ("a.1! channel.open",),
        ("a connection.close", "a! connection.close"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("again", ["connection.open", "socket.open"])
def test_a_letter_can_be_used_again(embedded: Recorded, end: tuple[str, ...], again: str) -> None:
    judgement = embedded.run(
        "a.1 queue.declare own exclusive",
        "a.2 basic.qos 3",
        *end,
        f"a {again}",
        *(STEPS_AFTER_SOCKET if again == "socket.open" else []),
        "a.1 queue.declare own exclusive",
        "a.2 basic.qos 4",
    )
    assert judgement.failures == ()
    assert [row["method"] for row in embedded.frames()].count("socket.open") == 2
    assert [row["method"] for row in embedded.frames() if row["channel"] == 2][-1] == "basic.qos-ok"


def test_an_open_connection_is_not_opened_again(embedded: Recorded) -> None:
    assert embedded.run("a.1 basic.qos 1", "a connection.open frame-max=9000").verdict is Verdict.PASS
    assert [row["method"] for row in embedded.frames()].count("socket.open") == 1


def test_a_silent_client_waits_for_its_end(embedded: Recorded) -> None:
    began = time.monotonic()
    judgement = embedded.run(
        "b connection.open heartbeat=1", "a connection.open heartbeat=1", "a socket.silence", "b.1 basic.qos 1"
    )
    assert judgement.verdict is Verdict.PASS
    assert judgement.exercised["CONN-022"] == 1
    assert 2 < time.monotonic() - began < patience(5)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_let_in(tmp_path: Path, dialect: str) -> None:
    with EmbeddedBroker(DIALECTS[dialect]) as broker:
        assert Recorded(broker.address, tmp_path / "t.jsonl", dialect).run("a.1 basic.qos 1").verdict is Verdict.PASS


# ---------------------------------------------------------------------------------------- brokers that hang


@contextmanager
def falls_silent(replies: int) -> Iterator[Address]:
    """A broker that says the first few things of a handshake, each after something has come, and then nothing."""
    said = [encode(method) for method in opening("a") if not method.sent][:replies]
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            for octets in said:
                client.recv(65_536)
                client.sendall(octets)
            done.wait()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield Address("127.0.0.1", listener.getsockname()[1], "guest", "guest")
    finally:
        done.set()
        listener.close()
        thread.join()


@pytest.mark.parametrize(
    ("replies", "missing"), [(0, "connection.start"), (1, "connection.tune"), (2, "connection.open-ok")]
)
def test_silence_of_the_broker_gives_a_verdict_in_time(tmp_path: Path, replies: int, missing: str) -> None:
    began = time.monotonic()
    with falls_silent(replies) as address:
        judgement = Recorded(address, tmp_path / "t.jsonl", deadline=0.3).run("a.1 basic.qos 1")
    (failure,) = judgement.failures
    assert failure.detail == missing
    assert time.monotonic() - began < patience(3)


def test_only_tcp_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(TargetUnreachable):
        Recorded(address, tmp_path / "t.jsonl").run("a socket.open")


# ------------------------------------------------------------------------------------------- plans, capabilities


def test_a_plan_opens_connections_as_a_session_does() -> None:
    plan = Plan(DEFAULT_DIALECT)
    for line in (
        "a connection.open frame-max=8192",
        "b connection.open nowhere",
        "c connection.open password=wrong",
        "d connection.tune-ok",
        "e socket.open",
        "f.1 basic.qos 1",
        "f connection.close",
        "f connection.open consumer-cancel-notify=false",
    ):
        plan.carry_out(parse_command(line))
    connections = plan.broker.connections
    assert {name for name in connections if plan.connected(name)} == {"a", "f"}
    assert connections["a"].frame_max == 8192
    assert connections["d"].state is ConnectionState.OPENING
    assert connections["e"].state is ConnectionState.AWAITING_HEADER
    assert not connections["f"].is_told_of_cancels


def under_test(*advertised: str) -> TargetUnderTest:
    return TargetUnderTest(Address("localhost"), DESCRIPTION, capabilities=frozenset(advertised))


def test_what_is_not_advertised_is_not_applicable() -> None:
    everything = under_test(*CAPABILITIES)
    assert not any("advertise" in reason for reason in not_applicable(everything).values())
    assert absent_methods(everything) == frozenset()
    target = under_test(*(set(CAPABILITIES) - {"basic.nack", "consumer_priorities"}))
    reasons = not_applicable(target)
    assert reasons["CAP-002"] == "the broker does not advertise basic.nack"
    assert reasons["PRIORITY-001"] == "the broker does not advertise consumer_priorities"
    assert "CAP-001" not in reasons and "ACK-001" not in reasons
    assert absent_methods(target) == {"basic.nack"}
    for scenario in all_scenarios():
        if any(command.method == "basic.nack" for command in scenario.commands):
            assert obstacle(scenario, target) is not None


def test_a_target_of_which_nothing_is_known_is_asked_for_everything() -> None:
    assert absent_methods(TargetUnderTest(Address("localhost"), DESCRIPTION)) == frozenset()


def test_what_was_tried_and_does_not_work_is_told_so() -> None:
    tried = {"x-message-ttl": "x-message-ttl: tried, no effect", "basic.nack": "basic.nack: tried, refused"}
    text = replace(DESCRIPTION, dialect="amqp-0-9-1")
    under = TargetUnderTest(Address("127.0.0.1", 1), text, capabilities=frozenset(), not_working=tried)
    reasons = not_applicable(under)
    assert (reasons["TTL-002"], reasons["ACK-014"]) == (tried["x-message-ttl"], tried["basic.nack"])
    assert "TTL-001" not in reasons, "of what was not tried nothing is said"
