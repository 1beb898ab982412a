"""Outputs that cannot show, or take, what is written to them; and interrupts at any moment: no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amqpspec.command_line import main, replay
from tests.patience import patience

PROGRAM = [sys.executable, "-m", "amqpspec"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
SHORT = ("run", "--only", "ACK-003", "--sequences", "0", "--jobs", "1")


def amqpspec(*arguments: str, directory: Path, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": encoding}
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=directory, env=environment, capture_output=True, timeout=patience(60), check=False
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_an_encoding_lacks_is_shown_as_a_question_mark(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.amqp").write_text("a.1 queue.declare q…\n", encoding="utf-8")
    for arguments in (SHORT, ("replay", "x.amqp"), ("run", "--help")):
        done = amqpspec(*arguments, directory=tmp_path, encoding=encoding)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"?" in done.stdout


def to_a_full_disk(directory: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    with Path("/dev/full").open("wb") as full:
        return subprocess.run(
            [*PROGRAM, *arguments], cwd=directory, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE,
            timeout=patience(60), check=False,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "more", "code"),
    [("embedded", (), 0), ("embedded", ("--quiet",), 0), ("embedded:get-empty-with-messages", (), 1)],
)
def test_a_full_disk_under_the_output_changes_nothing_else(
    tmp_path: Path, target: str, more: tuple[str, ...], code: int
) -> None:
    done = to_a_full_disk(tmp_path, *SHORT, target, *more)
    assert done.returncode == code
    assert done.stderr == b"amqpspec: the output is cut short: No space left on device\n"
    assert (tmp_path / "amqpspec-out" / "report.json").exists()


@pytest.mark.parametrize("arguments", [("requirements", "--only", "ACK-001"), ("requirements", "--json"), ("--help",)])
def test_who_only_prints_says_that_the_disk_is_full(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = to_a_full_disk(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (2, b"amqpspec: input or output: No space left on device\n")


def test_without_any_output(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, *SHORT]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("seconds", [0.4, 0.8, 1.2, 1.6])
def test_an_interrupt_at_the_terminal_while_all_is_loaded(tmp_path: Path, seconds: float) -> None:
    """All processes of the terminal get it."""
    with subprocess.Popen(
        [*PROGRAM, "run", "--sequences", "300", "--shrinking-time", "0", "--jobs", "2"], cwd=tmp_path, env=ENVIRONMENT,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        assert process.stderr is not None
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read().decode()
        assert process.wait(patience(60)) == 130
    assert "Traceback" not in said and said.endswith("amqpspec: interrupted\n")


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def execute(*_: object) -> int:
        raise MemoryError

    monkeypatch.setattr(replay, "execute", execute)
    assert main(["replay", "x.amqp"]) == 2
    assert capsys.readouterr().err == "amqpspec: there is not enough memory\n"


def test_an_interrupt_in_the_middle_of_an_exec_has_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "from amqpspec.command_line import entry, main\n"
        "entry.main = lambda arguments: exec('raise KeyboardInterrupt')\n"
        "sys.exit(main([]))\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (130, b"amqpspec: interrupted\n")
