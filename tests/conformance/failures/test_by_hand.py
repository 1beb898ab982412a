"""Reproducers of what needs the operator: they say what is to be typed, and wait; then what is to be undone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.conformance.failures.by_hand import call, left_behind
from amqpspec.conformance.failures.reproducer import reproducer
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.patience import patience

LINES = (
    "a.1 queue.declare q durable",
    "broker operator.add-user lim password=secret",
    "broker operator.set-permissions lim configure=^mine",
    "broker operator.set-alarm",
    "b connection.open user=lim password=secret",
    "broker operator.close-connection a reason=enough",
    "broker clock.wait 50",
)
FAILURE = Failure("CONN-023", Shape.MISSING, "connection.close", LINES[5], "nothing", ("a close",), ())


def test_a_command_of_the_operator_becomes_one_for_a_person() -> None:
    assert call(parse_command(LINES[1])) == ("by_hand", [LINES[1], "rabbitmqctl add_user PREFIX-lim secret"])
    function, words = call(parse_command(LINES[2]))
    assert (function, words[1:]) == ("by_hand", ["rabbitmqctl set_permissions -p / PREFIX-lim '^PREFIX-mine' '' ''"])
    assert "the pid of PREFIX-a" in call(parse_command(LINES[5]))[1][1]
    assert call(parse_command(LINES[6])) == ("pause", [LINES[6], 0.05])


def test_what_is_left_is_named() -> None:
    commands = [parse_command(line) for line in (*LINES, "broker operator.clear-alarm", "broker operator.add-vhost v")]
    assert left_behind(commands) == ["rabbitmqctl delete_user PREFIX-lim", "rabbitmqctl delete_vhost PREFIX-v"]


def test_programs_without_an_operator_have_nothing_of_it() -> None:
    program = reproducer([parse_command(LINES[0])], FAILURE)
    assert "by_hand" not in program and "left_behind" not in program


def test_the_program_runs_and_asks(tmp_path: Path) -> None:
    program = reproducer(list(map(parse_command, LINES)), FAILURE)
    ast.parse(program)
    assert max(map(len, program.splitlines())) <= 120
    path = tmp_path / "reproducer.py"
    path.write_text(program)
    with EmbeddedBroker() as broker:
        url = f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/%2F"
        done = subprocess.run(
            [sys.executable, path, url], input="\n" * 4, capture_output=True, text=True, timeout=patience(60),
            check=True,
        )
    said = done.stdout
    assert "rabbitmqctl add_user reproducer-" in said
    assert "PREFIX" not in said
    assert said.count("and when that is done, Enter:") == 4
    # nobody did what it asked for, so the user cannot log in
    assert "b.0 <" in said
    assert said.index("to be undone on the broker's machine:") < said.index("rabbitmqctl delete_user reproducer-")


@pytest.mark.parametrize(
    ("line", "function", "words"),
    [
        ("broker.stop", "by_hand", "docker stop BROKER"),
        ("broker.kill node=2", "by_hand", "docker kill NODE2"),
        ("broker.restart", "restarted", "docker start BROKER"),
        ("network.cut node=2", "by_hand", "docker network disconnect NETWORK NODE2"),
        ("queue.transfer-leader q node=3", "by_hand", "have NODE3 lead the queue PREFIX-q"),
        ("network.cut connection=a", "cut", "a"),
        ("network.heal connection=a", "heal", "a"),
        ("network.slow connection=a milliseconds=5", "tell", "this program does not"),
    ],
)
def test_a_fault_is_told_or_done(line: str, function: str, words: str) -> None:
    called, said = call(parse_command(line))
    assert called == function and line in said[0] and words in said[-1]


@pytest.mark.parametrize(
    ("lines", "first"),
    [(["broker.kill"], "docker stop BROKER; docker start BROKER"), (["broker.pause"], "docker unpause BROKER"),
     (["broker.kill", "broker.restart"], "")],
)  # fmt: skip
def test_a_broker_that_is_left_down_or_paused_is_to_be_there_again(lines: list[str], first: str) -> None:
    assert "".join(left_behind(map(parse_command, lines))).startswith(first)
    assert bool(left_behind(map(parse_command, lines))) is bool(first)


#: A program with a connection that is cut, and one that is made anew after a restart by nobody.
_BROKEN = [
    "a.1 queue.declare q", "network.cut connection=a", "a.1 basic.publish q body=m1", "b.1 basic.get q",
    "network.heal connection=a", "b.1 basic.get q", "broker.stop", "c.1 basic.get q",
]  # fmt: skip


def test_a_program_cuts_its_connection_itself_and_says_where_nobody_is_there(tmp_path: Path) -> None:
    failure = Failure("PUBLISH-002", Shape.MISSING, "", _BROKEN[-1], "nothing", (), ())
    path = tmp_path / "program.py"
    path.write_text(reproducer([parse_command(line) for line in _BROKEN], failure), encoding="utf-8")
    with EmbeddedBroker() as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.address.port}/%2F"
        command, limit = [sys.executable, str(path), url], patience(60)
        done = subprocess.run(command, input="\n", capture_output=True, text=True, timeout=limit, check=False)
    lines = done.stdout.splitlines()
    empty, got = (next(n for n, each in enumerate(lines) if word in each) for word in ("GetEmpty", "GetOk"))
    assert empty < lines.index("> network.heal connection=a") < got, done.stdout + done.stderr
    assert "    docker stop BROKER   # or: rabbitmqctl shutdown" in lines
    assert "> c.1 basic.get q   (not sent: nobody is there)" in done.stdout
