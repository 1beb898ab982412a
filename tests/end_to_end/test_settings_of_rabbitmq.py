"""RabbitMQ that is set otherwise: what its operator permits is judged, without a word on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqpspec.command_line.entry import main
from amqpspec.targets.brokers.docker_broker import DockerBroker
from tests.conftest import RABBITMQ_IMAGES

PERMIT = "deprecated_features.permit."
#: Five messages for two consumers of a channel whose limit with global is 2.
COMMANDS = """\
a.1 queue.declare q durable
a.1 basic.qos 2 global
a.1 basic.consume q tag=t
a.1 basic.consume q tag=u
b.1 basic.publish q body=m1
b.1 basic.publish q body=m2
b.1 basic.publish q body=m3
b.1 basic.publish q body=m4
b.1 basic.publish q body=m5
a.1 basic.ack 1
"""


def address_of(broker: DockerBroker) -> str:
    return f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/"


@pytest.mark.parametrize(
    ("fixture", "settings", "name"),
    [
        ("rabbitmq_4_3", {"global_qos": "true"}, "rabbitmq-4.3;global-qos=permitted"),
        ("rabbitmq_4_3", {"global_qos": "false", "transient_nonexcl_queues": "false"},
         "rabbitmq-4.3;transient-nonexcl-queues=denied"),
        ("rabbitmq_4_0", {"global_qos": "false", "queue_master_locator": "false"},
         "rabbitmq-4.0;global-qos=denied;queue-master-locator=denied"),
    ],
)  # fmt: skip
def test_a_run_finds_out_how_it_is_set(
    fixture: str, settings: dict[str, str], name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    request.getfixturevalue(fixture)  # that there is such a broker
    configuration = {PERMIT + feature: value for feature, value in settings.items()}
    file, out = tmp_path / "q.amqp", tmp_path / "out"
    file.write_text(COMMANDS)
    with DockerBroker(RABBITMQ_IMAGES[fixture], configuration=configuration) as broker:
        address = address_of(broker)
        assert main(["replay", str(file), address, "--quiet"]) == 0
        words = ["--only", "QOS-00", "--only", "QUEUE-018", "--only", "QUEUE-030", "--sequences", "0", "--quiet"]
        assert main(["run", address, *words, "--gate", "known", "--out", str(out)]) == 0
        assert json.loads((out / "report.json").read_text())["target"]["dialect"] == name
        # held to the usual, it deviates
        usual = name.partition(";")[0]
        expected = 1 if "global-qos" in name else 0
        assert main(["replay", str(file), address, "--quiet", "--dialect", usual]) == expected


def test_what_is_as_usual_is_not_told(rabbitmq: DockerBroker, tmp_path: Path) -> None:
    words = ["--only", "GET-001", "--sequences", "0", "--quiet", "--out", str(tmp_path)]
    assert main(["run", address_of(rabbitmq), *words]) == 0
    assert ";" not in json.loads((tmp_path / "report.json").read_text())["target"]["dialect"]
