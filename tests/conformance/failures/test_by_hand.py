"""Reproducers of what needs the operator: they say what is to be typed, and wait; then what is to be undone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

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
