"""`python -m tests`: what it leaves out is told and counts as nothing; other arguments reach pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.__main__ import main

_ROOT = Path(__file__).resolve().parent.parent
_LEFT_OUT = ("tests/test_missing_brokers.py", "tests/targets/brokers/test_docker_broker.py")
_QUICK = "tests/reports/test_accuracy.py"


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one process", "workers"])
def test_what_is_left_out_is_told_and_counted(workers: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--quick", *workers, _QUICK, *_LEFT_OUT]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "\n30 tests have NOT been run: targets/brokers 28, tests 2.\n`python -m tests --all` runs" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert " passed, 30 deselected in " in last and "skipped" not in last


@pytest.mark.parametrize(
    ("arguments", "passed_on", "is_quick"),
    [
        ([], [], True),
        (["-k", "ack"], ["-k", "ack"], True),
        (["--all"], [], False),
        (["--all", "-x"], ["-x"], False),
        (["tests/model", "-x"], ["tests/model", "-x"], False),
        (["tests/test_tiers.py::test_tiers"], ["tests/test_tiers.py::test_tiers"], False),
    ],
)
def test_arguments_reach_pytest(
    arguments: list[str], passed_on: list[str], is_quick: bool, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    commands = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        commands.append(command[2:])
        return SimpleNamespace(returncode=1 if "ruff" in command else 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert main(arguments) == 1
    assert [command[0] for command in commands] == ["ruff", "mypy", "pytest"]
    assert commands[-1][len(commands[-1]) - len(passed_on) :] == passed_on
    assert ("--quick" in commands[-1]) is is_quick
    assert capfd.readouterr().out.endswith("failed: ruff\n")
