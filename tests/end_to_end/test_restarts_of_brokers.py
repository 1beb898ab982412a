"""Brokers that are stopped, killed and paused: all of the area DURABLE on each RabbitMQ, as docs/faults.md shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.model.promises.registry import requirements
from amqpspec.targets.brokers.docker_broker import DockerBroker

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


@pytest.fixture(params=["rabbitmq_3_10", "rabbitmq_4_0", "rabbitmq_4_3"])
def rabbitmq_version(request: pytest.FixtureRequest) -> DockerBroker:
    broker: DockerBroker = request.getfixturevalue(request.param)
    return broker


def test_what_survives(rabbitmq_version: DockerBroker, tmp_path: Path) -> None:
    """In a container of its own, which keeps its data."""
    words = ["--only", "DURABLE", "--sequences", "0", "--shrinking-time", "0", "--gate", Gate.KNOWN.value]
    code = main(["run", f"docker:{rabbitmq_version.image}", *words, "--out", str(tmp_path)])
    said = json.loads((tmp_path / "report.json").read_text())
    assert (code, said["lost"]) == (0, None)
    durable = {each.id for each in requirements().values() if each.id.startswith("DURABLE-")}
    exercised = {each["id"] for each in said["requirements"] if each["verdict"] in ("pass", "fail")}
    assert durable - exercised == set()


def test_the_page_has_each_requirement() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [id for id in requirements() if id.startswith("DURABLE-") and f"| {id} " not in page] == []
