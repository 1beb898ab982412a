"""`amqpspec coverage`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpspec.command_line.entry import main


def run(out: Path, *only: str) -> None:
    words = [word for area in only for word in ("--only", area)]
    assert main(["run", "embedded", *words, "--sequences", "0", "--seed", "1", "--quiet", "--out", str(out)]) == 0


def test_the_situations_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "recover", "RECOVER-003")
    capsys.readouterr()
    assert main(["coverage", str(tmp_path / "recover")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "basic.recover no requeue" in shown and "situations were met, by" in shown
    assert main(["coverage", str(tmp_path / "recover" / "trace.jsonl"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    cells = {(each["command"], each["situation"]): each for each in told["cells"]}
    held = cells["basic.recover no requeue", "by both"]
    # once with a classic queue, once with a quorum queue; no command of a barrier counts
    assert held["visits"] == 2 and held["first"].startswith("scenario RECOVER-003-held")
    assert cells["basic.qos n", "by get"]["visits"] == 0 and cells["basic.qos n", "by get"]["first"] is None
    assert sum(each["visits"] > 0 for each in told["cells"]) == told["visited"] and told["sequences"] == 3


def test_several_traces_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "one", "RECOVER-003")
    run(tmp_path / "two", "GET-001")
    counts = []
    for traces in (["one"], ["two"], ["one", "two"]):
        capsys.readouterr()
        assert main(["coverage", *(str(tmp_path / each) for each in traces), "--json"]) == 0
        counts.append(json.loads(capsys.readouterr().out)["commands"])
    assert counts[2] == counts[0] + counts[1] > counts[0] > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "No such file"), ("nothing\n\n", "not JSON"), ("", "no sequence in it")],
)
def test_what_cannot_be_read_is_one_line(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.jsonl"
    if text is not None:
        trace.write_text(text)
    assert main(["coverage", str(trace)]) == 5
    told = capsys.readouterr()
    assert message in told.err and told.err.count("\n") == 1 and told.out == ""


def test_recordings_of_applications_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "one", "GET-001")
    lines = (tmp_path / "one" / "trace.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    opened = tmp_path / "open.jsonl"
    opened.write_text("\n".join(json.dumps({**row, "mode": "open"} if row["kind"] == "start" else row) for row in rows))
    capsys.readouterr()
    assert main(["coverage", str(opened)]) == 5
    assert "only recordings of applications" in capsys.readouterr().err
    assert main(["coverage", str(opened), str(tmp_path / "one")]) == 0
    assert "of applications left out" in capsys.readouterr().out
