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
from amqpspec.command_line.output_files import write
from amqpspec.command_line.run_directory import held
from amqpspec.command_line.usage import UsageError

SHORT = ["run", "--only", "GET-001", "--sequences", "0", "--jobs", "1"]
#: Without bytecode: where files are limited, Python would leave that of a module cut short, and others would read it.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}


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
    assert not (tmp_path / "amqpspec-out").exists(), "nothing was run"


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


@pytest.mark.parametrize(
    "line",
    [
        "replay x.amqp --out file/o",
        "record --upstream amqp://127.0.0.1:1 --out file/o",
        "replay x.amqp --out taken",
        "profile amqp://127.0.0.1:1/ --toml taken",
    ],
)
def test_other_commands_find_it_before_they_begin(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code 3 would say that the target was asked first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.amqp").write_text("a.1 queue.declare q\n")
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "trace.jsonl" / "folder").mkdir(parents=True)
    assert main(line.split()) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "cannot be" in err


def test_what_is_read_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SHORT, "--quiet", "--out", "a"]) == 0
    (tmp_path / "b.toml").write_text('address = "amqp://127.0.0.1:1/"\n')
    (tmp_path / "link.html").symlink_to(tmp_path / "a" / "trace.jsonl")
    before = (tmp_path / "a" / "trace.jsonl").read_bytes()
    for line, file in (
        ("report a --out a/trace.jsonl", "a/trace.jsonl"),
        ("report a/report.json --out ./a/report.json", "a/report.json"),
        ("report a --out link.html", "link.html"),
        ("check a --out a/trace.jsonl", "a/trace.jsonl"),
        ("check a/trace.jsonl --out a/trace.jsonl", "a/trace.jsonl"),
        ("diff a a --markdown a/trace.jsonl", "a/trace.jsonl"),
        ("profile b.toml --toml b.toml", "b.toml"),
    ):
        capsys.readouterr()
        assert main(line.split()) == 2
        assert capsys.readouterr().err == f"amqpspec: {file}: is read, so it is not written: give another file\n"
    assert (tmp_path / "a" / "trace.jsonl").read_bytes() == before
    # what only lies beside it may be written
    assert main(["report", "a", "--out", "a/side.html"]) == 0


def test_what_cannot_be_written_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").mkdir()
    write(tmp_path / "there", "text")
    assert capsys.readouterr().err.count("was left out") == 1


@pytest.mark.parametrize(("first", "second"), [
    ("--json", "amqpspec-out/trace.jsonl"), ("--html", "report.xml"), ("--deviations", "report.xml"),
])  # fmt: skip
def test_each_output_has_a_file_of_its_own(
    first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.xml").touch()
    assert main([*SHORT, "--junit", "report.xml", first, second]) == 2
    assert "each needs its own name" in capsys.readouterr().err


def test_reasons_that_somebody_has_written_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = '[[deviation]]\nidentity = "ACK-001|x|y"\nreason = "mine"\n'
    (tmp_path / "d.toml").write_text(mine)
    assert main([*SHORT, "--write-deviations", "d.toml"]) == 2
    assert "give it by --deviations as well" in capsys.readouterr().err
    assert (tmp_path / "d.toml").read_text() == mine


def test_reports_of_a_run_before_do_not_speak_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SHORT, "embedded:get-empty-with-messages", "--out", "o", "--junit", "j.xml"]) == 1
    assert list((tmp_path / "o" / "failures").iterdir())
    (tmp_path / "o" / "failures" / "mine.amqp").touch()
    assert main([*SHORT, "amqp://localhost:1/", "--out", "o", "--junit", "j.xml"]) == 3
    assert not (tmp_path / "o" / "report.json").exists() and not (tmp_path / "j.xml").exists()
    assert main([*SHORT, "embedded", "--out", "o"]) == 0
    assert [each.name for each in (tmp_path / "o" / "failures").iterdir()] == ["mine.amqp"]


def test_a_replay_does_not_take_the_place_of_a_run_s_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.amqp").write_text("a.1 queue.declare q\n")
    assert main([*SHORT, "embedded", "--out", "o"]) == 0
    assert main(["replay", "f.amqp", "embedded", "--out", "o"]) == 2
    assert "o: holds a run" in capsys.readouterr().err
    (tmp_path / "p").mkdir()
    with held(Path("p")):
        assert main(["replay", "f.amqp", "embedded", "--out", "p"]) == 2
    assert main(["replay", "f.amqp", "embedded", "--out", "p"]) == 0


def test_a_replay_says_what_was_not_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.amqp"
    file.write_text("a.1 queue.declare q\na connection.close\na.1 basic.get q\nb.1 basic.get q\n")
    assert main(["replay", str(file), "embedded"]) == 0
    out = capsys.readouterr().out
    assert out.count("was not sent") == 1
    assert "a.1 basic.get q\n    was not sent: its connection is closed" in out


def test_a_failure_is_seen_again_in_the_dialect_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    target = "embedded:get-empty-with-messages"
    assert main([*SHORT, target, "--dialect", "rabbitmq-4.0", "--out", "o o"]) == 1
    again = f"amqpspec replay 'o o/failures/01-PUBLISH-002.amqp' {target} --dialect rabbitmq-4.0"
    said = " ".join(capsys.readouterr().out.split())
    assert f"see it again: {again}" in said
    assert "as a program for pika: o o/failures/01-PUBLISH-002.py" in said
    compile((tmp_path / "o o" / "failures" / "01-PUBLISH-002.py").read_text(), "program", "exec")
    assert again.replace("'", "&#39;") in (tmp_path / "o o" / "report.html").read_text()
