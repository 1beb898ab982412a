"""An error of the suite costs the sequence that it was raised in: it is undecided, and all else goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line import main, run_outputs
from amqpspec.conformance.failures import findings, ladder
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session import cleanup
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.causes import Causes
from amqpspec.conformance.verdicts.judge import SequenceJudge
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.reports import badge, html, json_report, junit, summary
from amqpspec.reports.progress import PlainProgress
from tests.planted import WHAT, break_judge, raising

SMALL = ("--only", "ACK-003", "--only", "RECOVER-001", "--sequences", "0", "--seed", "1", "--jobs", "1", "--out", "o")
ROOT = Path(__file__).parents[2]
LINE = "amqpspec: the suite erred in "


@pytest.fixture
def amqpspec(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, list[str]]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err.splitlines()

    return call


def verdicts(directory: str = "o") -> dict[str, str]:
    report = json.loads((Path(directory) / "report.json").read_text())
    return {each["id"]: each["verdict"] for each in report["requirements"]}


def break_session(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    send = Conversation.send

    def broken(self: Conversation, event: TraceEvent, more: bool = False) -> None:
        if event.name == method:
            raise KeyError("planted")
        send(self, event, more)

    monkeypatch.setattr(Conversation, "send", broken)


@pytest.mark.parametrize("plant", [break_judge, break_session])
def test_a_run_goes_on_and_keeps_what_is_to_be_sent(amqpspec: Any, monkeypatch: pytest.MonkeyPatch, plant: Any) -> None:
    plant(monkeypatch, "basic.recover")
    code, out, err = amqpspec("run", *SMALL)
    assert code == 4, (out, err)
    assert verdicts()["ACK-003"] == "pass" and verdicts()["RECOVER-001"] == "inconclusive"
    assert len(err) == 1 and err[0].startswith(LINE) and WHAT in err[0]
    assert "o/errors/01.amqp and o/trace.jsonl" in err[0]
    assert ".py:" in err[0], "it says where"
    assert "a.1 basic.recover" in Path("o/errors/01.amqp").read_text() and "in which the suite erred:" in out
    (kept, *_) = json.loads(Path("o/report.json").read_text())["errors"]
    assert kept["commands"] and WHAT in kept["error"] and kept["sequence"].startswith("scenario RECOVER-001")
    ends = [row for row in read_trace("o") if row["kind"] == "end" and row["sequence"] == kept["sequence"]]
    assert [(row["verdict"], WHAT in (row["reason"] or "")) for row in ends] == [("inconclusive", True)]
    here = Path.cwd()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert amqpspec("run", *SMALL)[0] == 0 and not list(Path("o/errors").glob("*")), "and no later run has its files"


def test_a_real_failure_counts_beside_it(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_judge(monkeypatch, "basic.recover")
    code, _, err = amqpspec("run", "embedded:multiple-zero-ignored", *SMALL)
    assert code == 1 and any(line.startswith(LINE) for line in err)
    assert (verdicts()["ACK-003"], verdicts()["RECOVER-001"]) == ("fail", "inconclusive")


def test_the_search_goes_on_when_the_plan_breaks(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    carry_out = Plan.carry_out

    def broken(self: Plan, command: Command) -> None:
        if command.method == "queue.purge":
            raise KeyError("planted")
        carry_out(self, command)

    monkeypatch.setattr(Plan, "carry_out", broken)
    code, _, err = amqpspec("run", "--search-only", "--sequences", 18, "--seed", 2, "--jobs", 1, "--out", "o")
    assert code == 4 and err[0].startswith(LINE) and WHAT in err[0]
    report = json.loads(Path("o/report.json").read_text())
    assert report["sequences"] == 18 and 0 < len(report["undecided"]) < 18
    assert all("queue.purge" in each["commands"][-1] for each in report["errors"])


def test_a_round_that_cannot_be_made_costs_itself(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpspec.conformance.workers.make_round", raising)
    code, _, err = amqpspec("run", "--only", "ACK-003", "--sequences", 5, "--seed", 1, "--jobs", 1, "--out", "o")
    assert code == 4 and err[0].startswith(LINE) and verdicts()["ACK-003"] == "pass"


@pytest.mark.parametrize(
    "place", [(cleanup, "part"), (SequenceJudge, "_judgement"), (SequenceJudge, "command"), (Causes, "judged")]
)
def test_wherever_in_a_sequence_it_is_raised(
    amqpspec: Any, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    monkeypatch.setattr(*place, raising)
    code, _, err = amqpspec("run", *SMALL)
    assert code == 4 and len(err) == 1 and err[0].startswith(LINE) and WHAT in err[0]
    assert (verdicts()["ACK-003"], verdicts()["RECOVER-001"]) == ("inconclusive", "inconclusive")


@pytest.mark.parametrize("name", ["shrink", "program"])
def test_shrinking_that_breaks_leaves_the_failure_as_it_was(
    amqpspec: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(findings, name, raising)
    code, _, err = amqpspec("run", "embedded:multiple-zero-ignored", *SMALL)
    assert code == 1 and [line.startswith(LINE) for line in err] == [True]
    (failure, *_) = json.loads(Path("o/report.json").read_text())["failures"]
    assert failure["requirement"] == "ACK-003" and failure["commands"]


@pytest.mark.parametrize(
    "module, name, file",
    [
        (html, "render_html", "o/report.html"), (json_report, "render_json", "o/report.json"),
        (junit, "render_junit", "j.xml"), (summary, "render_summary", "s.md"), (badge, "render_badge", "b.svg"),
    ],
)  # fmt: skip
def test_a_report_that_breaks_costs_no_other(
    amqpspec: Any, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, file: str
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(module, name, raising)
    code, _, err = amqpspec("run", *SMALL, "--junit", "j.xml", "--markdown", "s.md", "--badge", "b.svg")
    assert (code, len(err)) == (0, 1), err
    assert err[0].startswith(f"amqpspec: {file} was left out: the suite erred: {WHAT}")
    files = {"o/report.html", "o/report.json", "j.xml", "s.md", "b.svg"}
    assert {each for each in files if Path(each).exists()} == files - {file}


def test_what_is_displayed_costs_no_verdict(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainProgress, "__call__", raising)
    monkeypatch.setattr("amqpspec.reports.terminal.print_report", raising)
    monkeypatch.setattr(ladder, "_ladder", raising)
    code, _, err = amqpspec("run", "embedded:multiple-zero-ignored", *SMALL)
    assert code == 1 and verdicts()["ACK-003"] == "fail"
    assert all(line.startswith("amqpspec: ") for line in err) and sum(WHAT in line for line in err) == 3, err


def test_replay(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("c.amqp").write_text("a.1 queue.declare q\na.1 basic.recover\na.1 queue.purge q\n")
    break_judge(monkeypatch, "basic.recover")
    code, out, err = amqpspec("replay", "c.amqp", "--quiet")
    assert code == 4 and err == [err[0]] and "please send c.amqp and " in err[0] and WHAT in err[0]
    trace = Path(err[0].partition(" and ")[2].partition(" to the project")[0])
    assert [row["text"] for row in read_trace(trace) if row["kind"] == "command"][-1] == "a.1 basic.recover"
    assert out.splitlines()[-1].startswith("inconclusive: the suite erred: ")
    assert "a.1 basic.recover" in amqpspec("replay", "c.amqp")[1].partition("in which the suite erred:")[2]
    break_judge(monkeypatch, "connection.close")  # nothing more is judged when it parts
    monkeypatch.setattr(cleanup, "part", raising)
    Path("c.amqp").write_text("a.1 queue.declare q\n")
    assert amqpspec("replay", "c.amqp")[0] == 4


def test_a_rule_that_breaks_shows_no_traceback(tmp_path: Path) -> None:
    """The embedded broker goes by the same rules, so that it breaks down as well, which ends its connection."""
    (tmp_path / "c.amqp").write_text("a.1 queue.declare q\na.1 basic.recover\nb.1 queue.declare r\n")
    program = "\n".join([
        "import sys", "from amqpspec.command_line import main", "from amqpspec.model.rules.table import RULES",
        "from tests.planted import raising", "RULES['basic.recover'] = raising",
        f"sys.exit(main(['replay', {str(tmp_path / 'c.amqp')!r}, '--quiet']))",
    ])  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (3, 4), done
    assert done.stderr.count("\n") == 2 and all(line.startswith("amqpspec: ") for line in done.stderr.splitlines())
    assert LINE in done.stderr and "the model broke down over basic.recover" in done.stderr


def test_check_and_diff_and_pipeline(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert amqpspec("run", *SMALL, "--quiet")[0] == 0
    assert amqpspec("run", "embedded:recover-ok-missing", *SMALL[:-1], "f", "--quiet")[0] == 1
    assert amqpspec("pipeline", "import", "store", "o")[0] == 0
    assert amqpspec("diff", "./o", "./f")[0] == 1
    break_judge(monkeypatch, "basic.recover")
    code, out, err = amqpspec("check", "o")
    assert code == 4 and "ACK-003" in out and [line.startswith(LINE) for line in err] == [True]
    assert "a.1 basic.recover" in out.partition("in which the suite erred:")[2]
    code, _, err = amqpspec("diff", "./o", "./f")
    assert code == 4 and [line.startswith(LINE) for line in err] == [True], "no difference where one is undecided"
    code, out, err = amqpspec("pipeline", "judge", "store")
    assert code == 4 and [line.startswith(LINE) for line in err] == [True] and "0 failed" in out


def test_a_frame_that_somebody_wrote_is_no_error_of_the_suite(amqpspec: Any) -> None:
    assert amqpspec("run", *SMALL, "--quiet")[0] == 0
    text = Path("o/trace.jsonl").read_text().replace('"delivery_tag":1,"redelivered"', '"redelivered"')
    Path("o/trace.jsonl").write_text(text)
    code, _, err = amqpspec("check", "o")
    assert code == 5 and "cannot be judged at its row basic.deliver" in err[-1]


def test_profile(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_judge(monkeypatch, "basic.recover-async")
    code, out, err = amqpspec("profile", "embedded", "--dialect", "amqp-0-9-1", "--json")
    assert code == 4 and [line.startswith(LINE) for line in err] == [True]
    assert json.loads(out)["choices"]


def test_campaign(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("campaign", "--store", "store", "embedded", "--sequences", 9, "--seed", 7, "--theme", "traffic")
    break_judge(monkeypatch, "basic.get")
    code, out, err = amqpspec(*words)
    assert code == 4 and [line.startswith(LINE) for line in err] == [True], err
    assert "9 sequences" in out and " 0 failed" in out


def test_what_nothing_else_catches_is_one_line(amqpspec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_outputs, "_command_files", raising)
    code, _, err = amqpspec("run", *SMALL)
    assert code == 4 and len(err) == 1 and err[0].startswith(f"amqpspec: the suite erred: {WHAT} (")
    assert os.linesep not in err[0]
