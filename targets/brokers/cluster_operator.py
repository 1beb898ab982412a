"""The operator of a cluster: what holds for each node is done on each, the rest on one that is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.targets.brokers.cluster_node import ClusterNode
from amqpspec.targets.brokers.operator import PeerOf
from amqpspec.targets.brokers.rabbitmqctl_operator import RabbitmqctlOperator
from amqpspec.targets.errors import OperatorError

#: Each node has its own settings.
_ON_EACH_NODE = frozenset({"operator.configure", "operator.reset-configuration"})


class ClusterOperator:
    """Carries out actions while at least one of the nodes answers."""

    def __init__(self, nodes: Sequence[ClusterNode]) -> None:
        self._nodes = nodes

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        for action in actions:
            self._each(action, lambda operator, action=action: operator.carry_out([action], peer_of))  # type: ignore[misc]

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        for node in self._answering():
            RabbitmqctlOperator(node.evaluate).undo(actions)

    def _each(self, action: OperatorAction, do: Callable[[RabbitmqctlOperator], None]) -> None:
        nodes = self._answering()
        if action.name == "operator.close-connection":
            # a connection is known to its own node
            number = int(str(action.arguments.get("name", "")).partition("@")[2] or 1)
            nodes = [node for node in nodes if node.number == number]
        elif action.name not in _ON_EACH_NODE:
            nodes = nodes[:1]
        if not nodes:
            raise OperatorError(f"the operator could not do {action.name}: the node is down")
        for node in nodes:
            do(RabbitmqctlOperator(node.evaluate))

    def _answering(self) -> list[ClusterNode]:
        """Those that are up; one that is cut off comes last, as it may decide nothing."""
        nodes = [node for node in self._nodes if node.is_up and not node.is_paused]
        return sorted(nodes, key=lambda node: node.is_cut)
