"""Each faulty variant is caught by the requirement that it names, with a short sequence; a sound broker passes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.protocol.methods import Content, Method, event_of
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.embedded.hooks import Chapter
from amqpspec.targets.faults.all_faults import FAULTS, UnknownFault, fault_named
from tests.targets.faults.fault_lines import LINES
from tests.targets.faults.timeout_lines import TIMEOUT_LINES

#: A channel of each connection that nothing but barriers uses.
BARRIER_CHANNEL = 9
PATIENCE = 60.0
#: Seconds for a frame that is owed before the barrier decides; too short a time makes no wrong verdict.
BRIEFLY = 0.2


@dataclass(frozen=True)
class Step:
    """One command, on a channel that is opened when it is first used."""

    method: str
    arguments: dict[str, Any] = field(default_factory=dict)
    connection: str = "a"
    channel: int = 1


def do(method: str, on: str = "a.1", **arguments: Any) -> Step:
    connection, _, channel = on.partition(".")
    return Step(method, arguments, connection, int(channel))


def declare(**arguments: Any) -> Step:
    return do("queue.declare", queue="q", **arguments)


QUORUM = {"durable": True, "arguments": {"x-queue-type": "quorum"}}


def publish(count: int, exchange: str = "", routing_key: str = "q", **arguments: Any) -> list[Step]:
    return [do("basic.publish", exchange=exchange, routing_key=routing_key, **arguments)] * count


def get(count: int = 1, no_ack: bool = False, on: str = "a.1") -> list[Step]:
    return [do("basic.get", on, queue="q", no_ack=no_ack)] * count


def consume(tag: str = "t", on: str = "a.1", queue: str = "q", **arguments: Any) -> Step:
    return do("basic.consume", on, queue=queue, consumer_tag=tag, **arguments)


def ack(tag: int, multiple: bool = False) -> Step:
    return do("basic.ack", delivery_tag=tag, multiple=multiple)


def nack(tag: int, multiple: bool = False, requeue: bool = True) -> Step:
    return do("basic.nack", delivery_tag=tag, multiple=multiple, requeue=requeue)


def reject(tag: int, requeue: bool) -> Step:
    return do("basic.reject", delivery_tag=tag, requeue=requeue)


def qos(count: int) -> Step:
    return do("basic.qos", prefetch_count=count)


def bind(queue: str, exchange: str, key: str = "") -> list[Step]:
    return [do("queue.declare", queue=queue), do("queue.bind", queue=queue, exchange=exchange, routing_key=key)]


CLOSE = do("channel.close")
SELECT = do("confirm.select")
#: shows that all messages have arrived in the queue
COUNT = do("queue.declare", queue="q", passive=True)
CANCEL = do("basic.cancel", consumer_tag="t")
RECOVER = do("basic.recover", requeue=True)

SEQUENCES: dict[str, list[Step]] = {
    "ack-acks-nothing": [declare(), qos(1), consume(), *publish(2), ack(1)],
    "multiple-ack-ignored": [declare(), qos(2), consume(), *publish(4), ack(2, multiple=True)],
    "multiple-zero-ignored": [declare(), qos(2), consume(), *publish(3), ack(0, multiple=True)],
    "multiple-acks-too-many": [declare(), *publish(3), *get(3), ack(2, multiple=True), ack(3)],
    "nack-multiple-single": [declare(), consume(), *publish(2), nack(2, multiple=True)],
    "unknown-tag-accepted": [ack(1)],
    "double-ack-accepted": [declare(), *publish(1), *get(), ack(1), ack(1)],
    "tag-zero-accepted": [declare(), *publish(1), *get(), reject(0, requeue=False)],
    "unknown-tag-closes-connection": [nack(7)],
    "wrong-reply-code": [ack(1)],
    "message-lost-on-requeue": [declare(), consume(), *publish(1), nack(1, multiple=True)],
    "message-lost-on-reject": [declare(), consume(), *publish(1), reject(1, requeue=True)],
    "reject-requeues-always": [declare(), *publish(1), *get(), reject(1, requeue=False), *get()],
    "requeue-at-tail-on-classic": [declare(), *publish(2), *get(), reject(1, requeue=True), COUNT, consume()],
    "requeue-order-reversed-on-quorum": [
        declare(**QUORUM), *publish(2), *get(2), nack(2, multiple=True), COUNT, consume()
    ],
    "recover-ok-missing": [RECOVER],
    "recover-forgets-consumer-deliveries": [declare(), consume(), *publish(1), RECOVER],
    "redelivered-never-set": [declare(), *publish(1), *get(), nack(1), *get()],
    "redelivered-always-set": [declare(), consume(), *publish(1)],
    "delivery-tags-reused": [declare(), *publish(2), *get(2)],
    "delivery-tags-per-consumer": [declare(), consume("t"), consume("u"), *publish(2)],
    "content-altered": [declare(), consume(), *publish(1)],
    "properties-lost": [declare(), consume(), *publish(1)],
    "message-delivered-twice": [declare(), consume(), *publish(1)],
    "get-count-off-by-one": [declare(), *publish(1), *get()],
    "get-empty-with-messages": [SELECT, declare(), *publish(1), *get()],
    "no-ack-keeps-message": [declare(), consume(no_ack=True), *publish(1), CLOSE, consume("u", "a.2")],
    "get-ignores-no-ack": [declare(), *publish(1), *get(no_ack=True), CLOSE, *get(on="a.2")],
    "tag-reuse-accepted": [declare(), consume(), consume()],
    "missing-queue-consumed": [consume(queue="nowhere")],
    "exclusive-consumer-not-exclusive": [declare(), consume(exclusive=True), consume("u", on="b.1")],
    "delivery-after-cancel": [declare(), consume(), CANCEL],
    "cancel-requeues-unacked": [declare(), consume(), *publish(1), CANCEL, *get()],
    "cancel-drops-unacked": [declare(), consume(), *publish(1), CANCEL, ack(1)],
    "prefetch-off-by-one": [declare(), qos(1), consume(), *publish(2)],
    "wrong-reply-text": [ack(1)],
    "wrong-method-id-in-close": [ack(1)],
    "message-lost-on-channel-close": [declare(), consume(), *publish(1), consume("u", "a.2"), CLOSE],
    "declare-count-wrong": [declare()],
    "queue-inequivalence-accepted": [declare(), declare(durable=True)],
    "purge-removes-unacked": [declare(), *publish(1), *get(), do("queue.purge", queue="q")],
    "routing-ignores-key": [
        *bind("q", "amq.direct", "k"), *bind("r", "amq.direct", "l"), consume(), *publish(1, "amq.direct", "l")
    ],
    "fanout-misses-one": [*bind("q", "amq.fanout"), consume(), *publish(1, "amq.fanout")],
    "confirm-missing": [SELECT, declare(), *publish(1)],
    "confirm-twice": [SELECT, declare(), *publish(1)],
    "return-missing": publish(1, mandatory=True),
}  # fmt: skip


class Examination:
    """Carries out steps against a broker, in lockstep, and judges every frame."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._bodies = 0
        self.acceptor = acceptor_for(DEFAULT_DIALECT)

    def observe(self, method: Method) -> None:
        if method.sent:
            self.acceptor.sent(method)
        else:
            self.acceptor.received(method)

    def run(self, steps: list[Step]) -> list[Failure]:
        for step in steps:
            if not self._client_has(step.connection):
                # what a client does before the first frame
                for method, arguments in (("socket.open", {}), ("protocol.header", {"octets": HEADER_0_9_1})):
                    self.observe(event_of(step.connection, 0, method, arguments, sent=True))
                self._client.open(step.connection)
                self._send(step.connection, BARRIER_CHANNEL, "channel.open")
                self._await(step.connection, "channel.open-ok")
            if step.channel not in self._open_channels(step.connection):
                self._send(step.connection, step.channel, "channel.open")
                self._barrier()
            self.acceptor.command = step.method
            self._send(step.connection, step.channel, step.method, **step.arguments)
            while self.acceptor.owes() and self._client.receive(BRIEFLY) is not None:
                pass
            self._barrier()
            if self.acceptor.failures:
                break
        return self.acceptor.failures

    def _client_has(self, connection: str) -> bool:
        known = self.acceptor.broker.connections.get(connection)
        return known is not None and known.state is ConnectionState.OPEN

    def _open_channels(self, connection: str) -> set[int]:
        channels = self.acceptor.broker.channels.values()
        return {c.number for c in channels if c.connection == connection and c.state is ChannelState.OPEN}

    def _send(self, connection: str, channel: int, method: str, **arguments: Any) -> None:
        content = None
        if method == "basic.publish":
            self._bodies += 1
            content = Content({"content_type": "text/plain"}, f"message {self._bodies}".encode())
        self._client.send(event_of(connection, channel, method, arguments, True, content))

    def _barrier(self) -> None:
        """A round trip on each connection: the embedded broker has said all that it has to say before that."""
        for connection in list(self.acceptor.broker.connections):
            if self._client_has(connection) and not self.acceptor.finished:
                self._send(connection, BARRIER_CHANNEL, "channel.flow", active=True)
                self._await(connection, "channel.flow-ok")
        self.acceptor.quiescent()

    def _await(self, connection: str, method: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not self.acceptor.finished:
            event = self._client.receive(deadline - time.monotonic())
            if event is not None and (event.connection, event.name) == (connection, method):
                return
        assert self.acceptor.failures, f"{method} did not come"


def examine(fault: str | None, steps: list[Step]) -> Examination:
    with EmbeddedBroker(DEFAULT_DIALECT, fault=fault) as broker:
        with WireClient(broker.address, observer=lambda event: examination.observe(event)) as client:
            examination = Examination(client)
            examination.run(steps)
        return examination


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_fault_is_caught_by_its_requirement(name: str) -> None:
    failures = examine(name, SEQUENCES[name]).acceptor.failures
    assert [failure.requirement for failure in failures[:1]] == [FAULTS[name].requirement], failures


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_sound_broker_passes_what_catches_a_fault(name: str) -> None:
    acceptor = examine(None, SEQUENCES[name]).acceptor
    assert (acceptor.verdict, acceptor.failures, acceptor.reason) == (Verdict.PASS, [], None)


def test_every_fault_has_a_sequence_and_the_other_way_round() -> None:
    assert {*SEQUENCES, *LINES, *TIMEOUT_LINES} == set(FAULTS)
    assert len(SEQUENCES) + len(LINES) + len(TIMEOUT_LINES) == len(FAULTS)


def run_lines(
    fault: str | None, name: str, lines: str, trace_file: Path, patience: float = BRIEFLY
) -> SequenceJudgement:
    """The commands that show the fault `name`, in lockstep by a session, on the embedded broker that has `fault`."""
    (file,) = parse_command_file(lines.replace("        ", ""))
    dialect = dialect_named(FAULTS[name].dialect)
    clock = FastForwardClock()
    with EmbeddedBroker(dialect, fault=fault, clock=clock) as broker, TraceWriter(trace_file) as trace:
        description = TargetDescription("embedded", "amqpspec", "0", dialect.name)
        target = TargetUnderTest(
            broker.address, description, deadline=patience, operator=broker.operator(), clock=clock,
            faults=broker.faults(),
        )  # fmt: skip
        with Session(target, trace, name) as session:
            for command in file.commands:
                session.run(command)
            return session.finish()


@pytest.mark.parametrize("name", LINES)
def test_a_fault_of_topology_or_protocol_is_caught_by_its_requirement(name: str, tmp_path: Path) -> None:
    failures = run_lines(name, name, LINES[name], tmp_path / "trace.jsonl").failures
    assert [failure.requirement for failure in failures[:1]] == [FAULTS[name].requirement], failures


@pytest.mark.parametrize("name", LINES)
def test_the_sound_broker_passes_the_lines(name: str, tmp_path: Path) -> None:
    judgement = run_lines(None, name, LINES[name], tmp_path / "trace.jsonl")
    assert (judgement.verdict, judgement.failures, judgement.reason) == (Verdict.PASS, (), None)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_what_it_is(name: str) -> None:
    fault = FAULTS[name]
    assert fault.name == name
    assert fault.requirement in requirements()
    assert fault.defect.endswith(".") and fault.defect[0] != " "
    served = None if fault.broker_type.__name__ == "ServedBroker" else fault
    hooks = (fault.input_hook, fault.timeout_hook, fault.output_hook, served)
    assert sum(hook is not None for hook in hooks) == 1


def test_an_unknown_fault_is_told_with_what_comes_close() -> None:
    with pytest.raises(UnknownFault, match="unknown fault 'double-ack-acepted': did you mean double-ack-accepted"):
        fault_named("double-ack-acepted")
    with pytest.raises(UnknownFault, match="`amqpspec faults` lists them"):
        EmbeddedBroker(fault="zzzz")


def test_two_faults_of_one_name_are_refused() -> None:
    chapter = Chapter()

    def hook(broker: object, method: Method) -> Iterator[Method]:
        yield method

    chapter.on_output("same", "ACK-001", "It is wrong.", "basic.deliver")(hook)
    with pytest.raises(ValueError, match="two faults are named same"):
        chapter.on_output("same", "ACK-002", "It is wrong again.", "basic.deliver")(hook)
