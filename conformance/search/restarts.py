"""The theme restarts: traffic, in which the broker is stopped, killed or paused now and then, and started again, or a
connection's network is cut or slow.

Messages are persistent, most of them confirmed, so that there is something left. It is only searched on brokers that a
sequence can have for itself (`TargetUnderTest.own_broker`).
"""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import Actions, Draw, flags
from amqpspec.conformance.search.traffic import TRAFFIC
from amqpspec.model.protocol.methods import CLOCK_WAIT, OPERATOR, Content, Table

#: How often each action is tried, in parts of the whole. Exchanges of traffic are transient, and survive a restart of
#: 4.3: as known defects are kept out of, there would be no restart.
RESTARTS = {
    **{action: weight for action, weight in TRAFFIC.items() if action != "publish_through_exchange"},
    "publish_confirmed": 16, "restart": 6, "pause": 2, "disturb_network": 2, "make_a_mistake": 1,
}  # fmt: skip

_PERSISTENT = 2
#: Milliseconds after which a queue is no new one any more.
_A_WHILE = 1500
#: Restarts of a sequence: then it is over, as what is not known of its messages becomes too much.
_MOST = 3
_on_networks = st.sampled_from(("network.cut", "network.slow"))
#: Milliseconds by which a slow network is slow.
_SLOW_BY = 100
_ends = st.sampled_from(("broker.stop", "broker.kill", "broker.kill"))


class RestartActions(Actions):
    """Each action draws what happens, and issues its commands."""

    def __init__(self) -> None:
        super().__init__()
        self._is_persistent = False
        self._restarts = 0

    def set_the_disk(self, draw: Draw) -> None:
        """Every message is persistent from now on."""
        self._is_persistent = True

    def new_content(self, properties: Table | None = None) -> Content:
        if self._is_persistent:
            properties = {"delivery_mode": _PERSISTENT, **(properties or {})}
        return super().new_content(properties)

    def restart(self, draw: Draw) -> None:
        """Whole or not at all: a broker that is not started again shows nothing."""
        both = [Command(OPERATOR, 0, draw(_ends)), Command(OPERATOR, 0, "broker.restart")]
        # a queue that was declared just before a kill is a known defect's
        if self.comes_into_windows(both):
            both.insert(0, Command(OPERATOR, 0, CLOCK_WAIT, {"milliseconds": _A_WHILE}))
        if self.comes_into_windows(both):
            return
        self._restarts += 1
        for each in both:
            self.carry_out(each)
        self.connections = ["a", "b"]

    def pause(self, draw: Draw) -> None:
        """With something under way, or nothing."""
        self._do("broker.pause")
        if draw(flags):
            self.issue(self.channel(draw), "basic.publish", {"routing_key": "q1"}, self.new_content())
        self._do("broker.resume")

    def disturb_network(self, draw: Draw) -> None:
        """Of one connection, with something under way on it or on another one, or nothing."""
        fault, concerned = draw(_on_networks), {"connection": draw(st.sampled_from(self.connections))}
        self._do(fault, **concerned, **({"milliseconds": _SLOW_BY} if fault == "network.slow" else {}))
        if draw(flags):
            self.issue(self.channel(draw), "basic.publish", {"routing_key": "q1"}, self.new_content())
        self._do("network.heal", **concerned)

    def _do(self, fault: str, **arguments: str | int) -> None:
        self.carry_out(Command(OPERATOR, 0, fault, arguments))

    @property
    def is_over(self) -> bool:
        return self._restarts >= _MOST or super().is_over
