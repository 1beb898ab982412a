"""What happens to the nodes of a cluster, and to the network between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from amqpspec.model.protocol.methods import Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.cluster_node import ClusterNode, name_of
from amqpspec.targets.brokers.docker_engine import ENGINE_ERRORS, one_line
from amqpspec.targets.errors import OperatorError, OperatorMissing, TargetError

_LULL = 0.1  # seconds between two questions to a node

#: The names of the other nodes that a node is connected to, once it has heard of all that was to be heard of them;
#: and whether it serves: up to 4.2 one that was cut off stops by itself (rabbit_node_monitor: pause_minority), and
#: starts again when it is not.
_SEEN = """
    [rpc:call(Other, erlang, node, [], 5000) || Other <- nodes()],
    catch rabbit_node_monitor:partitions(),
    case rabbit:is_running() andalso whereis(rabbit_outside_app_process) =:= undefined of
        true -> lists:sort(nodes());
        false -> [does_not_serve]
    end.
"""
_NODES = "lists:sort(nodes())."
_PARTITIONS = "case catch rabbit_node_monitor:partitions() of Found when is_list(Found) -> Found; _ -> none end."

#: Moves a quorum queue's leader, which some versions offer in a module of their own. It is done when the node that was
#: asked says so: the function waits.
_TRANSFER = """
    {{ok, Queue}} = rabbit_amqqueue:lookup(rabbit_misc:r({vhost}, queue, {queue})),
    {{Name, _}} = Leader = amqqueue:get_pid(Queue),
    case ra:transfer_leadership(Leader, {{Name, {node}}}) of
        ok -> moved;
        already_leader -> moved
    end.
"""
#: The node that leads a quorum queue, as the members say.
_LEADER = """
    {{ok, Queue}} = rabbit_amqqueue:lookup(rabbit_misc:r({vhost}, queue, {queue})),
    case ra:members(amqqueue:get_pid(Queue), 5000) of
        {{ok, _, {{_, Node}}}} -> Node;
        Other -> Other
    end.
"""


class ClusterFaults:
    """A `targets.brokers.faults.FaultInjector`. `network.slow` is not offered: no image need have a tool for it."""

    def __init__(self, nodes: Sequence[ClusterNode], timeout: float) -> None:
        self._nodes = nodes
        self._timeout = timeout
        self._lock = threading.RLock()
        #: none was up: until all are, a node may wait for another that went down later
        self._was_all_down = False
        self._ways: dict[str, Callable[[Sequence[ClusterNode]], None]] = {
            "broker.stop": self._stop,
            "broker.kill": self._kill,
            "broker.pause": lambda nodes: _each(nodes, lambda node: node.pause()),
            "broker.resume": self._resume,
            "broker.restart": self._restart,
            "network.cut": lambda nodes: _each(nodes, lambda node: node.cut()),
            "network.heal": self._heal,
        }

    @property
    def offered(self) -> Collection[str]:
        return (*self._ways, "queue.transfer-leader")

    @property
    def nodes(self) -> Sequence[int]:
        return [node.number for node in self._nodes]

    def address_of(self, node: int) -> Address:
        return self._node(node).address

    def inject(self, fault: Fault) -> None:
        number = fault.arguments.get("node")
        if fault.name not in self.offered:
            raise OperatorMissing(f"a cluster of containers cannot do {fault.name}")
        nodes = self._nodes if number is None else [self._node(number)]
        with self._lock:
            try:
                if fault.name == "queue.transfer-leader":
                    self._transfer(fault)
                else:
                    self._ways[fault.name](nodes)
            except ENGINE_ERRORS as error:
                raise OperatorError(f"{fault.name}: {one_line(error)}") from error
            except OperatorMissing:
                raise
            except TargetError as error:
                raise OperatorError(f"{fault.name}: {error}") from error

    def undo(self) -> None:
        with self._lock:
            try:
                _each(self._nodes, lambda node: node.resume())
                self._heal(self._nodes)
                self._start([node for node in self._nodes if not node.is_up])
                await_whole(self._nodes, time.monotonic() + self._timeout)
                self._mend_partition()
            except ENGINE_ERRORS as error:
                raise OperatorError(f"the cluster cannot be made whole again: {one_line(error)}") from error
            except TargetError as error:
                raise OperatorError(f"the cluster cannot be made whole again: {error}") from error

    def _mend_partition(self) -> None:
        """Up to 4.2 a node that was paused for longer than the others wait does not notice that they went on without
        it, and does not know what they know since, nor they what it knows: somebody has to start it again (RabbitMQ
        guide: network partitions, suspend and resume).
        """
        if any(node.evaluate(_PARTITIONS) not in ("[]", "none") for node in self._nodes):
            self._restart([node for node in self._nodes if node.was_paused] or self._nodes[:1])
            await_whole(self._nodes, time.monotonic() + self._timeout)

    def _node(self, number: object) -> ClusterNode:
        for node in self._nodes:
            if node.number == number:
                return node
        raise OperatorMissing(f"there is no node {number}: the cluster has {len(self._nodes)}")

    def _stop(self, nodes: Sequence[ClusterNode]) -> None:
        _each(nodes, lambda node: node.stop(self._timeout))
        self._note_all_down()

    def _kill(self, nodes: Sequence[ClusterNode]) -> None:
        _each(nodes, lambda node: node.kill())
        self._note_all_down()

    def _note_all_down(self) -> None:
        self._was_all_down |= not any(node.is_up for node in self._nodes)

    def _restart(self, nodes: Sequence[ClusterNode]) -> None:
        self._stop([node for node in nodes if node.is_up])
        self._start(nodes)

    def _start(self, nodes: Sequence[ClusterNode]) -> None:
        """Without a majority a node does not come up before others do: then it is only started."""
        if not nodes:
            return
        _each(nodes, lambda node: node.start())
        up = [node for node in self._nodes if node.is_up and not node.is_paused]
        if 2 * len(up) <= len(self._nodes) or (self._was_all_down and len(up) < len(self._nodes)):
            return
        self._was_all_down = False
        # those that had to wait come up with these
        _each(up, lambda node: node.await_ready(self._timeout))
        self._await_connected()

    def _resume(self, nodes: Sequence[ClusterNode]) -> None:
        _each(nodes, lambda node: node.resume())
        self._await_connected()
        _each([node for node in nodes if node.is_up], lambda node: node.await_ready(self._timeout))

    def _heal(self, nodes: Sequence[ClusterNode]) -> None:
        """Not before all have noticed that they were cut off: else some of them would notice it afterwards."""
        cut = [node for node in nodes if node.is_cut]
        if not cut:
            return
        until = time.monotonic() + self._timeout
        for node in self._nodes:
            if not node.is_up or node.is_paused:
                continue
            lost = {name_of(each.number) for each in (self._nodes if node.is_cut else cut) if each is not node}
            _await(lambda node=node: node.evaluate(_NODES), lambda seen, lost=lost: not lost & _names(seen), until)  # type: ignore[misc]
        _each(cut, lambda node: node.heal())
        self._await_connected()
        # those that paused themselves while they were cut off serve again
        _each([node for node in cut if node.is_up], lambda node: node.await_ready(self._timeout))

    def _await_connected(self) -> None:
        connected = [node for node in self._nodes if node.is_up and not node.is_paused and not node.is_cut]
        await_whole(connected, time.monotonic() + self._timeout)

    def _transfer(self, fault: Fault) -> None:
        queue, number = fault.arguments.get("queue", ""), fault.arguments.get("node")
        vhost = _binary(self._nodes[0].address.vhost)
        through = next(node for node in self._nodes if node.is_up and not node.is_paused)
        leads = _LEADER.format(vhost=vhost, queue=_binary(queue))
        if number is None:
            now = through.evaluate(leads)
            others = [node.number for node in self._nodes if name_of(node.number) != now and node.is_up]
            number = others[0]
        wanted = name_of(self._node(number).number)
        said = through.evaluate(_TRANSFER.format(vhost=vhost, queue=_binary(queue), node=wanted))
        if said != "moved":
            raise OperatorError(f"node {number} does not lead the queue {queue}: {said[:300]}")
        _await(lambda: through.evaluate(leads), lambda leader: leader == wanted, time.monotonic() + self._timeout)


def await_whole(nodes: Sequence[ClusterNode], until: float) -> None:
    """Until each of these nodes is connected to all others of them. Raises `TargetError`."""
    for node in nodes:
        others = {name_of(each.number) for each in nodes if each is not node}
        _await(lambda node=node: node.evaluate(_SEEN), lambda seen, others=others: others <= _names(seen), until)  # type: ignore[misc]


def _await(ask: Callable[[], str], is_right: Callable[[str], bool], until: float) -> None:
    """Ask again until the answer is right. Raises `OperatorError`."""
    while not is_right(answer := ask()):
        if time.monotonic() > until:
            raise OperatorError(f"it stays at {answer[:300]}")
        threading.Event().wait(_LULL)


def _names(printed: str) -> set[str]:
    return {name.strip() for name in printed.strip("[]").split(",")}


def _each(nodes: Sequence[ClusterNode], do: Callable[[ClusterNode], None]) -> None:
    """For all at once: each may take seconds. The first error is raised when all are done."""
    if not nodes:
        return
    with ThreadPoolExecutor(len(nodes)) as threads:
        for done in [threads.submit(do, node) for node in nodes]:
            done.result()


def _binary(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'<<"{escaped}"/utf8>>'
