"""`amqpspec diff`: two targets, or two directories; exit codes, files, one-line errors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.upgrade.comparison import upgrade

SMALL = ("--only", "ACK-003", "--sequences", 1, "--seed", 3, "--jobs", 1)


def diff(*arguments: object) -> int:
    return main(["diff", *map(str, arguments)])


def test_two_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, summary = tmp_path / "a.html", tmp_path / "a.md"
    files = ("--out", tmp_path / "o", "--html", page, "--markdown", summary)
    assert diff("embedded", "embedded:multiple-zero-ignored", *SMALL, *files) == 1
    out = capsys.readouterr().out
    assert "ACK-003 multiple with tag 0  (a promise" in out
    assert out.count(": 4 sequences") + out.count(": 5 sequences") == 2  # how far each of the two runs is
    assert "ACK-003" in page.read_text() and "## Stuck" in summary.read_text()
    found = upgrade(tmp_path / "o" / "one", tmp_path / "o" / "other")
    assert found.compared >= 4 and found.left_out == 0

    # the same from the directories, the other way round
    assert diff(tmp_path / "o" / "other", tmp_path / "o" / "one", "--quiet") == 0
    assert "No difference" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("no-such-target", "embedded"), 2, "no-such-target"),
        ((".", "embedded"), 2, "not one of each"),
        (("embedded", "nowhere"), 2, "nowhere: is no target, and there is no such file"),
        ((".", ".", "--only", "NONSENSE"), 2, "--only is for two targets"),
        ((".", ".", "--sequences", "0"), 2, "--sequences is for two targets"),
        ((".", ".", "--out", "o"), 2, "--out is for two targets"),
        (("embedded", "embedded", "--html", "."), 2, ".: cannot be written: Is a directory"),
        (("embedded", "embedded", "--markdown", "."), 2, ".: cannot be written: Is a directory"),
        ((".", "."), 5, "holds no trace.jsonl"),
        (("embedded", "embedded", "--html", "/nowhere/a.html"), 2, "there is no directory"),
        (("embedded", "embedded", "--only", "NONSENSE"), 2, "NONSENSE"),
        (("amqp://127.0.0.1:1/", "embedded"), 3, "127.0.0.1 port 1"),
    ],
)
def test_bad_input_is_told_in_a_line(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert diff(*arguments) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and err.startswith("amqpspec: ")
    assert not (tmp_path / "amqpspec-diff" / "one" / "trace.jsonl").exists() or code == 3, "nothing was started"


BROKER = f"""address = "amqp://guest:guest@127.0.0.1:{{port}}/"
start = [{sys.executable!r}, "-m", "amqpspec", "serve", "--port", "{{port}}"]
"""


def test_a_file_of_a_broker_is_a_target_and_a_folder_named_as_one_is_not_taken_for_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "embedded").mkdir()
    file = tmp_path / "broker.toml"
    file.write_text(BROKER)
    assert diff("broker.toml", "embedded", *SMALL, "--quiet") == 0
    assert "No difference" in capsys.readouterr().out
    assert diff("broker.toml", "embedded", *SMALL, "--html", "broker.toml") == 2
    assert "broker.toml: is read, so it is not written" in capsys.readouterr().err and file.read_text() == BROKER
    assert diff("./embedded", "./embedded") == 5


def test_nothing_that_was_compared_is_no_conformance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # the embedded broker is no cluster
    assert diff("embedded", "embedded", "--only", "CLUSTER", "--sequences", 0, "--html", "a.html") == 4
    assert "? Nothing was compared" in " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "a.html").read_text()
    assert '<p class="headline inconclusive"><span aria-hidden="true">?</span> Nothing was compared' in page
    for only in ("GET-001", "ACK-003"):
        assert main(["run", "--only", only, "--sequences", "0", "--jobs", "1", "--quiet", "--out", only]) == 0
    capsys.readouterr()
    assert diff("GET-001", "ACK-003", "--quiet") == 4
    assert capsys.readouterr().out.startswith("Nothing was compared")


def test_the_summary_of_the_job_gets_the_differences_and_not_the_two_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, own = tmp_path / "job.md", tmp_path / "own.md"
    job.write_text("# from a step before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    assert diff("embedded", "embedded", *SMALL, "--out", tmp_path / "o", "--markdown", own) == 0
    assert job.read_text() == "# from a step before\n" + own.read_text()
