"""Whatever is killed under a run, it ends in a clear verdict in bounded time, keeps the trace, and leaves nothing.

What is killed here is the container, its network, and the suite itself, under a run and under a soak.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container
from docker.models.networks import Network

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.traces.trace_row import TraceError
from amqpspec.conformance.verdicts.judgement import SERVES_ON
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.docker_engine import connect_to_engine, provide_image, remove_orphans
from amqpspec.targets.brokers.owner import OWNER
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from tests.conftest import RABBITMQ_IMAGES, BrokerPool
from tests.patience import patience

#: They mostly wait, and start containers of their own: a group beside that of the broker (tests/scheduling.py).
pytestmark = [pytest.mark.full, pytest.mark.broker("ended_from_outside")]

#: Seconds for a run of a few scenarios, whatever happens to it.
LONGEST = 240.0


@pytest.fixture(scope="module")
def image(broker_pool: BrokerPool) -> str:
    name = RABBITMQ_IMAGES["rabbitmq_4_3"]
    try:
        with closing(connect_to_engine()) as client:
            provide_image(client, name)
    except BrokerUnavailable as error:
        broker_pool.report_missing("rabbitmq_4_3", str(error))
    return name


class Run:
    """A subcommand on a container, in a process and a session of its own."""

    def __init__(self, directory: Path, *words: str) -> None:
        self.directory = directory
        self.client = docker.from_env()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "amqpspec", *words, "--out", str(directory)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def containers(self) -> list[Container]:
        """Those that the run has started, in the order in which it did."""
        found = self.client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
        own = [each for each in found if each.labels[OWNER].split()[2:3] == [str(self.process.pid)]]
        return sorted(own, key=lambda each: str(each.attrs["Created"]))

    def networks(self) -> list[Network]:
        found = self.client.networks.list(filters={"label": OWNER})
        return [each for each in found if each.attrs["Labels"][OWNER].split()[2:3] == [str(self.process.pid)]]

    def await_that(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + patience(120)
        while not condition():
            assert time.monotonic() < until and self.process.poll() is None
            threading.Event().wait(0.05)

    def has_begun(self, text: bytes = b'"kind":"command"') -> bool:
        trace = self.directory / "trace.jsonl"
        return trace.is_file() and text in trace.read_bytes()

    def has_soaked(self, seconds: float = 2.0) -> bool:
        """For so long: RabbitMQ forgets a queue that is killed when it is new (docs/findings.md, DURABLE-002)."""
        latest = 0.0
        with suppress(TraceError):
            for row in read_trace(self.directory):
                latest = row.get("time", latest)
        return latest > seconds

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        said, _ = self.process.communicate(timeout=patience(LONGEST))
        return self.process.returncode, said

    def report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.directory / "report.json").read_text(encoding="utf-8"))
        return found

    def soak_report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.directory / "soak.json").read_text(encoding="utf-8"))
        return found

    def trace_is_whole(self) -> bool:
        return any(True for _ in read_trace(self.directory))

    def await_no_process(self) -> None:
        """None of its session is left: who is told that a pipe has ended needs a moment."""
        until = time.monotonic() + patience(20)
        while left := sessions_processes(self.process.pid):
            assert time.monotonic() < until, left
            threading.Event().wait(0.05)

    def await_no_containers(self) -> None:
        """Nor networks: the guard takes them away once the process is gone."""
        until = time.monotonic() + patience(30)
        while left := [*self.containers(), *self.networks()]:
            assert time.monotonic() < until, left
            threading.Event().wait(0.1)

    def kill_guard(self) -> None:
        end = f" {self.process.pid} "
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                said = place.read_text(errors="replace")
                if "container_guard" in said and end in said:
                    os.kill(int(place.parent.name), signal.SIGKILL)
                    return
        raise AssertionError("the run has no guard")


def sessions_processes(session: int) -> list[str]:
    """The command lines of those that are not over."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, own = stat.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if own == str(session) and state not in "ZX":
                found.append(stat.with_name("cmdline").read_text(errors="replace").replace("\0", " "))
    return found


@contextmanager
def a_run(image: str, directory: Path, *only: str) -> Iterator[Run]:
    options = [word for each in only for word in ("--only", each)]
    with started(directory, "run", f"docker:{image}", "--sequences", "0", "--shrinking-time", "1", *options) as run:
        yield run


@contextmanager
def a_soak(target: str, directory: Path, *words: str) -> Iterator[Run]:
    """It would take an hour. Who cannot be reached for 24 s is lost."""
    given = ("--minutes", "60", "--rate", "20", "--patience", "8")
    with started(directory, "soak", target, *given, *words) as run:
        yield run


@contextmanager
def started(directory: Path, *words: str) -> Iterator[Run]:
    run = Run(directory, *words)
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


def test_a_container_that_is_killed_is_a_loss_and_the_run_goes_on(image: str, tmp_path: Path) -> None:
    with a_run(image, tmp_path / "out", "ACK", "QOS") as run:
        run.await_that(run.has_begun)
        run.containers()[0].kill()
        code, said = run.ended()
        assert code == 1, said
        assert losses(run.report()) == [SERVES_ON] and run.report()["lost"] is None, said
        assert run.trace_is_whole() and run.containers() == []


def test_a_container_that_is_cut_off_is_a_loss_and_the_run_goes_on(image: str, tmp_path: Path) -> None:
    with a_run(image, tmp_path / "out", "ACK") as run:
        run.await_that(run.has_begun)
        run.client.networks.get("bridge").disconnect(run.containers()[0], force=True)
        code, said = run.ended()
        assert code == 1, said
        assert losses(run.report()) == [SERVES_ON] and run.report()["lost"] is None, said
        assert run.trace_is_whole() and run.containers() == []


def test_the_one_that_is_broken_on_purpose_may_be_killed_from_outside_as_well(
    image: str, tmp_path: Path
) -> None:
    with a_run(image, tmp_path / "out", "DURABLE-001") as run:
        run.await_that(lambda: run.has_begun() and len(run.containers()) == 2)
        run.containers()[1].kill()
        code, said = run.ended()
        assert code in (0, 1) and run.report()["lost"] is None, said
        assert run.trace_is_whole() and run.containers() == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_in_a_restart_leaves_nothing(
    image: str, tmp_path: Path, by: signal.Signals
) -> None:
    with a_run(image, tmp_path / "out", "DURABLE-001") as run:
        run.await_that(lambda: run.has_begun(b'"broker.stop"') or run.has_begun(b'"broker.kill"'))
        run.process.send_signal(by)
        code, said = run.ended()
        assert code in (130, 143), said
        assert run.trace_is_whole() and run.containers() == []


def test_a_killed_run_leaves_nothing(image: str, tmp_path: Path) -> None:
    """Nobody but its guard does anything for that."""
    with a_run(image, tmp_path / "out", "ACK") as run:
        run.await_that(run.has_begun)
        left = run.containers()
        run.process.kill()
        run.process.wait()
        assert left and run.trace_is_whole()
        run.await_no_containers()


def test_what_a_killed_run_and_guard_have_left_the_next_run_takes_away(image: str, tmp_path: Path) -> None:
    with a_run(image, tmp_path / "out", "ACK") as run:
        run.await_that(run.has_begun)
        run.kill_guard()
        left = run.containers()
        run.process.kill()
        run.process.wait()
        assert left and run.trace_is_whole()
        with DockerBroker("amqpspec/garagemq"):
            assert run.containers() == []


def test_a_killed_run_leaves_nothing_of_a_cluster(image: str, tmp_path: Path) -> None:
    """Its nodes, and its networks."""
    with started(tmp_path / "out", "run", f"cluster:{image}", "--only", "CLUSTER-001") as run:
        run.await_that(lambda: bool(run.containers() and run.networks()))
        run.process.kill()
        run.process.wait()
        run.await_no_process()
        run.await_no_containers()
        assert run.networks() == []


# ------------------------------------------------------------------------------------------------------- a soak


def test_a_soak_whose_container_is_gone_ends_and_blames_nobody(image: str, tmp_path: Path) -> None:
    """One is killed and one cut off, side by side: each waits for what does not come."""
    words = (f"docker:{image}", "--faults", "client")
    with a_soak(words[0], tmp_path / "killed", *words[1:]) as killed:
        killed.await_that(killed.has_soaked)
        killed.containers()[0].kill()
        with a_soak(words[0], tmp_path / "cut-off", *words[1:]) as cut_off:
            cut_off.await_that(cut_off.has_soaked)
            cut_off.client.networks.get("bridge").disconnect(cut_off.containers()[0], force=True)
            for run in (killed, cut_off):
                code, said = run.ended()
                report = run.soak_report()
                assert code == 3 and report["lost"] and report["not_known"] == 0, said
                assert run.trace_is_whole() and run.containers() == []
                run.await_no_process()


def test_a_soak_that_kills_its_broker_bears_that_somebody_else_has_done_so(image: str, tmp_path: Path) -> None:
    """The next fault cannot be done, which is told; its end starts the broker again, and the soak goes on.

    With that seed the first fault of the broker comes after seven seconds.
    """
    words = ("soak", f"docker:{image}", "--rate", "20", "--seconds", "30", "--faults", "client,kill", "--seed", "86",
             "--gate", "known")
    for attempt in range(3):
        with started(tmp_path / str(attempt), *words) as run:
            run.await_that(lambda: run.has_soaked(4.0))
            run.containers()[0].kill()
            code, said = run.ended()
            report = run.soak_report()
            assert report["not_known"] == 0 and run.trace_is_whole() and run.containers() == [], said
        # a container that somebody else on this machine started meanwhile may have got its address
        if "another one answers at its address" not in str(report["lost"]):
            break
    assert code == 0 and "cannot kill it" in str(report["problems"]), said


@pytest.mark.parametrize("target", ["embedded", "docker"])
def test_a_signal_to_all_processes_of_a_soak_ends_it_with_a_report(
    image: str, tmp_path: Path, target: str
) -> None:
    """As `timeout`, a terminal or a supervisor sends it."""
    name = f"docker:{image}" if target == "docker" else target
    with a_soak(name, tmp_path / "out", "--faults", "kill,pause,client") as run:
        run.await_that(run.has_soaked)
        os.killpg(run.process.pid, signal.SIGTERM)
        code, said = run.ended()
        report = run.soak_report()
        assert code == 143 and report["ended_early"] == "interrupted" and report["not_known"] == 0, said
        assert run.trace_is_whole() and run.containers() == []
        run.await_no_process()


def test_a_soak_that_is_killed_leaves_a_trace_and_nothing_else(image: str, tmp_path: Path) -> None:
    with a_soak(f"docker:{image}", tmp_path / "out", "--faults", "client") as run:
        run.await_that(run.has_soaked)
        assert run.containers()
        run.process.kill()
        run.process.wait()
        run.await_no_process()
        assert run.trace_is_whole()
        run.await_no_containers()
