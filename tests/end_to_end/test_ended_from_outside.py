"""Whatever is killed under a run, it ends in a clear verdict in bounded time, keeps the trace, and leaves nothing.

What is killed here is the container, its network, and the suite itself.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judgement import SERVES_ON
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.docker_engine import remove_orphans
from amqpspec.targets.brokers.owner import OWNER
from tests.patience import patience

pytestmark = pytest.mark.full

#: Seconds for a run of a few scenarios, whatever happens to it.
LONGEST = 240.0


class Run:
    """`amqpspec run` on a container, in a process of its own."""

    def __init__(self, image: str, directory: Path, *only: str) -> None:
        self.directory = directory
        self.client = docker.from_env()
        options = [word for each in only for word in ("--only", each)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "amqpspec", "run", f"docker:{image}", "--sequences", "0", "--shrinking-time", "1",
             *options, "--out", str(directory)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def containers(self) -> list[Container]:
        """Those that the run has started, in the order in which it did."""
        found = self.client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
        own = [each for each in found if each.labels[OWNER].split()[2:3] == [str(self.process.pid)]]
        return sorted(own, key=lambda each: str(each.attrs["Created"]))

    def await_that(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + patience(120)
        while not condition():
            assert time.monotonic() < until and self.process.poll() is None
            threading.Event().wait(0.05)

    def has_begun(self, text: bytes = b'"kind":"command"') -> bool:
        trace = self.directory / "trace.jsonl"
        return trace.is_file() and text in trace.read_bytes()

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        said, _ = self.process.communicate(timeout=patience(LONGEST))
        return self.process.returncode, said

    def report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.directory / "report.json").read_text(encoding="utf-8"))
        return found

    def trace_is_whole(self) -> bool:
        return any(True for _ in read_trace(self.directory / "trace.jsonl"))


@contextmanager
def a_run(image: str, directory: Path, *only: str) -> Iterator[Run]:
    run = Run(image, directory, *only)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()
        remove_orphans(run.client)
        run.client.close()


def losses(report: dict[str, object]) -> list[str]:
    failures = report["failures"]
    assert isinstance(failures, list)
    return [each["requirement"] for each in failures if each["requirement"] == SERVES_ON]


def test_a_container_that_is_killed_is_a_loss_and_the_run_goes_on(rabbitmq_4_3: DockerBroker, tmp_path: Path) -> None:
    with a_run(rabbitmq_4_3.image, tmp_path / "out", "ACK", "QOS") as run:
        run.await_that(run.has_begun)
        run.containers()[0].kill()
        code, said = run.ended()
        assert code == 1, said
        assert losses(run.report()) == [SERVES_ON] and run.report()["lost"] is None, said
        assert run.trace_is_whole() and run.containers() == []


def test_a_container_that_is_cut_off_is_a_loss_and_the_run_goes_on(rabbitmq_4_3: DockerBroker, tmp_path: Path) -> None:
    with a_run(rabbitmq_4_3.image, tmp_path / "out", "ACK") as run:
        run.await_that(run.has_begun)
        run.client.networks.get("bridge").disconnect(run.containers()[0], force=True)
        code, said = run.ended()
        assert code == 1, said
        assert losses(run.report()) == [SERVES_ON] and run.report()["lost"] is None, said
        assert run.trace_is_whole() and run.containers() == []


def test_the_one_that_is_broken_on_purpose_may_be_killed_from_outside_as_well(
    rabbitmq_4_3: DockerBroker, tmp_path: Path
) -> None:
    with a_run(rabbitmq_4_3.image, tmp_path / "out", "DURABLE-001") as run:
        run.await_that(lambda: run.has_begun() and len(run.containers()) == 2)
        run.containers()[1].kill()
        code, said = run.ended()
        assert code in (0, 1) and run.report()["lost"] is None, said
        assert run.trace_is_whole() and run.containers() == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_in_a_restart_leaves_nothing(
    rabbitmq_4_3: DockerBroker, tmp_path: Path, by: signal.Signals
) -> None:
    with a_run(rabbitmq_4_3.image, tmp_path / "out", "DURABLE-001") as run:
        run.await_that(lambda: run.has_begun(b'"broker.stop"') or run.has_begun(b'"broker.kill"'))
        run.process.send_signal(by)
        code, said = run.ended()
        assert code in (130, 143), said
        assert run.trace_is_whole() and run.containers() == []


def test_what_a_killed_run_has_left_the_next_one_takes_away(rabbitmq_4_3: DockerBroker, tmp_path: Path) -> None:
    with a_run(rabbitmq_4_3.image, tmp_path / "out", "ACK") as run:
        run.await_that(run.has_begun)
        left = run.containers()
        run.process.kill()
        run.process.wait()
        assert left and run.trace_is_whole()
        with DockerBroker("amqpspec/garagemq"):
            assert run.containers() == []
