"""`amqpspec diff`: two targets, or two directories; exit codes, files, one-line errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.upgrade.comparison import upgrade
from tests.conformance.recording.captures import write_pcap
from tests.conformance.recording.test_capture import whole

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
        (("embedded", "."), 2, "two targets, two directories of runs, or a recording and then a target"),
        (("embedded", "rabbitmq-4.3"), 2, "embedded is a target, and rabbitmq-4.3 is none"),
        ((".", "rabbitmq-4.3"), 5, "holds no trace.jsonl"),
        (("nowhere", "rabbitmq-4.3"), 2, "nowhere: is no target or dialect"),
        (("rabbitmq-4.0", "rabbitmq-4.3"), 2, "rabbitmq-4.0 is a dialect, which only a recording is compared with"),
        ((".", "rabbitmq-4.3;global-qos=perhaps"), 2, "global-qos is never 'perhaps'"),
        ((".", "rabbitmq-4.3", "--scenarios", "."), 2, ".: holds no command file"),
        ((".", "rabbitmq-4.3", "--gate", "known"), 2, "--gate known is for two brokers"),
        ((".", "rabbitmq-4.3", "--sequences", "3"), 2, "--sequences is for two targets, and . is a recording"),
        (("embedded", "embedded", "--spark", "local"), 2, "--spark is for a recording"),
        (("embedded", "embedded", "--json", "."), 2, ".: cannot be written: Is a directory"),
        (("embedded", "embedded", "--deviations", "nowhere.toml"), 2, "nowhere.toml: No such file"),
        (("embedded", "nowhere"), 2, "nowhere: is no target or dialect, and there is no such file"),
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


def test_a_deviation_file_accepts_what_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "accepted.toml"
    words = ("embedded", "embedded:multiple-zero-ignored", *SMALL, "--out", tmp_path / "o", "--quiet")
    entry = '[[deviation]]\nidentity = "{}|*"\nreason = "known to us"\n'
    file.write_text(entry.format("ACK-003") + entry.format("STREAM-006"))
    assert diff(*words, "--deviations", file, "--json", tmp_path / "a.json") == 0
    differences = json.loads((tmp_path / "a.json").read_text())["differences"]
    assert differences and {each["known"] for each in differences} == {"known to us"}
    assert {each["severity"] for each in differences} == {"stuck"}
    assert "all accepted" in " ".join(capsys.readouterr().out.split())
    file.write_text(file.read_text() + "expires = 2020-01-01\n")
    assert diff(tmp_path / "o" / "one", tmp_path / "o" / "other", "--deviations", file, "--quiet") == 1
    assert "it expired on 2020-01-01" in capsys.readouterr().err


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was done on 4.0, by two connections."""
    place = tmp_path_factory.mktemp("recording")
    (place / "c.amqp").write_text("a.1 queue.declare q\nb.1 basic.qos 3 global\n")
    commands = ["replay", str(place / "c.amqp"), "embedded", "--dialect", "rabbitmq-4.0"]
    assert main([*commands, "--out", str(place / "recorded")]) == 0
    return place / "recorded"


def test_what_a_recording_meets(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"a.{ending}" for ending in ("html", "md", "json")]
    named = [word for file in files for word in (f"--{file.suffix[1:].replace('md', 'markdown')}", file)]
    assert diff(recording, "rabbitmq-4.3", *named) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "No longer works" in out and "(channel-prefetch; documented change)" in out
    assert "basic.qos prefetch-count=3 global=true" in out
    for file in files:
        text = file.read_text()
        assert "channel-prefetch" in text and "transient-queues" in text
        assert "https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/4.3.0.md" in text
    found = json.loads(files[2].read_text())
    assert found["exit_code"] == 1 and {each["effect"] for each in found["met"]} == {"no longer works"}
    assert diff(recording, "rabbitmq-4.0") == 0
    assert diff(recording, "rabbitmq-4.3;global-qos=permitted;transient-nonexcl-queues=permitted", "--quiet") == 0
    # a broker says by itself what it is
    assert diff(recording, "embedded", "--quiet") == 1


def test_of_a_recording_too_a_deviation_file_accepts_changes(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "accepted.toml"
    names = ("channel-prefetch", "transient-queues")
    file.write_text("".join(f'[[deviation]]\nchange = "{name}"\nreason = "r"\n' for name in names))
    assert diff(recording, "rabbitmq-4.3", "--deviations", file, "--quiet") == 0
    assert "2 by which something no longer works; all accepted" in " ".join(capsys.readouterr().out.split())
    file.write_text('[[deviation]]\nchange = "nonsense"\nreason = "r"\n')
    assert diff(recording, "rabbitmq-4.3", "--deviations", file) == 2
    assert "has the change 'nonsense', which is none of" in capsys.readouterr().err


def test_check_by_another_dialect_says_what_is_met(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(recording)]) == 0
    assert main(["check", str(recording), "--dialect", "rabbitmq-4.3", "--quiet"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "This application meets 2 changes: 2 by which something no longer works" in out
    assert main(["check", str(recording), "--dialect", "rabbitmq-4.0"]) == 0


def test_a_capture_and_a_store_are_recordings(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    store = tmp_path / "store"
    assert main(["pipeline", "import", str(store), str(recording), "--run", "one"]) == 0
    assert diff(store, "rabbitmq-4.3", "--quiet") == 1
    write_pcap(tmp_path / "a.pcap", whole())
    assert diff(tmp_path / "a.pcap", "rabbitmq-3", "--quiet") in (0, 1)
    assert "This application meets" in capsys.readouterr().out


@pytest.mark.together("spark")
def test_a_store_on_spark(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    store = tmp_path / "store"
    for run in ("one", "two"):
        trace = tmp_path / run / "trace.jsonl"
        trace.parent.mkdir()
        trace.write_text((recording / "trace.jsonl").read_text().replace("commands", run))
        assert main(["pipeline", "import", str(store), str(trace.parent), "--run", run]) == 0
    assert diff(store, "rabbitmq-4.3") == 1
    alone = capsys.readouterr().out
    assert diff(store, "rabbitmq-4.3", "--spark", "local[1]") == 1
    assert capsys.readouterr().out.splitlines()[-8:] == alone.splitlines()[-8:]


def test_a_gate_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        diff("embedded", "embedded", "--gate", "knwn")
    assert "argument --gate: 'knwn' is none of promise, known" in capsys.readouterr().err
