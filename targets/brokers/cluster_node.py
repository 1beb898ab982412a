"""One node of a cluster: RabbitMQ in a container that is in two networks.

On the network of the nodes it has an alias, by which the others know it; on that of the clients it has none. So who
takes it from the first parts it from the other nodes and from no client. The container has no host name of its own, as
the engine would make that known on every network, and the nodes would go on talking through the other one. To itself
the node is known by the loopback interface: it can be operated while it is cut off.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping

import docker
from docker.errors import NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from amqpspec.targets.address import Address
from amqpspec.targets.brokers import docker_engine
from amqpspec.targets.brokers.container_log import ContainerLog
from amqpspec.targets.brokers.docker_engine import AMQP_PORT, ENGINE_ERRORS, ENVIRONMENT
from amqpspec.targets.brokers.erlang_shell import ErlangShell
from amqpspec.targets.brokers.owner import labels
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.errors import OperatorError

_ERLANG_ARGUMENTS = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
#: Seconds without a sign of another node after which it is taken to be gone; Erlang's own value is 60.
_TICK_TIME = 5


def host_of(number: int) -> str:
    return f"node{number}"


def name_of(number: int) -> str:
    """What Erlang calls the node."""
    return f"rabbit@{host_of(number)}"


class ClusterNode:
    """A container that is created, and removed, by whoever has the cluster; here it is started, stopped and cut off.

    `number`: from 1. What the engine cannot do is raised as the engine's error.
    """

    def __init__(
        self, number: int, image: str, cookie: str, container: Container, nodes: Network, clients: Network
    ) -> None:
        self.number = number
        self._image = image
        self._cookie = cookie
        self._container = container
        self._nodes = nodes
        self._clients = clients
        self._address: Address | None = None
        self._log: ContainerLog | None = None
        self._shell: ErlangShell | None = None
        self._shell_lock = threading.Lock()
        self.is_up = False
        self.is_paused = False
        self.is_cut = False
        #: it was paused since it was started: others may have taken it for gone, unseen by itself
        self.was_paused = False

    @classmethod
    def create(
        cls,
        client: docker.DockerClient,
        number: int,
        image: str,
        cluster: str,
        networks: tuple[Network, Network],
        configuration: Mapping[str, str],
    ) -> ClusterNode:
        """`cluster` begins the name of the container, and is the cookie. `networks`: of the nodes, and of clients."""
        nodes, clients = networks
        arguments = f"{ENVIRONMENT[_ERLANG_ARGUMENTS]} -setcookie {cluster} -kernel net_ticktime {_TICK_TIME}"
        container = client.containers.create(
            image,
            name=f"{cluster}-{host_of(number)}",
            labels=labels(),
            ports={AMQP_PORT: ("127.0.0.1", None)},
            environment={**ENVIRONMENT, "RABBITMQ_NODENAME": name_of(number), _ERLANG_ARGUMENTS: arguments},
            extra_hosts={host_of(number): "127.0.0.1"},
            network=clients.name,
        )
        try:
            nodes.connect(container, aliases=[host_of(number)])
            docker_engine.configure(container, image, configuration)
        except BaseException:
            container.remove(force=True, v=True)
            raise
        return cls(number, image, cluster, container, nodes, clients)

    @property
    def address(self) -> Address:
        """Where clients reach it, or reached it last. Raises BrokerUnavailable before it was ever ready."""
        if self._address is None:
            raise BrokerUnavailable(f"node {self.number} of {self._image} was never ready")
        return self._address

    def start(self) -> None:
        self._container.start()
        self._log = ContainerLog(self._container)
        self.is_up = True
        self.was_paused = False

    def await_ready(self, timeout: float) -> None:
        """Raises BrokerUnavailable where it does not answer AMQP in time."""
        assert self._log is not None
        of = f"node {self.number} of {self._image}"
        self._address = docker_engine.await_ready(self._container, of, self._log, timeout, self._clients.name)

    def stop(self, timeout: float) -> None:
        """In order; without effect where it is down."""
        self.resume()
        self.end_shell()
        self._container.stop(timeout=int(timeout))
        self.is_up = False

    def kill(self) -> None:
        self.end_shell()
        if self.is_up:
            self._container.kill()
            self._container.wait(timeout=60)
        self.is_up = self.is_paused = False

    def pause(self) -> None:
        if self.is_up and not self.is_paused:
            self._container.pause()
            self.is_paused = self.was_paused = True

    def resume(self) -> None:
        if self.is_paused:
            self._container.unpause()
            self.is_paused = False

    def cut(self) -> None:
        """Nothing passes any more between it and the other nodes."""
        if not self.is_cut:
            self._nodes.disconnect(self._container, force=True)
            self.is_cut = True

    def heal(self) -> None:
        if self.is_cut:
            self._nodes.connect(self._container, aliases=[host_of(self.number)])
            self.is_cut = False

    def evaluate(self, expressions: str) -> str:
        """Has the node evaluate Erlang expressions; gives what is printed of the value. Raises `TargetError`."""
        with self._shell_lock:
            if self._shell is None:
                self._shell = ErlangShell(self._container, name_of(self.number), self._cookie)
            shell = self._shell
        try:
            return shell.evaluate(expressions)
        except OperatorError:
            # What it may still say would be taken for the next answer: that is another one's.
            self.end_shell()
            raise

    def end_shell(self) -> None:
        with self._shell_lock:
            shell, self._shell = self._shell, None
        if shell is not None:
            shell.close()

    def last_lines(self) -> tuple[str, ...]:
        return self._log.memory.last_lines() if self._log is not None else ()

    def remove(self) -> None:
        """Nobody is helped by an error here: the container is gone, or its engine is."""
        with contextlib.suppress(*ENGINE_ERRORS):
            self.end_shell()
        with contextlib.suppress(NotFound, *ENGINE_ERRORS):
            self._container.remove(force=True, v=True)
