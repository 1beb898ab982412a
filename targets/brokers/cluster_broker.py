"""A cluster of three nodes of RabbitMQ, in Docker containers of our own, for as long as a `with` block lasts.

Two networks: one between the nodes, one to the clients (`cluster_node`). The data are kept while a node is down. What
takes a minute with the settings that RabbitMQ is delivered with takes seconds here.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType, TracebackType
from typing import Self

import docker
from docker.models.networks import Network

from amqpspec.targets.address import Address
from amqpspec.targets.brokers import docker_engine
from amqpspec.targets.brokers.cluster_faults import ClusterFaults, await_whole
from amqpspec.targets.brokers.cluster_node import ClusterNode, name_of
from amqpspec.targets.brokers.cluster_operator import ClusterOperator
from amqpspec.targets.brokers.container_guard import ensure_guard
from amqpspec.targets.brokers.docker_engine import ENGINE_ERRORS, one_line
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.owner import labels
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.errors import TargetError

SIZE = 3

SETTINGS: Mapping[str, str] = {
    "cluster_formation.peer_discovery_backend": "classic_config",
    **{f"cluster_formation.classic_config.nodes.{number}": name_of(number) for number in range(1, SIZE + 1)},
    # Up to 4.2 what nodes that are cut off from each other do is for the operator to say: those of a minority serve
    # nobody until they are back. Later versions know no other way than that of their store (rabbit_node_monitor).
    "cluster_partition_handling": "pause_minority",
    # 4.3: when the deliveries of a node that is cut off come back. Milliseconds; otherwise a minute.
    "consumer_disconnected_timeout": "4000",
}

_Exception = type[BaseException]


class ClusterBroker:
    """Context manager: starts three containers of `image`, waits until they are a cluster, and removes them at the end.

    `configuration` as of `docker_broker.DockerBroker`, besides `SETTINGS`. Raises BrokerUnavailable where the engine,
    the image or the cluster cannot be had.
    """

    def __init__(
        self,
        image: str,
        *,
        configuration: Mapping[str, str] = MappingProxyType({}),
        start_timeout: float = 240.0,
    ) -> None:
        self.image = image
        self.name = f"amqpspec-{secrets.token_hex(6)}"
        self._configuration = {**SETTINGS, **configuration}
        self._start_timeout = start_timeout
        self._client: docker.DockerClient | None = None
        self._networks: list[Network] = []
        self._nodes: list[ClusterNode] = []
        self._faults: ClusterFaults | None = None

    @property
    def address(self) -> Address:
        """Of the first node. Raises BrokerUnavailable outside the `with` block."""
        return self._running()[0].address

    def faults(self) -> ClusterFaults:
        """Who does what can be done to the nodes and the network between them."""
        self._running()
        assert self._faults is not None
        return self._faults

    def operator(self) -> Operator | None:
        return ClusterOperator(self._running())

    def last_lines(self) -> tuple[str, ...]:
        """The last that each node wrote to its log."""
        return tuple(f"node {node.number}: {line}" for node in self._nodes for line in node.last_lines()[-4:])

    def __enter__(self) -> Self:
        self._client = docker_engine.connect_to_engine()
        try:
            docker_engine.remove_orphans(self._client)
            ensure_guard()
            docker_engine.provide_image(self._client, self.image)
            self._create(self._client)
            self._start()
        except ENGINE_ERRORS as error:
            self._remove()
            raise BrokerUnavailable(f"{self.image}: Docker cannot run a cluster: {one_line(error)}") from error
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: _Exception | None, exception: BaseException | None, trace: TracebackType | None) -> None:
        self._remove()

    def _create(self, client: docker.DockerClient) -> None:
        # nothing is published from a network that is internal: ports are the clients' business
        for kind, is_internal in (("nodes", True), ("clients", False)):
            network = client.networks.create(f"{self.name}-{kind}", internal=is_internal, labels=labels())
            self._networks.append(network)
        nodes, clients = self._networks
        for number in range(1, SIZE + 1):
            node = ClusterNode.create(client, number, self.image, self.name, (nodes, clients), self._configuration)
            self._nodes.append(node)

    def _start(self) -> None:
        until = time.monotonic() + self._start_timeout
        for node in self._nodes:
            node.start()
        with ThreadPoolExecutor(SIZE) as threads:
            for _ in threads.map(lambda node: node.await_ready(self._start_timeout), self._nodes):
                pass
        try:
            await_whole(self._nodes, until)
        except TargetError as error:
            raise BrokerUnavailable(f"{self.image}: the three nodes are no cluster: {error}") from error
        self._faults = ClusterFaults(self._nodes, self._start_timeout)

    def _running(self) -> list[ClusterNode]:
        if self._faults is None:
            raise BrokerUnavailable(f"{self.image} is not running")
        return self._nodes

    def _remove(self) -> None:
        self._faults = None
        nodes, self._nodes = self._nodes, []
        networks, self._networks = self._networks, []
        client, self._client = self._client, None
        for node in nodes:
            node.remove()
        for network in networks:
            with contextlib.suppress(*ENGINE_ERRORS):
                network.remove()
        if client is not None:
            docker_engine.remove_named(client, self.name)  # interrupted before it was known
            client.close()
