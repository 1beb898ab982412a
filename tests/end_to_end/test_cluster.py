"""Clusters of three nodes: all of the area CLUSTER on each RabbitMQ, as docs/cluster.md shows it, and what is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.model.promises.registry import requirements
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.owner import OWNER

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
CLUSTER = tuple(each.id for each in requirements().values() if each.id.startswith("CLUSTER-"))


@pytest.fixture(params=["rabbitmq_3_10", "rabbitmq_4_0", "rabbitmq_4_3"])
def rabbitmq_version(request: pytest.FixtureRequest) -> DockerBroker:
    """It is here for its image, and to report a missing one; the run starts a cluster of its own."""
    broker: DockerBroker = request.getfixturevalue(request.param)
    return broker


@pytest.mark.full
def test_what_a_cluster_promises_is_kept_and_nothing_of_it_stays(
    rabbitmq_version: DockerBroker, tmp_path: Path
) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "run", f"cluster:{rabbitmq_version.image}", "--sequences", "0",
         "--only", "CLUSTER", "--only", "CANCEL-017", "--shrinking-time", "0", "--gate", Gate.KNOWN.value,
         "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said, _ = run.communicate(timeout=1500)
    assert run.returncode == 0, said
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["lost"] is None
    dialect = told["target"]["dialect"]
    exercised = {each["id"] for each in told["requirements"] if each["verdict"] in ("pass", "fail")}
    holding = {id for id in ("CANCEL-017", *CLUSTER) if dialect in requirements()[id].dialects}
    assert holding - exercised == set()
    client = docker.from_env()
    try:
        left = [*client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True),
                *client.networks.list(filters={"label": OWNER})]  # fmt: skip
        owners = [(each.attrs.get("Config") or each.attrs)["Labels"][OWNER] for each in left]
        assert [owner for owner in owners if owner.split()[2] == str(run.pid)] == []
    finally:
        client.close()


def test_the_page_has_each_requirement() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [id for id in CLUSTER if f"| {id} " not in page] == []
