"""`--scenarios DIR`: docs/own-rules.md, whose files and commands are carried out as they stand; reports; bad files."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.model.promises.registry import requirements, suite_requirements

PAGE = (Path(__file__).parents[2] / "docs" / "own-rules.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^amqpspec (.*?); echo \$\? +# (\d)$", PAGE, re.MULTILINE)
SHORT = ("--sequences", "0", "--seed", "1", "--jobs", "1", "--deadline", "1")
UNLIKE = """\
@requirement HOUSE-001
@title An unknown tag is answered with 404 here
@severity wrong code
a.1 queue.declare q
a.1 basic.ack 9
expect a.1 channel.close reply-code=404
b.1 queue.declare q passive
expect b.1 queue.declare-ok message-count=0
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files of the page."""
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"```\n# (own/\S+)\n(.*?)```", PAGE, re.DOTALL):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_does_what_it_says(page: Path) -> None:
    assert len(COMMANDS) == 6 and len(list(page.glob("own/*.amqp"))) == 2
    for line, code in COMMANDS:
        short = ["--seed", "1", "--jobs", "1"] if line.startswith("run") else []
        assert main([*shlex.split(line), *short, "--deadline", "1"]) == int(code), line
    assert requirements() is suite_requirements()


def test_reports_have_it_like_any_other(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "embedded", "--scenarios", "own", "--only", "ORDERS", *SHORT, "--junit", "junit.xml"]
    assert main([*words, "--markdown", "summary.md"]) == 1
    assert "ORDERS-002 Who declares a queue otherwise than it is gets 405  wrong code" in capsys.readouterr().out
    report = json.loads(Path("amqpspec-out/report.json").read_text(encoding="utf-8"))
    said = {each["id"]: each for each in report["requirements"]}
    assert said["ORDERS-001"]["verdict"] == "pass" and said["ORDERS-001"]["exercised"] == 2 * 4
    assert said["ORDERS-002"]["verdict"] == "fail"
    (failure,) = report["failures"]
    assert failure["identity"] == "ORDERS-002|wrong argument|channel.close reply-code"
    assert failure["severity"] == "wrong code" and failure["commands"][-1].startswith("expect a.1 channel.close")
    cases = {each.get("name", ""): each for each in ElementTree.parse("junit.xml").iter("testcase")}
    assert cases["ORDERS-002 Who declares a queue otherwise than it is gets 405"].find("failure") is not None
    for file in ("summary.md", "amqpspec-out/report.html"):
        assert "ORDERS-002" in Path(file).read_text(encoding="utf-8")
    assert main(["check", "amqpspec-out", "--quiet"]) == 1 and "ORDERS-002" in capsys.readouterr().out
    (file,) = Path("amqpspec-out/failures").glob("*.amqp")
    assert main(["replay", str(file), "--quiet", "--deadline", "1"]) == 1


def test_the_same_rules_on_two_brokers(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["embedded", "embedded:dead-letter-lost", "--scenarios", "own", "--only", "ORDERS", *SHORT]
    assert main(["diff", *words, "--json", "found.json"]) == 1
    assert "ORDERS-001" in Path("found.json").read_text(encoding="utf-8")
    assert "1 failure of both, which are no difference" in capsys.readouterr().out  # ORDERS-002
    assert requirements() is suite_requirements()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_line_that_holds_outranks_the_model(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "HOUSE-001.amqp").write_text(UNLIKE)
    words = ["run", "--scenarios", str(tmp_path), "--only", "HOUSE", *SHORT, "--jobs", jobs]
    assert main([*words, "embedded:wrong-reply-code", "--out", str(tmp_path / "out")]) == 0
    assert main(["check", str(tmp_path / "out")]) == 0
    assert main([*words, "embedded", "--out", str(tmp_path / "other")]) == 1


def test_the_model_judges_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What no line speaks of is as in any scenario."""
    (tmp_path / "HOUSE-001.amqp").write_text(UNLIKE.replace("expect a.1 channel.close reply-code=404\n", ""))
    words = ["run", "embedded:wrong-reply-code", "--scenarios", str(tmp_path), "--only", "HOUSE", *SHORT]
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    assert "✗ ACK-006" in capsys.readouterr().out


def test_what_cannot_be_put_to_the_test_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The delivery that is overruled is of what the model knows no more, so that nothing follows it."""
    file = tmp_path / "x.amqp"
    file.write_text(
        "a.1 queue.declare q\na.1 basic.publish q body=m1\na.1 basic.get q\nexpect a.1 basic.get-empty\n"
        "a.1 basic.get q\nexpect a.1 basic.get-ok body=m1\n"
    )
    assert main(["replay", str(file), "embedded:get-empty-with-messages", "--deadline", "1"]) == 4
    assert "judging ended before the last 1 of 2 lines that expect something" in capsys.readouterr().out
    assert main(["replay", str(file), "embedded", "--deadline", "1", "--quiet"]) == 1


def test_identifiers_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["replay", "get-001", "--quiet"]) == 0
    assert main(["replay", "ACK-003", "embedded:multiple-zero-ignored", "--quiet", "--deadline", "1"]) == 1
    assert main(["replay", "ORDERS-001", "--quiet"]) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@requirement ORDERS-009\n@title x\na.1 queue.declare q\n", ":1:14: 'ORDERS-009' is no requirement"),
        ("@requirement Orders\n@title x\n@severity stuck\na.1 queue.declare q\n", ":1:14: 'Orders' is no identifier"),
        ("@requirement ORDERS-009\n@severity stuck\na.1 queue.declare q\n", ":1:14: ORDERS-009 is a rule of one's own"),
        ("@requirement ORDERS-009\n@title x\n@severity bad\na.1 queue.declare q\n", ":3:11: 'bad' is not a severity"),
        ("@requirement ACK-999\n@title x\n@severity stuck\na.1 queue.declare q\n", ":1:14: ACK-999: ACK is an area of"),
        ("a.1 queue.declare q\nexpect\n", ":2:7: what is expected is missing"),
        ("a.1 queue.declare q\nexpect a.1 channel.clse\n", ":2:12: 'channel.clse' is not a method"),
        ("a.1 queue.declare q\nexpect ready q many\n", ":2:16: 'many' is not a number"),
        ("a.1 queue.declare q\nexpect nothing more\n", ":2:16: nothing follows"),
        ("a.1 queue.declare q\nexpect a.1 channel.close code=3\n", ":2:26: 'code' is nothing that a line can expect"),
        ("a.1 queue.declare q\n", ":1:1: a scenario says by @requirement what it is written for"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    Path("own/x.amqp").write_text(text)
    assert main(["run", "embedded", "--scenarios", "own"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"amqpspec: own/x.amqp{said}") and error.count("\n") == 1
    assert not Path("amqpspec-out").exists()


def test_bad_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = all_scenarios()[0]
    for folder, files, said in (
        ("none", None, "no such folder"),
        ("empty", {}, "holds no command file"),
        ("alike", {f"{known.name}.amqp": UNLIKE}, "the suite has a scenario of that name"),
        ("two", {"a.amqp": UNLIKE, "b.amqp": UNLIKE.replace("404 here", "5")}, "HOUSE-001 has another @title"),
    ):
        for name, text in (files or {}).items():
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(text)
        if files == {}:
            (tmp_path / folder).mkdir()
        assert main(["run", "embedded", "--scenarios", str(tmp_path / folder)]) == 2
        assert said in capsys.readouterr().err
