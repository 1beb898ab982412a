"""A real broker in a Docker container of our own, for as long as a `with` block lasts."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType, TracebackType
from typing import Self

import docker
from docker.models.containers import Container

from amqpspec.targets.address import Address
from amqpspec.targets.brokers import docker_engine
from amqpspec.targets.brokers.container_guard import ensure_guard
from amqpspec.targets.brokers.container_log import ContainerLog
from amqpspec.targets.brokers.docker_engine import AMQP_PORT, ENGINE_ERRORS, ENVIRONMENT, CommandFailed, one_line
from amqpspec.targets.brokers.erlang_shell import ErlangShell
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.owner import labels
from amqpspec.targets.brokers.rabbitmqctl_operator import operator_by
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.brokers.single_node import BROKER_FAULTS, SingleNode
from amqpspec.targets.errors import OperatorError

_MEMORY = "/run/amqpspec"
"""Where RabbitMQ keeps its data: in memory, so that a disk that is busy for seconds is no silence of the broker. Not
its usual directory, as that belongs to a user whose number only the image knows."""


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
        self._follower: ContainerLog | None = None
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
        self._client = docker_engine.connect_to_engine()
        try:
            docker_engine.remove_orphans(self._client)
            ensure_guard()
            docker_engine.provide_image(self._client, self.image)
            self._container = self._create(self._client)
            docker_engine.configure(self._container, self.image, self._configuration)
            self._container.start()
            self._address = self._await_ready(self._container)
        except ENGINE_ERRORS as error:
            self._remove()
            raise BrokerUnavailable(f"{self.image}: Docker cannot run it: {one_line(error)}") from error
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
        except ENGINE_ERRORS as error:
            raise BrokerUnavailable(f"{self.image}: cannot run {command[0]}: {one_line(error)}") from error
        text: str = output.decode("utf-8", errors="replace")
        if status != 0:
            line = " ".join(command)
            raise CommandFailed(f"{line} in {self.image}: exit status {status}: {one_line(text)}")
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
            self._address = self._await_ready(container)

    @contextlib.contextmanager
    def _engine(self, what: str) -> Iterator[None]:
        try:
            yield
        except ENGINE_ERRORS as error:
            raise BrokerUnavailable(f"{self.image}: cannot {what} it: {one_line(error)}") from error

    def _running(self) -> Container:
        if self._container is None:
            raise BrokerUnavailable(f"{self.image} is not running")
        return self._container

    def _create(self, client: docker.DockerClient) -> Container:
        return client.containers.create(
            self.image,
            name=self.container_name,
            labels=labels(),
            ports={AMQP_PORT: ("127.0.0.1", None)},
            environment=ENVIRONMENT if self._keeps_data else {**ENVIRONMENT, "RABBITMQ_MNESIA_BASE": _MEMORY},
            tmpfs={} if self._keeps_data else {_MEMORY: ""},
        )

    def _await_ready(self, container: Container) -> Address:
        self._follower = ContainerLog(container)
        return docker_engine.await_ready(container, self.image, self._follower, self._start_timeout)

    def _remove(self) -> None:
        container, self._container, self._address = self._container, None, None
        client, self._client = self._client, None
        self._end_shell()
        # Nobody is helped by an error here: the container is gone, or its engine is.
        with contextlib.suppress(*ENGINE_ERRORS):
            if container is not None:
                container.remove(force=True, v=True)
        if client is not None:
            docker_engine.remove_named(client, self.container_name)  # interrupted before it was known
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
