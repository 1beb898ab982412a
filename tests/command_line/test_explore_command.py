"""`amqpspec explore`: which worlds, what is told of them, and the exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.model.rules.basic import requeue

WORLD = """
title = "One who gives back"
setup = ["a.1 queue.declare q durable", "a.1 basic.qos 1", "a.1 basic.consume q tag=t"]
commands = ["b.1 basic.publish q", "a.1 basic.nack 1 requeue"]
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "back.toml"
    path.write_text(WORLD, encoding="utf-8")
    return path


def test_a_world_whose_properties_hold(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(world), "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("back: ")
    assert "all properties hold" in told
    assert "properties hold in every state that was explored" in told


def test_what_is_not_explored_is_told(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(world), "--states", "3", "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert "stopped at 3 states: " in told
    assert "not to their end: back" in told


def test_a_violation_is_a_command_file(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requeue, "_put_back", lambda *_: None)
    assert main(["explore", str(world), "--jobs", "1", "--out", str(tmp_path / "found")]) == 1
    told = capsys.readouterr().out
    assert "one place in back: Every accepted message is in exactly one place" in told
    file = tmp_path / "found" / "back-one-place-1.amqp"
    assert f"amqpspec replay {file}" in told.replace("\n", "")
    text = file.read_text(encoding="utf-8")
    assert "a.1 basic.nack 1 requeue=true &" in text or "a.1 basic.nack 1 requeue &" in text
    assert "# the state before the last step" in text
    monkeypatch.undo()
    assert main(["replay", str(file), "--quiet"]) == 0, "the embedded broker is right"


def test_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--list"]) == 0
    assert "settlement quorum " in capsys.readouterr().out
    assert main(["explore", "--properties"]) == 0
    assert "same " in capsys.readouterr().out


def test_what_made_a_difference_in_no_world(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(world), "--jobs", "1", "--requirements"]) == 0
    told = capsys.readouterr().out
    assert "made a difference, these in no world:" in told
    assert "TX-001" in told


def test_a_world_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "nothing"]) == 2
    assert "nothing: no such world" in capsys.readouterr().err
    (tmp_path / "bad.toml").write_text("commands = 1", encoding="utf-8")
    assert main(["explore", str(tmp_path / "bad.toml")]) == 2
    assert "commands must be a list of texts" in capsys.readouterr().err
