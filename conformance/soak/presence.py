"""Is the broker of a soak still there, and is it still the same one?"""

from __future__ import annotations

from collections.abc import Collection

from amqpspec.conformance.session.nodes import node_of
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.errors import TargetUnreachable


class Presence:
    """Fed what is tried and what comes. Raises `TargetUnreachable` where the broker is lost."""

    def __init__(self) -> None:
        #: by node, since when connections have been tried and none is served
        self._unserved_since: dict[int, float] = {}
        #: by node, what it calls itself: each node of a cluster that nobody has named has a name of its own
        self._identities: dict[int, tuple[str, str]] = {}

    def tried(self, node: int, now: float) -> None:
        """A connection to that node is tried."""
        self._unserved_since.setdefault(node, now)

    def hear(self, event: TraceEvent) -> None:
        """A frame came. The address of a container that has ended may be another one's a moment later."""
        if event.name == "connection.start":
            told = event.arguments.get("server_properties") or {}
            identity = str(told.get("product", "")), str(told.get("cluster_name", ""))
            if self._identities.setdefault(node_of(event.connection), identity) != identity:
                raise TargetUnreachable("the broker is gone: another one answers at its address")
        elif event.channel or event.name == "connection.open-ok":
            self._unserved_since.pop(node_of(event.connection), None)

    def look(self, reachable: Collection[int], now: float, limit: float) -> None:
        """`reachable`: the nodes that nothing is known to be wrong with; `limit`: seconds until one is lost."""
        for node, since in list(self._unserved_since.items()):
            if node not in reachable:
                del self._unserved_since[node]
            elif now - since > limit:
                place = f" to node {node}" if len(reachable) > 1 else ""
                raise TargetUnreachable(f"no connection{place} could be opened for {limit:g} s")
