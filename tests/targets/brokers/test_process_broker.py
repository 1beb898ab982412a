"""The process target: an executable on a free port, its readiness, its end with all its children."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers import process_broker
from amqpspec.targets.brokers.process_broker import ProcessBroker
from amqpspec.targets.brokers.readiness import BrokerUnavailable, answers_amqp
from amqpspec.targets.brokers.resolve import met
from tests.patience import patience

# Answers every connection with the opening of a connection.start frame, after it started a child.
LISTENER = """
import os, pathlib, socket, subprocess
child = subprocess.Popen(["sleep", "600"])
directory = os.environ["AMQPSPEC_DIRECTORY"]
pathlib.Path(os.environ["PID_FILE"]).write_text(f"{os.getpid()} {child.pid} {directory}")
server = socket.create_server(("127.0.0.1", int(os.environ["AMQPSPEC_PORT"])))
while True:
    connection, _ = server.accept()
    connection.recv(8)
    connection.sendall(bytes([1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 10, 206]))
    connection.close()
"""


def executable(directory: Path, program: str) -> str:
    path = directory / "broker"
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def ends(pid: int) -> bool:
    """True once the process is dead (collected by its parent or not), False if it lives on for 5 s."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], 5)[0])
    finally:
        os.close(watch)


def test_runs_inside_the_block_and_ends_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "pids"
    monkeypatch.setenv("PID_FILE", str(record))
    with ProcessBroker(executable(tmp_path, LISTENER)) as broker:
        address = broker.address
        assert address.host == "127.0.0.1"
        assert answers_amqp(address, timeout=5)
        parent, child, directory = record.read_text().split()
        os.kill(int(parent), 0)
        os.kill(int(child), 0)
        assert Path(directory).is_dir()
    assert ends(int(parent)) and ends(int(child)) and not Path(directory).exists()
    with pytest.raises(BrokerUnavailable, match="not running"):
        _ = broker.address


def test_program_that_ends_is_quoted(tmp_path: Path) -> None:
    path = executable(tmp_path, "raise SystemExit('no licence today')")
    with pytest.raises(BrokerUnavailable) as caught, ProcessBroker(path):
        pass
    text = str(caught.value)
    assert path in text and "exit status 1" in text and "no licence today" in text and "\n" not in text


def test_program_that_never_listens_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "pids"
    monkeypatch.setenv("PID_FILE", str(record))
    deaf = LISTENER.partition("server =")[0] + "child.wait()"
    with pytest.raises(BrokerUnavailable, match=r"within 1 s"), ProcessBroker(
        executable(tmp_path, deaf), start_timeout=1
    ):
        pass
    assert all(ends(int(pid)) for pid in record.read_text().split()[:2])


@pytest.mark.parametrize("content", [None, "not executable"])
def test_path_that_cannot_be_run_is_named(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "broker"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BrokerUnavailable) as caught, ProcessBroker(str(path)):
        pass
    assert str(path) in str(caught.value) and os.linesep not in str(caught.value)


def test_who_is_not_open_yet_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker may listen before its virtual host is there: 320 says so (`wait_until_open`)."""
    waited: list[int] = []

    def wait(address: Address, deadline: float, signs: object) -> None:
        waited.append(address.port)

    monkeypatch.setenv("PID_FILE", str(tmp_path / "pids"))
    monkeypatch.setattr(process_broker, "wait_until_open", wait)
    with ProcessBroker(executable(tmp_path, LISTENER)) as broker:
        assert waited == [broker.address.port]


# Wants heartbeats, as a broker does that gives their interval to a timer.
NEEDS_HEARTBEATS = """
import os, sys, threading
from amqpspec import EmbeddedBroker
from amqpspec.targets.embedded.hooks import Chapter

chapter = Chapter()

@chapter.on_input("dies", "CONN-001", "", "connection.tune-ok")
def _(broker, method, proceed):
    if not method.arguments["heartbeat"]:
        print("an error that is none", "panic: non-positive interval", sep=os.linesep, flush=True)
        os._exit(2)
    proceed(method)

broker = EmbeddedBroker(port=int(os.environ["AMQPSPEC_PORT"]), fault=chapter.faults["dies"])
broker.serve_forever(lambda address: None)
"""


def test_one_that_ends_at_the_login_is_quoted_and_says_what_may_help(tmp_path: Path) -> None:
    path = executable(tmp_path, NEEDS_HEARTBEATS)
    with ProcessBroker(path) as broker, pytest.raises(BrokerUnavailable) as caught:
        met(broker)
    said = str(caught.value)
    assert "exit status 2" in said and "panic: non-positive interval" in said and "?heartbeat=60" in said


def test_one_that_wants_heartbeats_is_met_where_the_address_asks_for_them(tmp_path: Path) -> None:
    path = executable(tmp_path, NEEDS_HEARTBEATS)
    with ProcessBroker(path, address=lambda port: Address("127.0.0.1", port, heartbeat=60)) as broker:
        _, limits = met(broker)
    assert limits.heartbeat == 60


# ------------------------------------------------------------------------------------------------------- faults


def fault(name: str) -> Fault:
    return Fault(OPERATOR, 0, name, {}, sent=True)


@pytest.mark.parametrize("end", ["broker.stop", "broker.kill"])
def test_it_is_ended_and_started_again_at_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    record = tmp_path / "pids"
    monkeypatch.setenv("PID_FILE", str(record))
    with ProcessBroker(executable(tmp_path, LISTENER)) as broker:
        address, faults = broker.address, broker.faults()
        parent, child, directory = record.read_text().split()
        faults.inject(fault(end))
        assert ends(int(parent)) and ends(int(child)) and not answers_amqp(address, timeout=1)
        faults.inject(fault("broker.restart"))
        again = record.read_text().split()
        assert broker.address == address and answers_amqp(address, timeout=5)
        assert again[0] != parent and again[2] == directory
    assert ends(int(again[0])) and ends(int(again[1])) and not Path(directory).exists()


def test_one_that_is_paused_does_nothing_until_it_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PID_FILE", str(tmp_path / "pids"))
    with ProcessBroker(executable(tmp_path, LISTENER)) as broker:
        faults = broker.faults()
        faults.inject(fault("broker.pause"))
        assert not answers_amqp(broker.address, timeout=0.2)
        faults.inject(fault("broker.resume"))
        assert answers_amqp(broker.address, timeout=5)


@pytest.mark.parametrize("left", ["broker.pause", "broker.kill"])
def test_one_that_is_left_paused_or_down_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    record = tmp_path / "pids"
    monkeypatch.setenv("PID_FILE", str(record))
    with ProcessBroker(executable(tmp_path, LISTENER)) as broker:
        broker.faults().inject(fault(left))
    parent, child, directory = record.read_text().split()
    assert ends(int(parent)) and ends(int(child)) and not Path(directory).exists()


#: Starts the executable and stays.
_SUITE = """
import sys
from amqpspec.targets.brokers.process_broker import ProcessBroker
with ProcessBroker(sys.argv[1]):
    print("ready", flush=True)
    input()
"""


def test_it_ends_with_a_suite_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "pids"
    monkeypatch.setenv("PID_FILE", str(record))
    command = [sys.executable, "-c", _SUITE, executable(tmp_path, LISTENER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None and suite.stdout.readline() == "ready\n"
        suite.kill()
    parent, child, directory = record.read_text().split()
    assert ends(int(parent)) and ends(int(child))
    until = time.monotonic() + patience(10)
    while Path(directory).exists() and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert not Path(directory).exists()
