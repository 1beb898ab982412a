"""Programs by pika's own calls: short, with exit code 1 on a broker that has the defect, and 0 on one that has not."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amqpspec.conformance.failures.reproducer import program
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.patience import patience
from tests.targets.faults.fault_lines import LINES

#: Commands that show faults for which there are none elsewhere.
SHOWN_BY = LINES | {
    "multiple-zero-ignored": """
        a.1 queue.declare q
        a.1 basic.qos 2
        a.1 basic.consume q consumer-tag=t
        a.1 basic.publish q body=m1
        a.1 basic.publish q body=m2
        a.1 basic.publish q body=m3
        a.1 basic.ack 0 multiple
    """,
    "get-empty-with-messages": """
        a.1 queue.declare q
        a.1 basic.publish q body=m1
        a.1 basic.get q
    """,
    "wrong-reply-code": """
        a.1 queue.declare q
        a.1 basic.ack 9
    """,
}
#: Faults whose programs are by pika's own calls, or by methods as they stand; and lines that these have at most.
PLAIN = (
    "multiple-zero-ignored", "get-empty-with-messages", "wrong-reply-code", "topic-hash-needs-a-word",
    "user-id-not-checked", "rollback-keeps-tags", "commit-without-select", "get-unknown",
)  # fmt: skip
BY_METHODS = ("single-ack-multiple", "confirm-counts-from-zero", "refused-publish-acked", "cancel-ok-then-cancel",
              "cancel-ok-names-another", "commit-ok-before-return", "delete-unanswered")  # fmt: skip
MOST_LINES = {True: 45, False: 75}


def shown(fault: str, directory: Path) -> str:
    """The program of the failure that the lines of the fault show."""
    commands = [parse_command(line.strip()) for line in SHOWN_BY[fault].strip().splitlines()]
    described = TargetDescription("embedded", "RabbitMQ", "4.3.0", "rabbitmq-4.3")
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(directory / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, described, deadline=patience(0.5))
        with Session(target, trace, "s", planned=commands) as session:
            for command in commands:
                session.run(command)
            failure = session.finish().failures[0]
    last = max(place for place, each in enumerate(commands) if str(each) == failure.command)
    return program(commands[: last + 1], failure)


def is_plain(text: str) -> bool:
    """Is it by pika's own calls?"""
    return "_impl" not in text and "A client that sends" not in text


def exit_code(text: str, fault: str | None, directory: Path) -> int:
    file = directory / f"{fault}.py"
    file.write_text(text, encoding="utf-8")
    with EmbeddedBroker(fault=fault) as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.address.port}/%2F"
        done = subprocess.run(
            [sys.executable, str(file), url], capture_output=True, text=True, timeout=patience(100), check=False
        )
    assert done.stderr == "" and done.stdout.rstrip().splitlines()[-1].startswith(("SEEN", "NOT SEEN"))
    return done.returncode


@pytest.mark.parametrize("fault", [*PLAIN, *BY_METHODS])
def test_the_exit_code_says_whether_the_defect_shows(fault: str, tmp_path: Path) -> None:
    text = shown(fault, tmp_path)
    assert is_plain(text) is (fault in PLAIN)
    assert len(text.splitlines()) <= MOST_LINES[is_plain(text)]
    with ThreadPoolExecutor(2) as side_by_side:
        codes = side_by_side.map(lambda each: exit_code(text, each, tmp_path), (fault, None))
        assert list(codes) == [1, 0]


def test_the_commands_are_calls_of_pika(tmp_path: Path) -> None:
    text = shown("multiple-zero-ignored", tmp_path)
    calls = re.findall(r"^ *(a1\.\w+)\(", text, re.MULTILINE)
    assert calls == [
        "a1.queue_declare", "a1.basic_qos", "a1.basic_consume", *["a1.basic_publish"] * 3, "a1.basic_ack"
    ]  # fmt: skip
    assert 'a1.basic_publish(exchange="", routing_key=q, body=b"m1")' in text


def test_where_it_cannot_be_told_the_exit_code_is_2(tmp_path: Path) -> None:
    """Nobody is there; nothing comes that is known; the failure's words say nothing of a frame."""
    text = shown("wrong-reply-code", tmp_path)
    file = tmp_path / "program.py"

    def code(text: str, url: str) -> int:
        file.write_text(text)
        done = subprocess.run([sys.executable, str(file), url], capture_output=True, timeout=patience(60), check=False)
        return done.returncode

    assert code(text, "amqp://guest:guest@127.0.0.1:1/%2F") == 2
    with EmbeddedBroker() as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.address.port}/%2F"
        assert code(text.replace("404", "999").replace("406", "998"), url) == 2
        commands = [parse_command("a.1 queue.declare q")]
        vague = Failure("ACK-001", Shape.UNEXPECTED, "x", str(commands[0]), "something", ("another thing",), ())
        assert code(program(commands, vague), url) == 2


@pytest.mark.parametrize(
    ("line", "is_by_methods"),
    [
        ("a.1! basic.get q", True), ("a.1 basic.get q &", True), ("a.1 queue.declare q nowait", True),
        ("a.1 confirm.select", True), ("a.1 basic.cancel t", True), ("a.1 basic.consume q", True),
        ("a.1 basic.publish q unfinished", True), ("a.1 frame.body body=m", True), ("a@2.1 basic.get q", True),
        ('a.1 queue.declare q arguments={"x": 1.5}', False), ("a socket.abort", False),
        ("a connection.start-ok locale=C", False),
    ],
)  # fmt: skip
def test_what_pika_cannot_say(line: str, is_by_methods: bool) -> None:
    commands = [parse_command(line), parse_command("a.1 basic.get q")]
    failure = Failure(
        "GET-001", Shape.UNEXPECTED, "basic.get-empty", str(commands[-1]), "a.1 < basic.get-empty",
        ("a.1 < basic.get-ok delivery-tag=1",), (),
    )  # fmt: skip
    assert is_plain(program(commands[1:], failure))
    text = program(commands, failure)
    assert not is_plain(text) and ("_impl" in text) is is_by_methods


def test_an_operator_is_asked() -> None:
    lines = ("a.1 queue.declare q durable", "broker.stop", "broker.restart", "b.1 basic.get q")
    commands = list(map(parse_command, lines))
    failure = Failure(
        "DURABLE-004", Shape.UNEXPECTED, "basic.get-ok", str(commands[-1]), "b.1 < basic.get-ok body=m",
        ("b.1 < basic.get-empty",), (),
    )  # fmt: skip
    text = program(commands, failure)
    assert is_plain(text) and text.count("input(") == 2
    assert text.index("docker start") < text.index("b = pika.BlockingConnection")
