"""`python -m tests`: what it leaves out is told and counts as nothing; other arguments reach pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.__main__ import MOST_AGAIN, main

_ROOT = Path(__file__).resolve().parent.parent
_LEFT_OUT = ("tests/test_missing_brokers.py", "tests/targets/brokers/test_docker_broker.py")
_QUICK = "tests/reports/test_accuracy.py"


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one process", "workers"])
def test_what_is_left_out_is_told_and_counted(workers: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--quick", *workers, _QUICK, *_LEFT_OUT]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "\n31 tests have NOT been run: targets/brokers 29, tests 2.\n`python -m tests --all` runs" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert " passed, 31 deselected in " in last and "skipped" not in last


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
        return SimpleNamespace(returncode=1 if "ruff" in command else 0, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    assert main(arguments) == 1
    assert sorted(command[0] for command in commands) == ["mypy", "pytest", "ruff"]
    (tests,) = (command for command in commands if command[0] == "pytest")
    assert tests[len(tests) - len(passed_on) :] == passed_on
    assert ("--quick" in tests) is is_quick
    assert capfd.readouterr().out.endswith("failed: ruff\n")


def test_what_is_compiled_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    environments: list[dict[str, str]] = []

    def run(_: list[str], env: dict[str, str], **__: object) -> SimpleNamespace:
        environments.append(env)
        return SimpleNamespace(returncode=0, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert main([]) == 0
    assert [(env.get("PYTHONDONTWRITEBYTECODE"), "PATH" in env) for env in environments] == [(None, True)] * 3


@pytest.mark.parametrize(
    ("failed", "again", "code"), [(1, 0, 0), (1, 1, 1), (MOST_AGAIN, 0, 0), (MOST_AGAIN + 1, 0, 1)]
)
def test_what_failed_beside_others_is_run_once_more(
    failed: int, again: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    names = [f"tests/test_x.py::test_{number}" for number in range(failed)]
    monkeypatch.setattr("tests.__main__._FAILED", tmp_path / "lastfailed")
    (tmp_path / "lastfailed").write_text(json.dumps(dict.fromkeys(names, True)))

    def run(command: list[str], **_: object) -> SimpleNamespace:
        if "--last-failed" in command:
            return SimpleNamespace(returncode=again, stdout="")
        return SimpleNamespace(returncode=1 if "pytest" in command else 0, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["--all"]) == code
    said = capfd.readouterr().out
    assert (f"passed alone, and failed beside others: {', '.join(names)}" in said) is (code == 0)


def test_it_is_the_very_test_that_is_run_again(tmp_path: Path) -> None:
    """By pytest's own memory, which workers share."""
    count = tmp_path / "count"
    (tmp_path / "test_x.py").write_text(
        "from pathlib import Path\n\n\ndef test_fails():\n"
        f"    with Path({str(count)!r}).open('a') as file:\n        file.write('x')\n"
        "    assert False\n\n\ndef test_passes():\n    pass\n"
    )
    for options, passed in ((("--cache-clear", "-n", "2"), 1), (("--last-failed",), 0)):
        command = [sys.executable, "-m", "pytest", *options, "test_x.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout
        assert (" 1 passed" in done.stdout) is bool(passed)
    assert count.read_text() == "xx"
    assert (tmp_path / ".pytest_cache" / "v" / "cache" / "lastfailed").exists()
