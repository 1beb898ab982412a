"""Clusters of three nodes: all of the area CLUSTER on each RabbitMQ, as docs/cluster.md shows it, and what is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from amqpspec.command_line.exit_codes import TARGET_LOST
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.model.promises.registry import requirements
from amqpspec.targets.brokers.owner import OWNER
from tests.conftest import RABBITMQ_IMAGES, BrokerPool

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
CLUSTER = tuple(each.id for each in requirements().values() if each.id.startswith("CLUSTER-"))

#: Each is a group of its own (tests/scheduling.py): a run mostly waits, and starts a cluster of its own.
VERSIONS = [
    pytest.param(name, marks=pytest.mark.broker(f"cluster_{name}"))
    for name in ("3_10", "4_0", "4_3")
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_cluster_promises_is_kept_and_nothing_of_it_stays(
    version: str, broker_pool: BrokerPool, tmp_path: Path
) -> None:
    target = f"cluster:{RABBITMQ_IMAGES[f'rabbitmq_{version}']}"
    run = subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "run", target, "--sequences", "0",
         "--only", "CLUSTER", "--only", "CANCEL-017", "--shrinking-time", "0", "--gate", Gate.KNOWN.value,
         "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said, _ = run.communicate(timeout=1500)
    if run.returncode == TARGET_LOST:
        broker_pool.report_missing(f"cluster_{version}", said)
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
