"""The documentation as a site: it builds without a warning, and the commands that its tour shows do what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.verdicts.rung import Kind
from amqpspec.model.promises.registry import IDENTIFIER, requirements
from mkdocs_hooks import LESSONS, failure_shown, findings, pages, shown

ROOT = Path(__file__).parents[2]
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"), re.DOTALL)
    for line in block.splitlines()
]


def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "site"
    page = (site / "requirements" / "ack.html").read_text(encoding="utf-8")
    for id, each in requirements().items():
        assert (site / "requirements" / f"{id}.html").exists()
        assert each.area != "ack" or id in page
    found = [each for each in (site / "findings").iterdir() if each.suffix == ".html" and each.stem != "index"]
    headings = re.findall(r"^## ", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == len(headings)
    door = (site / "index.html").read_text(encoding="utf-8")
    doors = ("testing-a-broker.html", "testing-with-rabbitmq.html", "upgrade.html", "requirements/index.html")
    assert all(f'href="{each}"' in door for each in doors) and "did not come" in door
    for page in (door, (site / "requirements" / "ACK-003.html").read_text(encoding="utf-8")):
        assert not re.search(r"""(?:src|srcset)=["']?https?:|<link[^>]+href=["']?https?:|@import""", page), "loaded"


def test_what_the_first_page_shows_is_what_the_run_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "embedded:multiple-zero-ignored", "--only", "ACK-003", "--sequences", "0"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    *_, missing = failure_shown()
    assert missing.kind is Kind.MISSING
    assert f"allowed {missing.place} < {missing.text}" in printed


def test_each_page_of_a_requirement_says_what_there_is() -> None:
    made = dict(pages())
    without_frames = []
    for id, each in requirements().items():
        page = made[f"requirements/{id}.md"]
        assert page.startswith(f"# {id} ")
        for heading in ("## How it shows", "## What each version does", "## What brokers are known to do"):
            assert heading in page
        assert ("## Why it is so" in page) is bool(each.why)
        if 'class="ladder"' not in page:
            without_frames.append(id)
    assert len(without_frames) < len(requirements()) / 10, without_frames


def test_why_is_said_of_the_areas_that_are_learned_first() -> None:
    areas = ("ack", "cancel", "confirm", "qos", "timeout")
    assert not [id for id, each in requirements().items() if each.area in areas and not each.why]


def test_the_pages_across_areas_name_requirements_that_there_are() -> None:
    for place in LESSONS:
        named = set(IDENTIFIER.findall((ROOT / "docs" / place).read_text(encoding="utf-8")))
        assert len(named) > 10
        assert named <= requirements().keys()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) < 10_000


def test_ten_are_the_worst() -> None:
    listed = findings()
    assert sorted(each.rank for each in listed if each.rank) == list(range(1, 11))
    for each in listed:
        assert not each.said("Upstream") or re.search(r"\]\(https://github.com/rabbitmq/|release notes", each.text)


def test_each_finding_has_commands_a_program_of_them_and_what_is_observed() -> None:
    for each in findings():
        all_shown = shown(each)
        assert len(all_shown) == len(each.blocks) > 0, each.title
        assert each.said("What to do"), each.title
        for one in all_shown:
            compile(one.program, each.title, "exec")
            assert "import pika" in one.program
            assert "\n# " not in f"\n{one.commands}", f"{each.title}: a sign that cannot be read"
            assert one.signs, each.title
            assert one.program.splitlines()[-1] in ("conclude()", "os._exit(seen)", "os._exit(any(seen))")


def test_a_page_has_the_whole_program_and_says_what_is_observed() -> None:
    made = dict(pages())
    for each in findings():
        page = made[f"findings/{each.place}"]
        for one in shown(each):
            assert one.program in page and one.commands in page
            for signs in one.signs:
                assert f"{each.part} {signs.where}, {signs.often}" in page and "; ".join(signs.lines) in page
        assert "Upstream" in page and "What to do" in page


def test_the_tour_has_commands() -> None:
    assert len(COMMANDS) == 2


@pytest.mark.parametrize(("line", "code"), list(zip(COMMANDS, (0, 1), strict=True)))
def test_a_command_of_the_tour(
    line: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(line)
    assert program == "amqpspec"
    assert main(arguments) == code
    assert "ACK-003" in capsys.readouterr().out
