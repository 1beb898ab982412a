"""A broker that ends while a command file is carried out: that is what is told, and nothing else that it shows."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Self

import pytest

from amqpspec.command_line import main, replay
from amqpspec.conformance.losses import THE_END
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.protocol.methods import Fault, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient

LINES = "a.1 queue.declare q\na.1 basic.get q\na.1 basic.recover requeue\na.1 basic.get q\n"


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Any target is a broker that ends when a client sends what the test says."""
    method: str = request.param

    with EmbeddedBroker() as broker:

        class Ends(WireClient):
            def send(self, event: TraceEvent, more: bool = False) -> None:
                if event.name == method and event.connection != "alive":
                    broker.__exit__(None, None, None)
                super().send(event, more)

        class Started:
            target = TargetUnderTest(
                broker.address, TargetDescription("ours", "MyBroker", "1", "rabbitmq-4.3"), deadline=0.3, driver=Ends
            )

            def __init__(self, options: argparse.Namespace, **more: object) -> None: ...

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None: ...

            def last_lines(self) -> tuple[str, ...]:
                return ("panic: index out of range",)

        monkeypatch.setattr(replay, "StartedTarget", Started)
        yield


@pytest.mark.parametrize("ending", ["basic.recover"], indirect=True)
@pytest.mark.usefixtures("ending")
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_it_says_behind_which_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: list[str]) -> None:
    (tmp_path / "f.amqp").write_text(LINES)
    assert main(["replay", str(tmp_path / "f.amqp"), "embedded", *quiet]) == 3
    said = capsys.readouterr()
    assert said.out.count("SERVER-001: ") == 1 and "an answer behind basic.recover" in said.out
    assert "after     a.1 basic.recover requeue" in said.out and "panic: index out of range" in said.out
    assert "RECOVER-" not in said.out and "CONN-" not in said.out, "what it showed while it ended is no failure"
    assert said.err.startswith("amqpspec: the target was lost in replay f: ") and said.err.count("\n") == 1


@pytest.mark.parametrize("ending", ["connection.close"], indirect=True)
@pytest.mark.usefixtures("ending")
def test_it_may_end_when_connections_are_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.amqp").write_text(LINES)
    assert main(["replay", str(tmp_path / "f.amqp"), "embedded"]) == 3
    said = capsys.readouterr().out
    assert "SERVER-001: " in said and f"behind {THE_END}" in " ".join(said.split())


@pytest.mark.parametrize("ending", ["basic.recover"], indirect=True)
@pytest.mark.usefixtures("ending")
def test_what_is_left_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.amqp").write_text(
        "@queue-types classic quorum\n" + LINES.replace("declare q", "declare q durable x-queue-type=$type")
    )
    assert main(["replay", str(tmp_path / "f.amqp"), "embedded"]) == 3
    assert capsys.readouterr().err.endswith("; 1 sequence not carried out\n")


def test_a_broker_that_is_well_is_not_said_to_be_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.amqp").write_text(LINES + "a.1 basic.publish q body=m1\na.1 basic.get q\n")
    assert main(["replay", str(tmp_path / "f.amqp"), "embedded:get-empty-with-messages"]) == 1
    said = capsys.readouterr()
    assert "SERVER-001" not in said.out and said.err == ""


@pytest.mark.full
def test_broker_j_ends_its_process(broker_j: DockerBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """9.2.1, of an unfinished message."""
    (tmp_path / "f.amqp").write_text(
        '@rough\nz.1 channel.open\na.1 channel.open\na.1 basic.publish "routing key" unfinished &\n'
        "a.1 frame.body body=Hello\nz.1 basic.qos 1\n"
    )
    assert main(["replay", str(tmp_path / "f.amqp"), "docker:amqpspec/broker-j:9.2"]) == 3
    said = capsys.readouterr().out
    assert said.count("SERVER-001: ") == 1 and "CHAN-01" not in said


class _Moving:
    """A broker that is elsewhere each time that it was started again, as Docker publishes another port."""

    offered = ("broker.stop", "broker.kill", "broker.restart")
    nodes = (1,)

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running = stack.enter_context(ExitStack())
        self._broker = self._running.enter_context(EmbeddedBroker())
        self.places = [self._broker.address]
        #: what has the old ports, and answers nobody
        self.left: list[socket.socket] = []

    def inject(self, fault: Fault) -> None:
        if fault.name != "broker.restart":
            self._running.close()
            return
        place = socket.create_server((self.places[-1].host, self.places[-1].port))
        self.left.append(self._stack.enter_context(closing(place)))
        self._broker = self._running.enter_context(EmbeddedBroker())
        self.places.append(self._broker.address)

    def address_of(self, node: int) -> Address:
        return self.places[-1]

    def undo(self) -> None: ...


@pytest.mark.parametrize("more", ["", "broker network.slow connection=b milliseconds=1\n"])
@pytest.mark.parametrize("fault", ["broker.stop", "broker.kill"])
def test_a_broker_that_is_elsewhere_after_its_restart_is_not_lost(
    fault: str, more: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = f"a.1 queue.declare q\nbroker {fault}\nbroker broker.restart\nb.1 queue.declare q\n{more}"
    (tmp_path / "f.amqp").write_text(lines)
    with ExitStack() as stack:
        moving = _Moving(stack)
        description = TargetDescription("docker:x", "RabbitMQ", "4.3.6", "rabbitmq-4.3")
        target = TargetUnderTest(moving.places[0], description, deadline=5.0, faults=moving)

        class Started(nullcontext[object]):
            def __init__(self, options: argparse.Namespace, *, keeps_data: bool = False, judged_by: str = "") -> None:
                super().__init__(self)
                self.target = target

        monkeypatch.setattr(replay, "StartedTarget", Started)
        assert main(["replay", str(tmp_path / "f.amqp"), "embedded"]) == 0, capsys.readouterr()
        (left,) = moving.left
        left.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody asks there
            left.accept()
