"""The documentation as a site: it builds without a warning, and the commands that its tour shows do what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.model.promises.registry import requirements
from mkdocs_hooks import findings, pages, shown

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
    page = (tmp_path / "site" / "requirements" / "ack" / "index.html").read_text(encoding="utf-8")
    for id, each in requirements().items():
        assert each.area != "ack" or id in page
    findings = list((tmp_path / "site" / "findings").iterdir())
    headings = re.findall(r"^## ", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len([each for each in findings if each.is_dir()]) == len(headings)


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
            assert one.program.endswith("\nconclude()\n")


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
