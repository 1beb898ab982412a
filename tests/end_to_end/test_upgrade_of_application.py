"""What is said of a recorded application is what happens to it: recorded on one RabbitMQ, run on the next."""

from __future__ import annotations

import json
from pathlib import Path

from amqpspec.command_line import main
from amqpspec.targets.brokers.docker_broker import DockerBroker
from tests.end_to_end.upgrading_application import STEPS, run
from tests.proxies import recording

WORKS = "may work otherwise", "only a text is another"


def test_what_is_foretold_happens(tmp_path: Path, rabbitmq_4_0: DockerBroker, rabbitmq_4_3: DockerBroker) -> None:
    old, new = rabbitmq_4_0.address, rabbitmq_4_3.address
    with recording(f"amqp://{old.host}:{old.port}", tmp_path / "recorded") as proxy:
        before = run(f"amqp://guest:guest@127.0.0.1:{proxy.port}/")
    after = run(f"amqp://guest:guest@{new.host}:{new.port}/")
    assert len(before) == len(after) == len(STEPS)
    happens = {change for change in before if before[change] != after[change]}
    # the broker is asked how it is set: a build may permit what others refuse
    url = f"amqp://guest:guest@{new.host}:{new.port}/"
    assert main(["diff", str(tmp_path / "recorded"), url, "--json", str(tmp_path / "a.json")]) == 1
    met = json.loads((tmp_path / "a.json").read_text())["met"]
    assert {each["change"] for each in met if each["effect"] not in WORKS} == happens
    assert happens >= {"channel-prefetch", "quorum-acquired-count", "quorum-nack-has-not-failed", "queue-versions"}
    gone = {each["change"] for each in met if each["effect"] == "no longer works"}
    assert {change for change in happens if after[change].startswith("refused")} <= gone
    assert before[""] == after[""] == "m"
