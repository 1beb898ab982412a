"""RabbitMQ as a broker of one's own, which runs already: a file names its address, and commands or its management API.

Policies are set, and faults are done, by the commands alone; then policies by the API alone, which does no faults.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from amqpspec.command_line import main
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.container_log import ContainerLog
from amqpspec.targets.brokers.docker_engine import (
    AMQP_PORT,
    ENVIRONMENT,
    await_ready,
    connect_to_engine,
    provide_image,
    remove_named,
)
from amqpspec.targets.brokers.owner import labels
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from tests.conftest import RABBITMQ_IMAGES, BrokerPool
from tests.patience import patience

#: Policies that are set, changed and taken away while the queue lives.
POLICIES = ("POLICY-009", "POLICY-012")
#: Stopped, killed, and paused.
FAULTS = ("DURABLE-001", "DURABLE-004", "DURABLE-014")

MANAGEMENT_PORT = "15672/tcp"
#: The plugin is there from the first moment on, and again after each start.
START = "echo '[rabbitmq_management].' >/tmp/plugins; exec /usr/lib/rabbitmq/bin/rabbitmq-server"

OPERATOR = """
[operator]
stop = ["docker", "stop", "--time", "60", "{name}"]
kill = ["docker", "kill", "{name}"]
pause = ["docker", "pause", "{name}"]
resume = ["docker", "unpause", "{name}"]
restart = ["docker", "start", "{name}"]
set-policy = ["docker", "exec", "{name}", "rabbitmqctl", "set_policy", "-p", "{{virtual-host}}",
              "--priority", "{{priority}}", "--apply-to", "queues", "{{policy}}", "^{{queue}}$", "{{definition}}"]
clear-policy = ["docker", "exec", "{name}", "rabbitmqctl", "clear_policy", "-p", "{{virtual-host}}", "{{policy}}"]
"""

#: Each is a group beside that of the broker (tests/scheduling.py): most of it is waiting.
VERSIONS = [pytest.param(name, marks=pytest.mark.broker(f"own_{name}")) for name in RABBITMQ_IMAGES]


@contextmanager
def running(image: str) -> Iterator[tuple[Container, dict[str, int]]]:
    """The container, and its ports on this machine, which stay the same when it is started again."""
    name = f"amqpspec-own-{secrets.token_hex(6)}"
    ports = {AMQP_PORT: free_port(), MANAGEMENT_PORT: free_port()}
    with closing(connect_to_engine()) as client:
        provide_image(client, image)
        try:
            container = client.containers.run(
                image, ["sh", "-c", START], name=name, detach=True, labels=labels(),
                ports={inside: ("127.0.0.1", outside) for inside, outside in ports.items()},
                environment={**ENVIRONMENT, "RABBITMQ_ENABLED_PLUGINS_FILE": "/tmp/plugins"},
            )  # fmt: skip
            await_ready(container, image, ContainerLog(container), patience(120))
            yield container, ports
        finally:
            remove_named(client, name)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(file: Path, out: Path, *only: str) -> dict[str, dict[str, Any]]:
    """What is said of each requirement that was to be looked at."""
    options = [word for each in only for word in ("--only", each)]
    # one by one: each call of rabbitmqctl takes a processor for seconds
    words = ["--sequences", "0", "--jobs", "1", "--shrinking-time", "0", "--gate", "known"]
    code = main(["run", str(file), *words, "--out", str(out), *options])
    said = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert (code, said["lost"]) == (0, None), said["failures"]
    return {each["id"]: each for each in said["requirements"]}


@pytest.mark.full
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_file_has_commands_for_is_done(version: str, broker_pool: BrokerPool, tmp_path: Path) -> None:
    try:
        with running(RABBITMQ_IMAGES[version]) as (container, ports):
            address = str(Address("127.0.0.1", ports[AMQP_PORT]))
            by_commands, by_management = tmp_path / "commands.toml", tmp_path / "management.toml"
            by_commands.write_text(f'address = "{address}"\n{OPERATOR.format(name=container.name)}')
            management = f"http://guest:guest@127.0.0.1:{ports[MANAGEMENT_PORT]}"
            by_management.write_text(f'address = "{address}"\nmanagement = "{management}"\n')

            found = run(by_commands, tmp_path / "out", *POLICIES, *FAULTS)
            assert passed_or_known(found) >= {*POLICIES, *FAULTS}
            found = run(by_management, tmp_path / "managed", "POLICY-0", *FAULTS)
            policies = {id for id in found if id.startswith("POLICY-0")}
            assert policies and policies <= passed_or_known(found)
            assert not passed_or_known(found).intersection(FAULTS)
            assert "broker." in str(found[FAULTS[0]])
            left = container.exec_run(["rabbitmqctl", "list_policies"]).output.decode()
            assert "amqpspec" not in left
    except BrokerUnavailable as error:
        broker_pool.report_missing(version, str(error))


def passed_or_known(found: dict[str, dict[str, Any]]) -> set[str]:
    """Those that were exercised: with `--gate known` what fails is known of the version."""
    return {id for id, each in found.items() if each["verdict"] in ("pass", "fail")}
