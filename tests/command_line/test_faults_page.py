"""docs/faults.md, followed as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.protocol.methods import FAULTS
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
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


def test_what_a_target_does_not_offer_is_not_carried_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "moved.amqp"
    path.write_text("a.1 queue.declare q\nqueue.transfer-leader q node=1\n", encoding="utf-8")
    assert main(["replay", str(path), "embedded"]) == 4
    assert "moved: needs queue.transfer-leader, which this target does not offer" in capsys.readouterr().out


def test_networks_of_connections_fail_on_any_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.amqp"
    path.write_text("a.1 queue.declare q\nnetwork.cut connection=a\na.1 basic.get q\nnetwork.heal connection=a\n")
    with EmbeddedBroker() as broker:
        url = f"amqp://127.0.0.1:{broker.address.port}"
        assert main(["replay", str(path), url]) == 0
    said = capsys.readouterr().out
    assert said.index("> basic.get") < said.index("broker.0 > network.heal") < said.index("< basic.get-empty")
