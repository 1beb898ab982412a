"""The queues of a soak as its trace declares them, and where messages go."""

from __future__ import annotations

from typing import Any

from amqpspec.model.promises.queue_types import QueueType

#: A quorum queue gives up a message that came back so often, unless it is told otherwise.
_DELIVERY_LIMIT = 20


class Topology:
    """Nothing is ever taken away while messages are published. `types`: type by queue. `homes`: the node of a
    cluster that has a classic queue: that of the client who declared it. `declared`: when, by queue.
    """

    delivery_limit = _DELIVERY_LIMIT

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.homes: dict[str, int] = {}
        self.declared: dict[str, float] = {}
        #: queues that refuse what is too much
        self.limited: set[str] = set()
        self._kinds: dict[str, str] = {}
        self._bindings: dict[str, list[tuple[str, str]]] = {}

    def take(self, method: str, arguments: dict[str, Any], node: int = 0, time: float = 0.0) -> None:
        """queue.declare, exchange.declare or queue.bind was sent to that node, at that time of the trace."""
        if method == "queue.declare":
            if not arguments.get("passive"):
                name, given = str(arguments.get("queue", "")), arguments.get("arguments") or {}
                self.types[name] = str(given.get("x-queue-type", QueueType.CLASSIC.value))
                self.declared[name] = time
                if self.types[name] == QueueType.CLASSIC.value:
                    self.homes[name] = node
                if "x-max-length" in given:
                    self.limited.add(name)
        elif method == "exchange.declare":
            self._kinds[str(arguments.get("exchange", ""))] = str(arguments.get("type", "direct"))
        else:
            bound = (str(arguments.get("routing_key", "")), str(arguments.get("queue", "")))
            self._bindings.setdefault(str(arguments.get("exchange", "")), []).append(bound)

    def type_of(self, queue: str) -> str:
        return self.types.get(queue, QueueType.CLASSIC.value)

    def queues_of(self, exchange: str, key: str) -> tuple[str, ...]:
        """Where a message with that routing key goes."""
        if not exchange:
            return (key,) if key in self.types else ()
        is_for_all = self._kinds.get(exchange) == "fanout"
        return tuple(queue for bound, queue in self._bindings.get(exchange, ()) if is_for_all or bound == key)
