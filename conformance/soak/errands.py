"""What is asked for one after another, such as to declare the queues of a soak and to delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amqpspec.conformance.soak.client import Client, Mill
from amqpspec.conformance.soak.plan import SoakPlan
from amqpspec.model.protocol.methods import TraceEvent

#: A method and its arguments.
Errand = tuple[str, dict[str, Any]]


class Errands(Client):
    """`refusals`: what the broker said to those that it refused. They are left out after that."""

    def __init__(self, name: str, errands: Sequence[Errand], mill: Mill) -> None:
        super().__init__(name, mill)
        self._left = list(errands)
        self._channel = 0
        self.refusals: list[str] = []

    def opened(self) -> None:
        self._channel = self.next_channel()
        self.send(self._channel, "channel.open")
        self.waits_since = self.mill.now()

    def on_channel(self, event: TraceEvent) -> None:
        if event.name == "channel.close":
            self.send(event.channel, "channel.close-ok")
            name, arguments = self._left.pop(0)
            self.refusals.append(f"{name} {arguments.get('queue', '')}: {event.arguments.get('reply_text', '')}")
            self.opened()
            return
        if event.name != "channel.open-ok":
            self._left.pop(0)
        if not self._left:
            self.finish()
            return
        name, arguments = self._left[0]
        self.waits_since = self.mill.now()
        self.send(self._channel, name, **arguments)

    def act(self, now: float) -> None:
        """It acts by what it receives."""

    def lost(self) -> None:
        """What is left is asked for on the next connection."""


def declaring(plan: SoakPlan) -> list[Errand]:
    found: list[Errand] = [
        ("exchange.declare", {"exchange": plan.exchange, "type": "direct", "durable": True}),
        ("exchange.declare", {"exchange": plan.everywhere, "type": "fanout", "durable": True}),
    ]
    everywhere = {name for each in plan.publishers if each.exchange == plan.everywhere for name in each.queues}
    for queue in plan.queues:
        found.append(("queue.declare", {"queue": queue.name, "durable": True, "arguments": queue.arguments}))
        binding = {"queue": queue.name, "exchange": plan.exchange, "routing_key": queue.key}
        found.append(("queue.bind", binding))
        if queue.name in everywhere:
            found.append(("queue.bind", {"queue": queue.name, "exchange": plan.everywhere, "routing_key": ""}))
    return found


def deleting(plan: SoakPlan) -> list[Errand]:
    found: list[Errand] = [("queue.delete", {"queue": queue.name}) for queue in plan.queues]
    return [*found, *(("exchange.delete", {"exchange": name}) for name in (plan.exchange, plan.everywhere))]
