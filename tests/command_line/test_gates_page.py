"""The two gates that docs/gate.md has a newcomer try: one that is red, and one that is green when that is accepted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from amqpspec.command_line import main

PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text(encoding="utf-8")
#: The command, and the exit code that it is said to have.
GATES = re.findall(r"^amqpspec (run .*); echo \$\? +# (\d)$", PAGE, re.MULTILINE)


def test_a_red_gate_and_a_green_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [code for _, code in GATES] == ["1", "0", "0"]
    monkeypatch.chdir(tmp_path)
    for command, code in GATES:
        assert main(shlex.split(command)) == int(code)
        assert ("only as accepted" in capsys.readouterr().out) is (code == "0")
    assert 'identity = "ACK-003|' in (tmp_path / "accepted.toml").read_text(encoding="utf-8")
