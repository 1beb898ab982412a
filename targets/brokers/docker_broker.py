"""A real broker in a Docker container of our own, for as long as a `with` block lasts."""

from __future__ import annotations

import contextlib
import io
import queue
import secrets
import socket
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Self

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.erlang_shell import ErlangShell
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.images import BUILD_COMMAND, IMAGES, LOCAL_PREFIX
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.owner import OWNER, is_gone, labels
from amqpspec.targets.brokers.rabbitmqctl_operator import operator_by
from amqpspec.targets.brokers.readiness import BrokerUnavailable, LogMemory, wait_until_open, wait_until_ready
from amqpspec.targets.brokers.single_node import BROKER_FAULTS, SingleNode
from amqpspec.targets.errors import OperatorError, TargetError

_AMQP_PORT = "5672/tcp"
_CONFIGURATION_DIRECTORY = "/etc/rabbitmq"
_ADVANCED_SETTINGS = frozenset({"channel_tick_interval"})
"""Settings of the application `rabbit` that rabbitmq.conf has no key for; they go to advanced.config."""

_ENVIRONMENT = {
    # Erlang sizes a table by the limit of open files, which container engines often leave unbounded.
    "ERL_MAX_PORTS": "65536",
    # Erlang's schedulers would burn the processors that the suite shares with the broker.
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
}

_MEMORY = "/run/amqpspec"
"""Where RabbitMQ keeps its data: in memory, so that a disk that is busy for seconds is no silence of the broker. Not
its usual directory, as that belongs to a user whose number only the image knows."""

_ENGINE_ERRORS = (DockerException, OSError)
"""The client library lets the errors of its transport (all of them OSError) through."""


class CommandFailed(TargetError):
    """A command inside a broker's container ended with a status other than 0; one line says which and why."""


class DockerBroker:
    """Context manager: starts `image`, waits until it answers AMQP, and removes the container at the end.

    `image` is a local image when there is one of that name, else it is pulled. `configuration` holds
    rabbitmq.conf settings (`{"consumer_timeout": "5000"}`), and `channel_tick_interval` in milliseconds;
    only RabbitMQ images take it. The broker's port is published on the loopback interface alone, and used where the
    container cannot be reached at its own address. The data of a RabbitMQ are in memory, and gone when it stops,
    unless it `keeps_data`.
    Raises BrokerUnavailable where the engine, the image or the broker cannot be had.
    """

    def __init__(
        self,
        image: str,
        *,
        configuration: Mapping[str, str] = MappingProxyType({}),
        start_timeout: float = 240.0,
        keeps_data: bool = False,
    ) -> None:
        self.image = image
        self.container_name = f"amqpspec-{secrets.token_hex(6)}"
        self._configuration = dict(configuration)
        self._start_timeout = start_timeout
        self._keeps_data = keeps_data
        self._client: docker.DockerClient | None = None
        self._container: Container | None = None
        self._address: Address | None = None
        self._follower: _LogFollower | None = None
        #: for its operator, once that has been asked for
        self._shell: ErlangShell | None = None
        self._shell_lock = threading.Lock()

    @property
    def address(self) -> Address:
        """Where the broker listens. Raises BrokerUnavailable outside the `with` block."""
        if self._address is None:
            raise BrokerUnavailable(f"{self.image} is not running")
        return self._address

    def __enter__(self) -> Self:
        self._client = _connect_to_engine()
        try:
            remove_orphans(self._client)
            _provide_image(self._client, self.image)
            # Pulling has its own pace: the limit is for the broker.
            deadline = time.monotonic() + self._start_timeout
            self._container = self._create(self._client)
            self._configure(self._container)
            self._container.start()
            self._address = self._await_ready(self._container, deadline)
        except _ENGINE_ERRORS as error:
            self._remove()
            raise BrokerUnavailable(f"{self.image}: Docker cannot run it: {_one_line(error)}") from error
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def execute(self, *command: str) -> str:
        """Runs a command in the container (such as `rabbitmqctl list_queues`) and returns what it printed.

        Raises CommandFailed when its exit status is not 0, BrokerUnavailable when the container is gone.
        """
        try:
            status, output = self._running().exec_run(list(command))
        except _ENGINE_ERRORS as error:
            raise BrokerUnavailable(f"{self.image}: cannot run {command[0]}: {_one_line(error)}") from error
        text: str = output.decode("utf-8", errors="replace")
        if status != 0:
            line = " ".join(command)
            raise CommandFailed(f"{line} in {self.image}: exit status {status}: {_one_line(text)}")
        return text

    def operator(self) -> Operator | None:
        """Who operates the broker, if there is a RabbitMQ in the container."""

        def by_shell(expressions: str) -> str:
            shell = self._ready_shell()
            try:
                return shell.evaluate(expressions)
            except OperatorError:
                # What it may still say would be taken for the next answer: that is another one's.
                self._end_shell(shell)
                raise

        return operator_by(by_shell, lambda expressions: self.execute("rabbitmqctl", "eval", expressions))

    def last_lines(self) -> tuple[str, ...]:
        """The last that the broker wrote to its log; of one that has ended, to its end."""
        if self._follower is not None:
            self._follower.ended.wait(timeout=1.0)
            return self._follower.memory.last_lines()
        return ()

    def faults(self) -> FaultInjector | None:
        """Who stops it and starts it again; None: it does not keep its data, so nothing is left of it then."""
        return SingleNode(self, BROKER_FAULTS) if self._keeps_data else None

    def restart(self, *, kill: bool = False) -> None:
        """Stops the broker (with `kill`: at once, as a crash would) and starts it on the same data.

        The address may change: Docker publishes another port. Raises BrokerUnavailable when it does not return,
        ValueError for a broker that does not keep its data.
        """
        if not self._keeps_data:
            raise ValueError(f"{self.image} does not keep its data")
        if kill:
            self.kill()
        else:
            self.stop()
        self.start_again()

    # ------------------------------------------------------- what is done to it (`targets.brokers.single_node.Node`)

    def stop(self) -> None:
        container = self._running()
        self._end_shell()
        with self._engine("stop"):
            container.stop(timeout=int(self._start_timeout))

    def kill(self) -> None:
        container = self._running()
        self._end_shell()
        with self._engine("kill"):
            container.kill()
            container.wait(timeout=self._start_timeout)

    def pause(self) -> None:
        with self._engine("pause"):
            self._running().pause()

    def resume(self) -> None:
        with self._engine("resume"):
            self._running().unpause()

    def start_again(self) -> None:
        container = self._running()
        with self._engine("restart"):
            container.start()
        self._address = self._await_ready(container, time.monotonic() + self._start_timeout)

    @contextlib.contextmanager
    def _engine(self, what: str) -> Iterator[None]:
        try:
            yield
        except _ENGINE_ERRORS as error:
            raise BrokerUnavailable(f"{self.image}: cannot {what} it: {_one_line(error)}") from error

    def _running(self) -> Container:
        if self._container is None:
            raise BrokerUnavailable(f"{self.image} is not running")
        return self._container

    def _create(self, client: docker.DockerClient) -> Container:
        return client.containers.create(
            self.image,
            name=self.container_name,
            labels=labels(),
            ports={_AMQP_PORT: ("127.0.0.1", None)},
            environment=_ENVIRONMENT if self._keeps_data else {**_ENVIRONMENT, "RABBITMQ_MNESIA_BASE": _MEMORY},
            tmpfs={} if self._keeps_data else {_MEMORY: ""},
        )

    def _configure(self, container: Container) -> None:
        files = _configuration_files(self._configuration)
        if not files:
            return
        try:
            container.put_archive(_CONFIGURATION_DIRECTORY, _archive(files))
        except NotFound as error:
            raise BrokerUnavailable(
                f"{self.image} takes no configuration: without {_CONFIGURATION_DIRECTORY} it is no RabbitMQ"
            ) from error

    def _await_ready(self, container: Container, deadline: float) -> Address:
        log = _LogFollower(container)
        self._follower = log
        container.reload()
        bindings = container.ports.get(_AMQP_PORT)
        if not bindings:
            log.ended.wait(timeout=1.0)  # for what it said before it ended
            raise BrokerUnavailable(f"{self.image}: {_reason_for_failure(container)}{log.memory.quote()}")
        published = Address(host="127.0.0.1", port=int(bindings[0]["HostPort"]))
        # The container's own address may be filtered: the published port comes after it.
        addresses = [address for address in (_own_address(container), published) if address]
        address = wait_until_ready(addresses, deadline, log.signs, log.ended.is_set)
        if address is None:
            if log.ended.is_set():
                raise BrokerUnavailable(f"{self.image}: {_reason_for_failure(container)}{log.memory.quote()}")
            raise BrokerUnavailable(
                f"{self.image}: no AMQP answer within {self._start_timeout:g} s{log.memory.quote()}"
            )
        wait_until_open(address, deadline, log.signs)
        return address

    def _remove(self) -> None:
        container, self._container, self._address = self._container, None, None
        client, self._client = self._client, None
        self._end_shell()
        # Nobody is helped by an error here: the container is gone, or its engine is.
        with contextlib.suppress(*_ENGINE_ERRORS):
            if container is not None:
                container.remove(force=True, v=True)
        if client is not None:
            client.close()

    def _ready_shell(self) -> ErlangShell:
        with self._shell_lock:
            if self._shell is None:
                self._shell = ErlangShell(self._running())
            return self._shell

    def _end_shell(self, only: ErlangShell | None = None) -> None:
        """`only`: unless there is another one by now."""
        with self._shell_lock:
            shell = self._shell
            if shell is None or (only is not None and shell is not only):
                return
            self._shell = None
        shell.close()


class _LogFollower:
    """Follows a container's log in the background: each piece is a sign of life, its end is the end."""

    def __init__(self, container: Container) -> None:
        self.signs: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.ended = threading.Event()
        self.memory = LogMemory()
        self._container = container
        threading.Thread(target=self._follow, name=f"log of {container.name}", daemon=True).start()

    def _follow(self) -> None:
        # A lost log stream is no judgement on the broker: only an end that the engine tells is one.
        with contextlib.suppress(*_ENGINE_ERRORS, ValueError):
            for piece in self._container.logs(stream=True, follow=True, since=int(time.time()) - 1):
                self.memory.add(piece.decode("utf-8", errors="replace"))
                self.signs.put(piece)
            self.ended.set()
        self.signs.put("")


def _own_address(container: Container) -> Address | None:
    """Where the container itself listens, if it is in a network of this machine; None: it is not.

    A published port is served by a process of Docker that copies each octet, which takes as long as the broker does.
    Once a container has ended, the next one that starts may get its address.
    """
    for network in container.attrs["NetworkSettings"]["Networks"].values():
        host, gateway = network.get("IPAddress"), network.get("Gateway")
        if host and gateway and _is_of_this_machine(gateway):
            return Address(host=host, port=int(_AMQP_PORT.partition("/")[0]))
    return None


def _is_of_this_machine(host: str) -> bool:
    """Is it the address of one of this machine's interfaces? An engine in a virtual machine has networks there."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _connect_to_engine() -> docker.DockerClient:
    try:
        client = docker.from_env()
    except DockerException as error:
        raise _engine_unreachable(error) from error
    try:
        client.ping()
    except _ENGINE_ERRORS as error:
        client.close()
        raise _engine_unreachable(error) from error
    return client


def remove_orphans(client: docker.DockerClient) -> None:
    """Take away what runs have left that were killed: containers, and then networks."""
    for things in (partial(client.containers.list, all=True), client.networks.list):
        with contextlib.suppress(*_ENGINE_ERRORS):
            for each in things(filters={"label": OWNER}):
                if is_gone(_labels_of(each).get(OWNER, "")):
                    _remove_orphan(each)


def _labels_of(thing: Container | Network) -> dict[str, str]:
    found = thing.labels if isinstance(thing, Container) else thing.attrs.get("Labels")
    return found or {}


def _remove_orphan(thing: Container | Network) -> None:
    with contextlib.suppress(*_ENGINE_ERRORS):  # another run may do the same
        if isinstance(thing, Container):
            thing.remove(force=True, v=True)
        else:
            thing.remove()


def _engine_unreachable(error: Exception) -> BrokerUnavailable:
    return BrokerUnavailable(
        f"no Docker engine answers: start one, or point DOCKER_HOST at it ({_one_line(error)})"
    )


def _provide_image(client: docker.DockerClient, image: str) -> None:
    try:
        client.images.get(image)
        return
    except ImageNotFound:
        pass
    if image.startswith(LOCAL_PREFIX):
        raise BrokerUnavailable(f"no image {image} on this machine: {_how_to_build(image)}")
    try:
        client.images.pull(image)
    except _ENGINE_ERRORS as error:
        raise BrokerUnavailable(
            f"no image {image} on this machine, and it cannot be pulled: check the name, or load it "
            f"({_one_line(error)})"
        ) from error


def _how_to_build(image: str) -> str:
    """What to do about an image that is missing, and that no registry has."""
    ours = [each.name for each in IMAGES]
    tagged = image if ":" in image else f"{image}:latest"
    if tagged in ours:
        return f"build it with `{BUILD_COMMAND} {tagged}`"
    return f"`{BUILD_COMMAND}` builds {', '.join(ours)}, and none of that name"


def _configuration_files(configuration: Mapping[str, str]) -> dict[str, str]:
    """Path below /etc/rabbitmq -> content. Ours is read after what the image brings, so it prevails."""
    plain = {key: value for key, value in configuration.items() if key not in _ADVANCED_SETTINGS}
    advanced = {key: value for key, value in configuration.items() if key in _ADVANCED_SETTINGS}
    files = {}
    if plain:
        files["conf.d/90-amqpspec.conf"] = "".join(f"{key} = {value}\n" for key, value in plain.items())
    if advanced:
        terms = ", ".join(f"{{{key}, {int(value)}}}" for key, value in advanced.items())
        files["advanced.config"] = f"[{{rabbit, [{terms}]}}].\n"
    return files


def _archive(files: Mapping[str, str]) -> bytes:
    """A tar archive of `files`, readable by whichever user the broker runs as."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            data = content.encode()
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _reason_for_failure(container: Container) -> str:
    with contextlib.suppress(*_ENGINE_ERRORS):
        container.reload()
        if container.status == "running":
            return "the engine published no port for it"
        return f"the broker ended with exit status {container.attrs['State']['ExitCode']} before it was ready"
    return "the container is gone"


def _one_line(cause: object) -> str:
    """The cause in one line; what the engine itself said, where that is known."""
    text = str(cause.explanation) if isinstance(cause, APIError) and cause.explanation else str(cause)
    return " ".join(text.split())[:300]
