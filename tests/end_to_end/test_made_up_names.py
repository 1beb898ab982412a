"""Names that the embedded broker makes up."""

from __future__ import annotations

from pathlib import Path

from amqpspec.command_line.entry import main
from amqpspec.conformance.scenarios.scenario_files import DIRECTORY
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker


def test_they_are_never_taken_for_those_of_the_judge(tmp_path: Path) -> None:
    """A judge numbers the addresses of replies that it has not seen; the broker's numbers may be others."""
    beforehand = tmp_path / "one.amqp"
    beforehand.write_text("a.1 queue.declare exclusive\n")
    with EmbeddedBroker() as broker:
        address = f"amqp://guest:guest@{broker.address.host}:{broker.address.port}/"
        assert main(["replay", str(beforehand), address, "--quiet"]) == 0
        assert main(["replay", str(DIRECTORY / "direct-reply" / "REPLY-001.amqp"), address, "--quiet"]) == 0
