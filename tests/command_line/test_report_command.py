"""`amqpspec report`: files, exit codes, one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line import main


def amqpspec(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("runs")
    small = ("--only", "ACK-003", "--sequences", 0, "--seed", 1, "--quiet", "--jobs", 1)
    assert amqpspec("run", *small, "--out", directory / "sound") == 0
    assert amqpspec("run", "embedded:multiple-zero-ignored", *small, "--out", directory / "faulty") == 1
    return directory / "sound", directory / "faulty"


def test_two_runs(runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert amqpspec("report", *runs, "--out", tmp_path) == 0
    out = capsys.readouterr().out
    assert "2 new, 0 fixed, 0 still, 0 not tried" in " ".join(out.split())
    page = (tmp_path / "side-by-side.html").read_text()
    assert page.count('<details class="group"') == 2 and "+ new" in page and "ACK-003" in page

    assert amqpspec("report", *reversed(runs), runs[0] / "report.json", "--out", tmp_path / "a.html", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert 'data-states="fpp"' in (tmp_path / "a.html").read_text()

    # as `run --out` does, a name without an ending is a directory
    assert amqpspec("report", *runs, "--out", tmp_path / "side" / "by") == 0
    assert (tmp_path / "side" / "by" / "side-by-side.html").is_file()


def test_a_run_without_a_report_takes_part_with_its_trace(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace.jsonl").write_bytes((runs[1] / "trace.jsonl").read_bytes())
    assert amqpspec("report", runs[0], tmp_path, "--out", tmp_path) == 0
    assert "2 new, 0 fixed" in " ".join(capsys.readouterr().out.split())
    assert "the run wrote no report" in (tmp_path / "side-by-side.html").read_text()


@pytest.mark.parametrize(
    "made, text, code, said",
    [
        (None, "", 2, "there is no such directory or report"),
        ("other.txt", "", 2, "holds neither report.json nor a trace"),
        ("report.json", "{", 2, "is not JSON"),
        ("report.json", "{}", 2, "is not a report of this suite"),
        ("report.json", "\ud800", 2, "is not JSON"),
        ("trace.jsonl", "", 2, "has no sequence"),
        ("trace.jsonl", "{}\n", 5, "trace.jsonl"),
    ],
)
def test_bad_input_is_told_in_a_line(
    made: str | None, text: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "run"
    if made is not None:
        directory.mkdir()
        (directory / made).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert amqpspec("report", directory, "--out", tmp_path) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and err.startswith("amqpspec: ")


def test_a_page_that_cannot_be_written(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert amqpspec("report", *runs, "--out", "/nowhere/there/a.html") == 2
    assert "there is no directory" in capsys.readouterr().err


def test_a_run_on_several_targets_makes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ("--only", "ACK-003", "--sequences", 0, "--jobs", 1)
    faulty = "embedded:multiple-zero-ignored"
    assert amqpspec("run", "embedded", faulty, "embedded", *small, "--out", "runs") == 1
    out = capsys.readouterr().out
    assert "2 new, 0 fixed, 0 still, 0 not tried" in " ".join(out.split())
    names = ["embedded", "embedded-2", "embedded-multiple-zero-ignored"]
    assert sorted(each.name for each in (tmp_path / "runs").iterdir()) == [*names, "side-by-side.html"]
    page = (tmp_path / "runs" / "side-by-side.html").read_text()
    assert 'data-states="pfp"' in page and 'class="ladder"' in page
    assert f'href="{names[2]}/report.html#failure-ACK-003"' in page

    assert amqpspec("run", "embedded", faulty, *small, "--junit", "junit.xml") == 2
    assert "--junit names one file" in capsys.readouterr().err


def test_a_target_that_is_wrong_costs_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ("--only", "GET-001", "--sequences", 0, "--jobs", 1)
    assert amqpspec("run", "embedded", "embedded:nosuchfault", *small) == 2
    assert (tmp_path / "amqpspec-out" / "side-by-side.html").is_file()
    assert "nosuchfault" in capsys.readouterr().err
    assert amqpspec("run", "embedded:nosuchfault", "embedded", *small, "--out", "other") == 2
    assert not (tmp_path / "other" / "side-by-side.html").exists(), "a mistake that shows at once ends all of it"


def test_a_target_that_cannot_be_had_costs_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert amqpspec("run", "amqp://u:secret@127.0.0.1:1/", "embedded", "--only", "GET-001", "--sequences", 0) == 3
    assert (tmp_path / "amqpspec-out" / "side-by-side.html").is_file()
    said = capsys.readouterr()
    assert "cannot connect" in said.err and "secret" not in said.out + said.err
