"""What all themes of the search share: the connections that a sequence has, and how a command is issued.

A sequence plays two clients, the first with two channels. When the connection of one is over, the client goes on
with a new one, under the next name: so a sequence outlives hard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.channels import Channel
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Content, Table

#: A connection's name and a channel number.
Key = tuple[str, int]

#: Draws from a strategy.
Draw = Callable[[st.SearchStrategy[Any]], Any]

#: The channels that sequences use: client, and channel number.
ROLES = ((0, 1), (0, 2), (1, 1))
QUEUES = ("q1", "q2")
#: Kinds of queues, by the arguments that make them.
KINDS: dict[str, Table] = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
    "single active": {"x-single-active-consumer": True},
    "single active quorum": {"x-queue-type": "quorum", "x-single-active-consumer": True},
    "priorities": {"x-max-priority": 4},
    "few returns": {"x-queue-type": "quorum", "x-delivery-limit": 1},
    "any returns": {"x-queue-type": "quorum", "x-delivery-limit": -1},
    # to the other queue, or round to itself
    "dead letters": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2"},
    "dead letters of few returns": {
        "x-queue-type": "quorum",
        "x-delivery-limit": 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q2",
    },
    "timed quorum": {"x-queue-type": "quorum", "x-consumer-timeout": 500},
    "slowly timed quorum": {"x-queue-type": "quorum", "x-consumer-timeout": 2500},
    "timed single active quorum": {
        "x-queue-type": "quorum",
        "x-single-active-consumer": True,
        "x-consumer-timeout": 500,
    },
    "timed few returns": {
        "x-queue-type": "quorum",
        "x-delivery-limit": 1,
        "x-consumer-timeout": 500,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q2",
    },
}
_NAMES = "abcdefghijklmnopqrstuvwxyz"

roles = st.sampled_from(ROLES)
queues = st.sampled_from(QUEUES)
TYPES = ("classic", "quorum")
types = st.sampled_from(TYPES)
picks = st.integers(0, 7)
flags = st.booleans()
seldom = st.sampled_from((False, False, False, True))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a target allows at most; 0: any."""

    #: the number of a channel
    channel: int = 0
    #: octets of a frame
    frame: int = 0

    def channel_within(self, number: int) -> int:
        return min(number, self.channel) if self.channel else number

    def frame_within(self, octets: int) -> int:
        return min(octets, self.frame) if self.frame else octets


NO_LIMITS = Limits()


class Actions:
    """The base of the themes. `carry_out` is the machine's."""

    dialect: ClassVar[Dialect]
    limits: ClassVar[Limits] = NO_LIMITS
    plan: Plan

    def __init__(self) -> None:
        super().__init__()
        self.bodies = 0
        self.tags = 0
        #: the name of each client's present connection
        self.connections = ["a", "b"]

    def carry_out(self, command: Command) -> None:
        raise NotImplementedError

    def comes_into_windows(self, commands: Sequence[Command]) -> bool:
        """Would one of these be left out, as a known defect may spoil what follows? Also the machine's."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Has the sequence taken all the time that it may take?"""
        return False

    # -------------------------------------------------------------------------------------- who acts

    def connection_of(self, client: int) -> str:
        """The client's connection; a new one where the last is over."""
        if not self.plan.connected(self.connections[client]):
            self.connections[client] = _NAMES[min(_NAMES.index(max(self.connections)) + 1, len(_NAMES) - 1)]
        return self.connections[client]

    def channels(self) -> list[Key]:
        return [(self.connection_of(client), number) for client, number in ROLES]

    def channel(self, draw: Draw) -> Key:
        client, number = draw(roles)
        return self.connection_of(client), number

    def channel_with(self, draw: Draw, wanted: Callable[[Channel], bool]) -> Key:
        """One of the channels of which that is true; any one where it is true of none."""
        states = ((key, self.state(key)) for key in self.channels())
        fitting = [key for key, state in states if state is not None and wanted(state)]
        key: Key = draw(st.sampled_from(fitting or self.channels()))
        return key

    def state(self, channel: Key) -> Channel | None:
        return self.plan.channel(*channel)

    # --------------------------------------------------------------------------------------- commands

    def new_content(self, properties: Table | None = None) -> Content:
        """A body of its own for every message, so that a delivery tells which one it is."""
        self.bodies += 1
        return Content(properties or {}, f"m{self.bodies}".encode())

    def issue(
        self,
        channel: Key,
        method: str,
        arguments: Table,
        content: Content | None = None,
        *,
        in_flight: bool = False,
        as_it_stands: bool = False,
    ) -> None:
        """Carry out one command; a channel that was closed is opened again first, if not `as_it_stands`."""
        connection, number = channel
        if not self.plan.connected(connection):
            return
        if number and not as_it_stands and not self.plan.usable(connection, number):
            self.carry_out(Command(connection, number, "channel.open"))
        self.carry_out(Command(connection, number, method, arguments, content, as_it_stands, in_flight))

    def declare(self, channel: Key, queue: str, kind: str) -> None:
        """Declare a durable queue of that kind unless it is there."""
        arguments: Table = {"queue": queue, "durable": True}
        if KINDS[kind]:
            arguments["arguments"] = dict(KINDS[kind])
        if self.plan.queue(queue) is None:
            self.issue(channel, "queue.declare", arguments)
