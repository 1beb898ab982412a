"""`amqpspec diff`: two targets, or two directories; exit codes, files, one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.upgrade import upgrade

SMALL = ("--only", "ACK-003", "--sequences", 1, "--seed", 3, "--jobs", 1)


def diff(*arguments: object) -> int:
    return main(["diff", *map(str, arguments)])


def test_two_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, summary = tmp_path / "a.html", tmp_path / "a.md"
    files = ("--out", tmp_path / "o", "--html", page, "--markdown", summary)
    assert diff("embedded", "embedded:multiple-zero-ignored", *SMALL, *files) == 1
    assert "ACK-003 multiple with tag 0  (a promise" in capsys.readouterr().out
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
