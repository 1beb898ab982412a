"""A session: one sequence on one target, whatever the target does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.session import Session, UnsendableCommand
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, read_trace
from amqpspec.conformance.verdicts.events import CommandIssued, Event, EventObserved
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.verdict import Shape, Verdict
from amqpspec.model.protocol.methods import NO_HEARTBEAT, Method, SocketEvent, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.embedded.connection import ClientConnection
from amqpspec.targets.embedded.hooks import Chapter
from amqpspec.targets.embedded.loop import Loop
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.errors import TargetUnreachable
from tests.patience import patience

DESCRIPTION = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
Open = Callable[..., Session]


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceWriter]:
    with TraceWriter(tmp_path / "trace.jsonl") as writer:
        yield writer


@contextmanager
def broker(fault: str | None = None) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(fault=fault) as running:
        yield running


def under_test(broker: EmbeddedBroker, deadline: float = 2.0) -> TargetUnderTest:
    return TargetUnderTest(broker.address, DESCRIPTION, deadline)


def run(broker: EmbeddedBroker, trace: TraceWriter, *lines: str, **options: Any) -> SequenceJudgement:
    with Session(under_test(broker, options.pop("deadline", 2.0)), trace, "s", **options) as session:
        for line in lines:
            session.run(parse_command(line))
    return session.finish()


def rows(trace: TraceWriter) -> list[TraceRow]:
    return list(read_trace(trace.path))


def test_connections_and_channels_open_themselves(trace: TraceWriter) -> None:
    with broker() as target:
        judgement = run(target, trace, "a.1 basic.qos 1", "b.7 basic.qos 2", "b.7 basic.qos 3")
    assert judgement.verdict is Verdict.PASS
    opened = [(r["connection"], r["channel"]) for r in rows(trace) if r.get("method") == "channel.open"]
    assert opened == [("a", 1), ("b", 7)]


def test_a_line_as_it_stands_is_sent_to_a_closed_channel(trace: TraceWriter) -> None:
    with broker() as target:
        judgement = run(target, trace, "a.1 basic.qos 1", "a.2! basic.qos 1")
    assert judgement.verdict is Verdict.PASS, "the broker closes the connection, as the model has it"
    assert judgement.exercised["CHAN-001"] == 1


def test_what_the_broker_closed_stays_closed_until_it_is_opened(trace: TraceWriter) -> None:
    with broker() as target:
        judgement = run(target, trace, "a.1 basic.ack 9", "a.1 channel.open", "a.1 basic.qos 1", "a.1 basic.recover",
                        "a.1 basic.qos 1", "b.1 basic.qos 1")  # fmt: skip
    assert judgement.verdict is Verdict.PASS
    assert judgement.exercised["ACK-006"] == 1
    assert judgement.exercised["RECOVER-003"] == 1, "this one ends the connection"
    methods = [(r["connection"], r["method"]) for r in rows(trace) if r["kind"] == "frame" and r["direction"] == "sent"]
    after = methods[methods.index(("a", "connection.close-ok")) + 1 :]
    assert {connection for connection, _ in after} == {"b"}, "nothing can be sent on it any more"


def test_capabilities_of_ones_own(trace: TraceWriter) -> None:
    lines = ("a.1 queue.declare q", "a.1 basic.consume q tag=t", "b.1 queue.delete q")
    with broker() as target:
        told = run(target, trace, *lines)
        silent = run(target, trace, "a connection.open consumer-cancel-notify=false", *lines)
    assert told.verdict is silent.verdict is Verdict.PASS
    assert (told.exercised.get("CANCEL-007", 0), silent.exercised.get("CANCEL-007", 0)) == (1, 0)
    assert silent.exercised["CANCEL-010"] == 1


def test_names_of_two_sessions_do_not_meet(trace: TraceWriter, tmp_path: Path) -> None:
    with broker() as target, TraceWriter(tmp_path / "other.jsonl") as other:
        with Session(under_test(target), trace, "one") as one, Session(under_test(target), other, "two") as two:
            for session in (one, two):
                session.run(parse_command("a.1 queue.declare q durable"))
            one.run(parse_command("a.1 basic.publish q body=m1"))
            two.run(parse_command("a.1 basic.get q"))
            one.run(parse_command("a.1 basic.get q"))
        assert one.finish().verdict is two.finish().verdict is Verdict.PASS


def left(target: EmbeddedBroker) -> list[str]:
    model = target.responder.own.broker
    return [*model.queues, *(name for name in model.exchanges if name and not name.startswith("amq."))]


@pytest.mark.parametrize(
    "lines",
    [
        ("a.1 queue.declare q durable", "a.1 exchange.declare x direct", "a.1 queue.bind q x"),
        ("a.1 queue.declare q durable", "a connection.close"),
        ("a.1 queue.declare q durable", "a socket.abort"),
        ("a.1 queue.declare q durable", "a.1 basic.recover"),
        ("a.1 queue.declare q durable", "a.1 queue.declare q exclusive"),
        ("a.1 queue.declare q durable", "a.1 basic.consume q tag=t exclusive", "a.1 basic.publish q body=m"),
        ("a.1 queue.declare", "a.1 basic.publish amq.gen-x"),
        ("a.1 queue.declare q durable nowait &",),
    ],
)
@pytest.mark.parametrize("end", ["normal", "exception", "interrupted"])
def test_everything_made_is_deleted(trace: TraceWriter, lines: tuple[str, ...], end: str) -> None:
    error = {"exception": RuntimeError, "interrupted": KeyboardInterrupt}.get(end)
    with broker() as target:
        try:
            with Session(under_test(target), trace, "s") as session:
                for line in lines:
                    session.run(parse_command(line))
                if error is not None:
                    raise error
        except (RuntimeError, KeyboardInterrupt):
            assert error is not None
        # queues that the broker named are the business of the connection that asked for them
        assert [name for name in left(target) if not name.startswith("amq.")] == []
    last = rows(trace)[-1]
    assert last["kind"] == "end"
    assert last["verdict"] == ("inconclusive" if error else "pass")


def test_a_frame_that_never_comes_costs_one_deadline(trace: TraceWriter) -> None:
    with broker("recover-ok-missing") as target:
        began = time.monotonic()
        judgement = run(target, trace, "a.1 queue.declare q", "a.1 basic.recover requeue", "a.1 basic.qos 1",
                        "a.1 basic.qos 1", deadline=0.3)  # fmt: skip
        assert 0.3 <= time.monotonic() - began < patience(2.0)
    (failure,) = judgement.failures
    assert (failure.requirement, failure.shape) == ("RECOVER-001", Shape.MISSING)
    marks = [(row["mark"], row.get("waited")) for row in rows(trace) if row["kind"] == "mark"]
    assert marks[-1] == ("overdue", 0.3)
    commands = [row["text"] for row in rows(trace) if row["kind"] == "command"]
    assert commands[-1] == "a.1 basic.recover requeue", "nothing after it can be judged"


def test_what_the_judge_takes_is_not_the_brokers_time(trace: TraceWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine each frame takes the judge longer than the broker had for all of them."""
    passed = count(0.0, 100.0)
    clock = SimpleNamespace(monotonic=lambda: next(passed))
    monkeypatch.setattr("amqpspec.conformance.session.conversation.time", clock)
    with broker() as target:
        judgement = run(target, trace, "a.1 queue.declare q", "a.1 basic.consume q tag=t no-ack",
                        "a.1 basic.publish q body=m1", "a.1 basic.get q")  # fmt: skip
    assert judgement.verdict is Verdict.PASS
    assert [row for row in rows(trace) if row.get("mark") == "overdue"] == []


def test_a_login_has_the_time_that_logins_take(trace: TraceWriter) -> None:
    chapter = Chapter()

    @chapter.on_output("untuned", "CONN-001", "", "connection.tune")
    def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
        return ()

    patience = Patience(0.05, login=0.02)
    with EmbeddedBroker(fault=chapter.faults["untuned"]) as target:
        judgement = run(target, trace, "a.1 basic.qos 1", patience=patience)
    assert [failure.detail for failure in judgement.failures] == ["connection.tune"]
    waited = [row["waited"] for row in rows(trace) if row.get("mark") == "overdue"]
    assert waited == [patience.login_deadline] and waited[0] > patience.deadline


@pytest.mark.parametrize(("reason", "heard"), [(NO_HEARTBEAT, 2), ("the broker ended the stream", 3)])
def test_where_the_client_gives_up_no_login_was_slow(
    reason: str, heard: int, trace: TraceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins: list[float] = []
    monkeypatch.setattr(Patience, "waited_for_login", lambda self, seconds: logins.append(seconds))
    with broker() as target, Session(under_test(target), trace, "s") as session:
        receive = session._conversation.carrier.receive

        def receive_an_end(timeout: float) -> TraceEvent | None:
            event = receive(timeout)
            if event is None or event.name != "connection.open-ok":
                return event
            return SocketEvent("a", 0, "socket.closed", {"reason": reason}, sent=False)

        monkeypatch.setattr(session._conversation.carrier, "receive", receive_an_end)
        session.run(parse_command("a connection.open"))
    assert len(logins) == heard


def test_a_broker_that_goes_away(trace: TraceWriter) -> None:
    with broker() as target:
        with Session(under_test(target, 0.5), trace, "s") as session:
            session.run(parse_command("a.1 queue.declare q durable"))
            target.stop()
            began = time.monotonic()
            for line in ("a.1 basic.get q", "a.1 basic.qos 1"):
                session.run(parse_command(line))
        assert time.monotonic() - began < patience(15.0)
    assert session.finish().verdict is Verdict.FAIL
    assert "socket.closed" in session.finish().failures[0].observed


def test_a_broker_that_takes_back_what_a_connection_held_when_the_client_hangs_up(
    trace: TraceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen of LavinMQ: it answers connection.close, and does the rest when the client has closed the TCP connection."""
    handle = Loop._handle

    def answer_only(loop: Loop, client: ClientConnection, item: Any) -> None:
        if getattr(item, "name", "") == "connection.close":
            client.send(Method(client.name, 0, "connection.close-ok", {}, sent=False))
            client.flush()
        else:
            handle(loop, client, item)

    monkeypatch.setattr(Loop, "_handle", answer_only)
    with broker() as target:
        judgement = run(
            target, trace, "a.1 queue.declare q exclusive", "b.1 queue.declare r", "b.1 basic.publish r",
            "a.1 basic.get r", "a connection.close", "b.1 basic.get r", "b.2 queue.declare q passive",
        )  # fmt: skip
    assert judgement.verdict is Verdict.PASS, judgement.failures
    assert judgement.exercised["QUEUE-020"], "the exclusive queue is gone"


def test_a_broker_that_is_not_there(trace: TraceWriter) -> None:
    with broker() as target:
        address = target.address
    with (
        pytest.raises(TargetUnreachable),
        Session(TargetUnderTest(address, DESCRIPTION), trace, "s") as session,
    ):
        session.run(parse_command("a.1 basic.qos 1"))
    assert [row["kind"] for row in rows(trace)] == ["start", "command", "end"]
    assert rows(trace)[-1]["verdict"] == "inconclusive"


def test_wrong_credentials_do_not_reach_the_trace(trace: TraceWriter) -> None:
    with broker() as target:
        wrong = Address(target.address.host, target.address.port, "guest", "Sesame-4711")
        with Session(TargetUnderTest(wrong, DESCRIPTION), trace, "s") as session:
            session.run(parse_command("a.1 basic.qos 1"))
    # it is for the broker to know that they are wrong; the judge takes the target's for right
    (failure,) = session.finish().failures
    assert (failure.requirement, failure.detail) == ("CONN-010", "connection.close in place of connection.tune")
    assert "Sesame" not in str(failure)
    text = trace.path.read_text()
    assert "Sesame" not in text and '"response":"***"' in text


@pytest.mark.parametrize(
    "line",
    [
        "a.1 basic.ack 18446744073709551616",
        "a.1 basic.ack -1",
        "a.1 basic.qos 65536",
        f"a.1 queue.declare {'q' * 300}",
        "a.1 queue.declare q x-n=9223372036854775808",
        "a.1 basic.publish q priority=256",
        f"a connection.open virtual-host={'v' * 300}",
    ],
)
def test_what_no_octets_can_express(trace: TraceWriter, line: str) -> None:
    with broker() as target:
        with pytest.raises(UnsendableCommand) as caught, Session(under_test(target), trace, "s") as session:
            session.run(parse_command("b.1 queue.declare q"))
            session.run(parse_command(line))
        assert str(caught.value).startswith(line.split()[0])
        assert "\n" not in str(caught.value)
        assert left(target) == []
    assert rows(trace)[-1]["verdict"] == "inconclusive"


def test_lines_in_flight_are_sent_before_the_first_is_answered(trace: TraceWriter) -> None:
    with broker() as target:
        judgement = run(target, trace, "a.1 queue.declare q", "a.1 basic.publish q body=m1 &", "a.1 basic.get q &",
                        "a.1 basic.qos 1")  # fmt: skip
    assert judgement.verdict is Verdict.PASS
    frames = [(r["direction"], r["method"]) for r in rows(trace) if r["kind"] == "frame"]
    first = frames.index(("sent", "basic.publish"))
    assert frames[first : first + 3] == [("sent", "basic.publish"), ("sent", "basic.get"), ("sent", "basic.qos")]


def test_the_barrier_counts_for_nothing(trace: TraceWriter) -> None:
    with broker() as target:
        judgement = run(target, trace, "a.1 queue.declare q", "a.1 basic.publish q body=m1", "a.1 basic.get q no-ack")
    sent = [r["method"] for r in rows(trace) if r["kind"] == "frame" and r["direction"] == "sent"]
    assert sent.count("queue.declare") >= 2, "the barrier asks for the number of messages"
    assert "basic.qos" in sent
    assert sent.count("basic.get") >= 2, "and gets where nothing should be ready"
    assert judgement.exercised["QUEUE-001"] == 1
    assert judgement.exercised["GET-001"] == 1
    assert "QOS-001" not in judgement.exercised


def test_what_wants_no_answer_has_been_done_before_others_are_asked(trace: TraceWriter) -> None:
    lines = ("a.1 queue.declare q durable", "a.1 basic.publish q body=m1", "a.1 basic.publish q body=m2",
             "a.1 basic.qos 1", "a.1 basic.consume q tag=t nowait")  # fmt: skip
    with broker() as target:
        run(target, trace, *lines)
    sent = [(r["channel"], r["method"]) for r in rows(trace) if r["kind"] == "frame" and r["direction"] == "sent"]
    behind = sent[sent.index((1, "basic.consume")) + 1 :]
    assert behind.index((1, "basic.qos")) < behind.index((2000, "queue.declare"))


def test_what_nothing_has_answered_is_asked_about_all_the_same(trace: TraceWriter) -> None:
    lines = ("a.1 queue.declare q", "a.1 queue.declare r",
             "a.1 basic.publish q body=m1 &", "a.1 basic.publish r body=m2")  # fmt: skip
    with broker() as target:
        assert run(target, trace, *lines).verdict is Verdict.PASS
    sent = [r for r in rows(trace) if r["kind"] == "frame" and r["direction"] == "sent"]
    behind = sent[[r["method"] for r in sent].index("basic.publish") :]
    counted = [r["arguments"]["queue"].split("-")[-1] for r in behind if r["method"] == "queue.declare"]
    assert counted[:2] == ["q", "r"]


def test_events(trace: TraceWriter) -> None:
    events: list[Event] = []
    with broker() as target:
        run(target, trace, "a.1 queue.declare q", "a.1 basic.get q", listeners=[events.append])
    assert [event.text for event in events if isinstance(event, CommandIssued)] == [
        "a.1 queue.declare q",
        "a.1 basic.get q",
    ]
    trace_events = [event.event for event in events if isinstance(event, EventObserved)]
    recorded = [row for row in rows(trace) if row["kind"] == "frame"]
    assert [(seen.name, seen.time) for seen in trace_events] == [(row["method"], row["time"]) for row in recorded]
    assert [seen.time for seen in trace_events] == sorted(seen.time for seen in trace_events)
    first = next(index for index, event in enumerate(events) if isinstance(event, CommandIssued))
    assert first == 0, "the command is told before its frames"


def test_it_can_be_finished_once(trace: TraceWriter) -> None:
    with broker() as target, Session(under_test(target), trace, "s") as session:
        session.run(parse_command("a.1 basic.qos 1"))
        once = session.finish()
        assert session.finish() is once
    assert [row["kind"] for row in rows(trace)].count("end") == 1
