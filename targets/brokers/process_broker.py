"""A broker as a process of our own on this machine, for as long as a `with` block lasts."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.rabbitmqctl_operator import operator_by
from amqpspec.targets.brokers.readiness import (
    BrokerUnavailable,
    LogMemory,
    answers_amqp,
    wait_until_open,
    wait_until_ready,
)
from amqpspec.targets.brokers.single_node import BROKER_FAULTS, SingleNode
from amqpspec.targets.errors import OperatorError

_BRIEFLY = 0.5  # seconds for a broker to show that it is there before another one is started
_STOP_TIMEOUT = 10.0  # seconds from the polite signal to the other
_LAST_WORDS = 2.0  # seconds in which a broker ends that has hung up on a client, and says why
_OPERATOR_TIMEOUT = 60.0  # seconds for one call of rabbitmqctl
_BETWEEN_LOOKS = 0.02  # seconds
_PROC = Path("/proc")
_GUARD = 'read -r _; kill -s KILL -- "-$1" 2>/dev/null; rm -rf -- "$2"'
"""Ends the broker, whose group and directory are given, when this process was killed: then its input ends."""


def _on_loopback(port: int) -> Address:
    return Address(host="127.0.0.1", port=port)


class ProcessBroker:
    """Context manager: starts the executable `path` on a free loopback port and ends it, with its children.

    In `arguments`, `{port}` is that port, and `{directory}` the directory below. `address` gives, by the free port,
    where the broker will be; `working_directory` is where it is started, that directory if it is not given.

    The executable learns what it needs from its environment: `AMQPSPEC_PORT` and `AMQPSPEC_DIRECTORY` (an
    empty directory, deleted at the end), and the same in RabbitMQ's names, so that `rabbitmq-server` runs as
    it is. A broker that wants arguments needs a small script around it. It must log in guest with password
    guest. Raises BrokerUnavailable where it cannot be started or does not answer AMQP in time.
    """

    def __init__(
        self,
        path: str,
        arguments: Sequence[str] = (),
        *,
        address: Callable[[int], Address] = _on_loopback,
        working_directory: Path | None = None,
        start_timeout: float = 90.0,
    ) -> None:
        self.path = path
        self._arguments = tuple(arguments)
        self._address_by = address
        self._working_directory = working_directory
        self._start_timeout = start_timeout
        self._environment: dict[str, str] = {}
        self._command: list[str] = []
        self._guard: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._address: Address | None = None
        self._log = LogMemory()

    @property
    def address(self) -> Address:
        """Where the broker listens. Raises BrokerUnavailable outside the `with` block."""
        if self._address is None:
            raise BrokerUnavailable(f"{self.path} is not running")
        return self._address

    @property
    def environment(self) -> Mapping[str, str]:
        """What it is started with."""
        return self._environment

    def __enter__(self) -> Self:
        port = _free_port()
        address = self._address_by(port)
        if address.port != port and answers_amqp(address, _BRIEFLY):
            raise BrokerUnavailable(f"{self.path} is not started: a broker listens on port {address.port} already")
        self._directory = tempfile.TemporaryDirectory(prefix="amqpspec-broker-", ignore_cleanup_errors=True)
        try:
            self._process = self._start(address.port, Path(self._directory.name))
            self._await_ready(self._process, address)
        except BaseException:
            self._end()
            raise
        self._address = address
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def why_it_ended(self) -> str:
        """A clause for a broker that has hung up on a client; "": it goes on."""
        process = self._process
        if process is None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_LAST_WORDS)
        if process.returncode is None:
            return ""
        self.last_lines()
        return f"ended with exit status {process.returncode}{self._log.quote()}"

    def last_lines(self) -> tuple[str, ...]:
        """The last that the broker wrote; of one that has ended, to its end."""
        if self._reader is not None:
            self._reader.join(timeout=1.0)
        return self._log.last_lines()

    def operator(self) -> Operator | None:
        """Who operates the broker, if there is a rabbitmqctl beside the executable, and it reaches the broker."""
        found = shutil.which(self.path)
        beside = [path.with_name("rabbitmqctl") for path in (Path(found), Path(found).resolve())] if found else []
        for rabbitmqctl in beside:
            if rabbitmqctl.is_file():
                return operator_by(partial(self._rabbitmqctl, rabbitmqctl, "eval"))
        return None

    def faults(self) -> FaultInjector:
        """Who ends it and starts it again."""
        return SingleNode(self, BROKER_FAULTS)

    # ------------------------------------------------------- what is done to it (`targets.brokers.single_node.Node`)

    @property
    def pid(self) -> int:
        """Of the process that was started; its group has the same number. 0: there is none."""
        return self._process.pid if self._process is not None else 0

    def stop(self) -> None:
        """A polite signal, to which it may take its time."""
        self._end_by(signal.SIGTERM, self._start_timeout)

    def kill(self) -> None:
        self._end_by(signal.SIGKILL, _STOP_TIMEOUT)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def start_again(self) -> None:
        """On the same port and in the same directory."""
        if self._process is not None:  # somebody else has ended it
            _end_group(self._process)
            self._close_output(self._process)
        self._process = self._begin()
        self._await_ready(self._process, self.address)

    def _signal(self, kind: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, kind)

    def _end_by(self, kind: signal.Signals, patience: float) -> None:
        process = self._process
        if process is None:
            return
        self._signal(kind)
        until = time.monotonic() + patience
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience)
        while _is_there(process.pid):  # children, which nobody can wait for
            if time.monotonic() > until:
                raise BrokerUnavailable(f"{self.path}: {kind.name} has not ended it within {patience:g} s")
            threading.Event().wait(_BETWEEN_LOOKS)
        self._end_guard()
        self._close_output(process)
        self._process = None

    def _rabbitmqctl(self, path: Path, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [path, "-n", self._environment.get("RABBITMQ_NODENAME", ""), *arguments],
                env=self._environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_OPERATOR_TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OperatorError(f"{path}: {error}") from error
        if done.returncode != 0:
            raise OperatorError(f"{path}: exit status {done.returncode}: {' '.join(done.stderr.split())[:300]}")
        return done.stdout

    def _start(self, port: int, directory: Path) -> subprocess.Popen[str]:
        self._environment = os.environ | {
            "AMQPSPEC_PORT": str(port),
            "AMQPSPEC_DIRECTORY": str(directory),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(_free_port()),
            "RABBITMQ_NODENAME": f"amqpspec-{secrets.token_hex(6)}@localhost",
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(directory / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        }
        self._command = [self.path, *(_filled(each, port, directory) for each in self._arguments)]
        return self._begin()

    def _begin(self) -> subprocess.Popen[str]:
        process = self._started()
        self._end_guard()
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(process.pid), self._environment["AMQPSPEC_DIRECTORY"]],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        return process

    def _end_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()

    def _started(self) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._working_directory or self._environment["AMQPSPEC_DIRECTORY"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # one signal then reaches the children as well
            )
        except OSError as error:
            raise BrokerUnavailable(f"cannot start {self.path}: {error.strerror or error}") from error

    def _await_ready(self, process: subprocess.Popen[str], address: Address) -> None:
        signs: queue.SimpleQueue[object] = queue.SimpleQueue()
        memory = self._log

        def follow() -> None:
            # Read on for the whole life: a full pipe would stop the broker.
            with contextlib.suppress(OSError, ValueError):
                for line in process.stdout or ():
                    memory.add(line)
                    signs.put(line)
            signs.put("")

        reader = self._reader = threading.Thread(target=follow, name=f"log of {self.path}", daemon=True)
        reader.start()

        def has_ended() -> bool:
            return process.poll() is not None

        deadline = time.monotonic() + self._start_timeout
        if wait_until_ready((address,), deadline, signs, has_ended):
            wait_until_open(address, deadline, signs)
            return
        if has_ended():
            reader.join(timeout=1.0)
            problem = f"ended with exit status {process.returncode} before it was ready"
        else:
            problem = f"did not answer AMQP on port {address.port} within {self._start_timeout:g} s"
        raise BrokerUnavailable(f"{self.path} {problem}{memory.quote()}")

    def _end(self) -> None:
        process, self._process, self._address = self._process, None, None
        self._end_guard()
        if process is not None:
            _end_group(process)
            self._close_output(process)
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def _close_output(self, process: subprocess.Popen[str]) -> None:
        """A daemon that the broker left behind may hold the pipe open: then closing it would block."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.join(timeout=1.0)
        if process.stdout is not None and (reader is None or not reader.is_alive()):
            process.stdout.close()


def _is_there(group: int) -> bool:
    """Does a process of the group live? One that is over may stay in it, where nobody looks how it ended."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    states = list(_states(group))
    return any(state not in "ZX" for state in states) if states else not _PROC.is_dir()


def _states(group: int) -> Iterator[str]:
    """Of the processes of the group, as far as the system tells."""
    for stat in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # it may end meanwhile
            state, _, own = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if own == str(group):
                yield state


def _end_group(process: subprocess.Popen[str]) -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, kind)
            os.killpg(process.pid, signal.SIGCONT)  # one that is paused takes no other signal but SIGKILL
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_STOP_TIMEOUT)


def _filled(argument: str, port: int, directory: Path) -> str:
    return argument.replace("{port}", str(port)).replace("{directory}", str(directory))


def _free_port() -> int:
    """A port that was free just now. Another program may take it first; then the broker says so."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
