"""docs/faults.md, followed as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.protocol.methods import FAULTS
from amqpspec.targets.brokers.owner import OWNER

PAGE = (Path(__file__).parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")


def test_its_example_passes_on_the_embedded_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (commands,) = re.findall(r"`killed.amqp`:\n\n```\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "killed.amqp").write_text(commands, encoding="utf-8")
    assert main(["replay", str(tmp_path / "killed.amqp"), "embedded"]) == 0
    said = capsys.readouterr().out
    assert said.index("broker.0 > broker.kill") < said.index("a.0 < socket.closed") < said.index("> broker.restart")


def test_each_of_its_commands_can_be_written() -> None:
    table = PAGE.partition("## The commands")[2].partition("##")[0]
    lines = re.findall(r"`((?:broker|network)\.[^`]*)`", table)
    assert {parse_command(line).method for line in lines} == FAULTS - {"queue.transfer-leader"}


def test_the_label_that_it_names_is_the_one() -> None:
    assert f"`{OWNER}`" in PAGE
