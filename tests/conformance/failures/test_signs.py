"""By what a failure is seen: read from a file of commands, and told by the program at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.conformance.failures.reproducer import reproducer
from amqpspec.conformance.failures.signs import CLIENT_PART, Often, Signs, signs_in, without_signs
from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.patience import patience

COMMANDS = "a.1 queue.declare q\na.1 basic.publish q body=m1\na.1 basic.get q\n"
REMARKS = """\
# always on 3.10, 4.0: a.1 < Basic.GetOk body=b'm1'
# by chance on 4.3: > a.1 basic.get q; no a.1 < Basic.GetOk
"""
PRINTED = ["> one", "a.1 < Basic.Deliver delivery_tag=1 body=b'm1'", "> two", "a.1 < Basic.Deliver delivery_tag=2"]


def test_signs_are_remarks_that_the_commands_do_without() -> None:
    assert signs_in(COMMANDS + REMARKS) == [
        Signs(Often.ALWAYS, ("3.10", "4.0"), ("a.1 < Basic.GetOk body=b'm1'",)),
        Signs(Often.BY_CHANCE, ("4.3",), ("> a.1 basic.get q", "no a.1 < Basic.GetOk")),
    ]
    assert without_signs(COMMANDS + REMARKS) == COMMANDS
    assert signs_in("# never on 4.3: x\n# by chance: x\n") == []


@pytest.mark.parametrize(
    ("signs", "is_seen"),
    [
        (["Basic.Deliver body=b'm1'"], True),
        # words in their order, whole words
        (["body=b'm1' Basic.Deliver"], False),
        (["Basic.Deli"], False),
        # one line after the other
        (["> two", "Basic.Deliver delivery_tag=2"], True),
        (["> two", "Basic.Deliver delivery_tag=1"], False),
        (["> two", "no delivery_tag=1"], True),
        (["no delivery_tag=1"], False),
        (["no nothing", "> two"], True),
    ],
)
def test_what_is_seen(signs: list[str], is_seen: bool) -> None:
    program: dict[str, object] = {"PRINTED": PRINTED}
    exec(CLIENT_PART, program)
    assert program["is_seen"](signs) is is_seen  # type: ignore[operator]


@pytest.mark.parametrize(
    ("remark", "code", "last"),
    [
        ("# always on 4.3: a.1 < Basic.GetOk body=b'm1'\n", 1, "SEEN, as on 4.3: a.1 < Basic.GetOk body=b'm1'"),
        ("# always on 4.3: a.1 < Basic.GetEmpty\n", 0, "NOT SEEN"),
    ],
)
def test_a_program_says_whether_it_has_seen_it(remark: str, code: int, last: str, tmp_path: Path) -> None:
    (file,) = parse_command_file(COMMANDS + remark)
    failure = Failure("GET-001", Shape.UNEXPECTED, "", "", "o", ("a",), ())
    program = tmp_path / "program.py"
    program.write_text(reproducer(file.commands, failure, signs_in(remark)), encoding="utf-8")
    with EmbeddedBroker() as broker:
        url = f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/%2F"
        done = subprocess.run(
            [sys.executable, str(program), url], capture_output=True, text=True, timeout=patience(100), check=False
        )
    assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (code, last, "")


def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    (file,) = parse_command_file(COMMANDS)
    failure = Failure("GET-001", Shape.UNEXPECTED, "", "", "o", ("a",), ())
    program = tmp_path / "program.py"
    program.write_text(reproducer(file.commands, failure, signs_in(REMARKS)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program), "amqp://127.0.0.1:1/%2F"], capture_output=True, text=True,
        timeout=patience(100), check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("no connection to 127.0.0.1 port 1") and len(done.stderr.splitlines()) == 1
