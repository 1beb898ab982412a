"""Nothing is lost at the end of a run: unwritable files, full disks, two runs in one place, closed pipes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.command_line.output_files import held, write
from amqpspec.command_line.usage import UsageError

SHORT = ["run", "--only", "GET-001", "--sequences", "0", "--jobs", "1"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def amqpspec(*arguments: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """`limit`: octets that a file may have."""

    def begin() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "amqpspec", *arguments],
        env=ENVIRONMENT, preexec_fn=begin, capture_output=True, text=True, timeout=600,
    )  # fmt: skip


@pytest.mark.parametrize("option", ["--junit", "--html", "--markdown", "--write-deviations"])
def test_a_file_that_cannot_be_written_is_found_before_the_run(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert main([*SHORT, option, "folder"]) == 2
    assert capsys.readouterr().err == "amqpspec: folder: cannot be written: Is a directory\n"
    assert sorted(each.name for each in (tmp_path / "amqpspec-out").iterdir()) == [], "nothing was run"


@pytest.mark.parametrize(("fault", "code"), [("embedded", 0), ("embedded:get-empty-with-messages", 1)])
def test_a_disk_that_fills_costs_the_report_and_not_the_verdict(fault: str, code: int, tmp_path: Path) -> None:
    done = amqpspec(*SHORT, fault, "--out", str(tmp_path / "out"), limit=20_000)
    assert done.returncode == code, done.stderr
    assert "trace.jsonl is not complete: File too large" in done.stderr
    assert "report.html was left out: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert ("Conforms" if code == 0 else "Deviates") in done.stdout
    assert not (tmp_path / "out" / "report.html").exists()


def test_two_runs_do_not_write_into_one_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "amqpspec-out").mkdir()
    with held(Path("amqpspec-out")):
        assert main(SHORT) == 2
        assert "another run writes there" in capsys.readouterr().err
    assert not list((tmp_path / "amqpspec-out").iterdir())
    with held(Path("amqpspec-out")), pytest.raises(UsageError), held(Path("amqpspec-out")):
        pass


def test_a_closed_pipe_changes_no_exit_code(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "amqpspec", *SHORT, "embedded:get-empty-with-messages", "--out", str(tmp_path)],
        env=ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=600,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["exit_code"] == 1


def test_an_empty_trace_is_no_conformance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.jsonl").touch()
    assert main(["check", str(tmp_path)]) == 5
    assert "no sequence" in capsys.readouterr().err


def test_what_cannot_be_written_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").mkdir()
    write(tmp_path / "there", "text")
    assert capsys.readouterr().err.count("was left out") == 1
