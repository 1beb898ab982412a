"""A cluster of three nodes of RabbitMQ 4.3: what a run of the area CLUSTER shows on it, and what is left afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from amqpspec.targets.brokers.cluster_broker import ClusterBroker
from amqpspec.targets.brokers.owner import OWNER

pytestmark = pytest.mark.full

#: All but CLUSTER-011, in which a broker takes more than a minute to answer, and what does not hold in 4.3.
SHOWN = [f"CLUSTER-{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)]


def test_what_a_cluster_promises_is_kept_and_nothing_of_it_stays(cluster_4_3: ClusterBroker, tmp_path: Path) -> None:
    """The fixture is here to report a missing image; the run starts a cluster of its own."""
    options = [word for id in SHOWN for word in ("--only", id)]
    run = subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "run", f"cluster:{cluster_4_3.image}", "--sequences", "0", *options,
         "--out", str(tmp_path / "o"), "--json", str(tmp_path / "run.json")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said, _ = run.communicate(timeout=900)
    assert run.returncode == 0, said
    told = json.loads((tmp_path / "run.json").read_text())
    assert told["failures"] == []
    exercised = {each["id"] for each in told["requirements"] if each["exercised"]}
    assert set(SHOWN) - exercised == set()
    client = docker.from_env()
    try:
        left = [*client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True),
                *client.networks.list(filters={"label": OWNER})]  # fmt: skip
        owners = [(each.attrs.get("Config") or each.attrs)["Labels"][OWNER] for each in left]
        assert [owner for owner in owners if owner.split()[2] == str(run.pid)] == []
    finally:
        client.close()
