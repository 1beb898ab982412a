"""Everything that the reference broker remembers, and what is noted at every turn: what counts, what is owed.

The steps that change it build on this: `model.broker.queue_steps`, `model.broker.broker`. Copied by
`model.broker.copying` when explanations part.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import ClassVar

from amqpspec.model.broker.administration import Policy, User
from amqpspec.model.broker.bookkeeping import Bookkeeping
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.effects import Effect
from amqpspec.model.broker.field_kinds import apart, derived, doubt, law, to_blame
from amqpspec.model.broker.internal_events import PossibleEvent, Teardown
from amqpspec.model.broker.measurement import Due
from amqpspec.model.broker.nodes import is_mute
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Exchange, Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Table, TraceEvent

PREDECLARED_EXCHANGES = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}


_PREDECLARED = {name: Exchange(name, type) for name, type in PREDECLARED_EXCHANGES.items()}

#: The exchange that RabbitMQ's tracer publishes to: every virtual host has it (rabbit_vhost, rabbit_trace).
TRACE_EXCHANGE = "amq.rabbitmq.trace"


@dataclass(eq=False)
class BrokerState:
    """One virtual host of a broker that speaks `dialect`, and everybody's connections to it."""

    #: it decides itself when things happen (the embedded broker), and judges no other broker
    is_punctual: ClassVar[bool] = False

    # ---- law
    dialect: Dialect = apart("all explanations are of one broker")
    #: the virtual host that exists
    virtual_host: InitVar[str] = "/"
    #: who logs in with what the target was given, if known
    own_user: str = ""
    _: KW_ONLY
    connections: dict[str, Connection] = law(factory=dict, view="connections")
    channels: dict[ChannelKey, Channel] = law(factory=dict, view="channels")
    queues: dict[str, Queue] = law(factory=dict, view="queues")
    exchanges: dict[str, Exchange] = law(factory=_PREDECLARED.copy, view="exchanges")
    #: whom the operator made; virtual hosts that are there (True) or were deleted (False); an alarm that the operator
    #: raised
    users: dict[str, User] = field(default_factory=dict)
    vhosts: dict[str, bool] = field(default_factory=dict)
    alarm: bool = False
    #: the fault because of which it is down, or goes down: broker.stop, broker.kill; "": it is up
    down_by: str = ""
    #: nodes of a cluster that take part in nothing, with the faults by which that is so (model.broker.nodes)
    failed: dict[int, frozenset[str]] = field(default_factory=dict)
    #: connections that may end at any moment, as their node was paused or cut off
    shaken: frozenset[str] = frozenset()
    #: something was done to a node, or to the network between nodes: what is owed may take longer
    is_unsteady: bool = False
    #: channels that the client wants no contents on for now (channel.flow)
    paused: frozenset[ChannelKey] = frozenset()
    #: the operator's settings (model.rules.operator.settings), and what policies say of single queues, by virtual host
    #: and name of the policy
    settings: dict[str, int] = field(default_factory=dict)
    policies: dict[tuple[str, str], Policy] = field(default_factory=dict)
    #: what the broker will do by itself, when it comes to it; and what it may do by itself, sooner or later
    teardowns: list[Teardown] = apart("explanations take them over at once", factory=list)
    internal_events: list[PossibleEvent] = apart("explanations take them over at once", factory=list)
    #: names handed out so far (amq.gen-…, amq.ctag-…)
    serial: int = 0
    #: addresses of direct replies: the model's name for each, and the broker's once it was seen
    reply_addresses: dict[str, str | None] = field(default_factory=dict)
    #: when the input being processed was sent, and the latest moment that was heard of; both of `TraceEvent.time`
    now: float = apart("of the input being processed", 0.0)
    latest: float = apart("all explanations are of one moment", 0.0)
    #: counts the inputs; stamps say which of two changes is the later one
    stamp: int = apart("the order of inputs that have nothing to do with each other makes no difference", 0)
    #: channels that owe a frame, and queues that have a message and a consumer with room
    #: (dictionaries serve as sets that remember the order in which things were put in)
    debtors: dict[ChannelKey, None] = derived(factory=dict)
    deliverable: dict[Queue, None] = derived(factory=dict)
    #: names of queues that expire when they are not used (model.rules.extensions.queue_expiry)
    expiring: dict[str, None] = derived(factory=dict)
    #: queues that hold messages whose time will be up (model.rules.extensions.message_expiry)
    ageing: dict[Queue, None] = derived(factory=dict)
    #: channels that hold deliveries whose time will be up, and when that of the first one may be at the earliest
    #: (model.broker.delivery_timeouts)
    timing: dict[ChannelKey, None] = derived(factory=dict)
    next_timeout: float = derived(NEVER)
    #: some exchange or queue is open, or was (model.broker.openness)
    has_open: bool = derived(False)
    #: of some message it is not known whether it is there, or when it is, or was not (model.broker.survival)
    has_doubts: bool = derived(False)

    # ---- doubt
    #: times of the trace (model.rules.extensions.message_expiry, model.broker.delivery_timeouts): the earliest at which
    #: this state is possible
    not_before: float = doubt(0.0, view="not_before")
    #: … the latest at which the present step is done
    step_done_by: float = doubt(NEVER)
    #: … when the broker was last at rest
    last_at_rest: float = apart("all explanations are of one trace", 0.0)
    #: … until when expiries of messages and timeouts of deliveries are looked for, as the broker may be ahead
    looked_ahead_until: float = apart("all explanations are of one trace", 0.0)
    #: … when the first input was sent since the broker was last at rest
    busy_since: float = apart("all explanations are of one trace", NEVER)
    #: … the end of the last time in which the client sent nothing, and took what came
    client_idle_until: float = apart("all explanations are of one trace", 0.0)
    #: queues that were deleted since the broker was at rest, and that no publish has missed yet, by name: channels may
    #: know them still (`model.judging.alternatives`)
    deleted_of_late: dict[str, QueueType] = doubt(factory=dict)
    #: queues whose deletion was sent while other inputs were under way since the broker was at rest, by name: what was
    #: published there before this position was known to have come
    known_before_deletion: dict[str, int] = doubt(factory=dict)
    #: (channel, queue) pairs whose order towards each other only a round trip can settle
    touched: dict[tuple[ChannelKey, Queue], None] = apart(
        "barriers go by it; of what is permitted only `length_limits.may_be_contrary` does", factory=dict
    )
    #: what an open exchange was to route goes nowhere, while an input is processed
    routes_nothing: bool = doubt(False)
    #: the queue that takes or refuses against what its limit says, while an input is processed
    deciding_otherwise: Queue | None = doubt(None)

    # ---- beside the state
    bookkeeping: Bookkeeping = to_blame(factory=Bookkeeping)

    def __post_init__(self, virtual_host: str) -> None:
        self.vhosts[virtual_host] = True
        if self.dialect.extensions:
            self.exchanges[TRACE_EXCHANGE] = Exchange(TRACE_EXCHANGE, "topic", internal=True)

    def channel(self, connection: str, number: int) -> Channel:
        """The channel of that number, which need not be open."""
        key = (connection, number)
        channel = self.channels.get(key)
        if channel is None:
            channel = self.channels[key] = Channel(connection, number)
        return channel

    def open_channel(self, event: TraceEvent | Teardown) -> Channel | None:
        """The channel that the frame is of, or that ends; None: it is not open."""
        channel = self.channels.get((event.connection, event.channel))
        return channel if channel is not None and channel.state is ChannelState.OPEN else None

    def fired(self, *requirements: str) -> None:
        """These requirements made a difference just now."""
        if self.bookkeeping.counting:
            for requirement in requirements:
                self.bookkeeping.exercised[requirement] += 1

    def comes_under(self, channel: Channel, *requirements: str) -> None:
        """The input being processed comes under these requirements, and they made a difference just now."""
        self.fired(*requirements)
        for requirement in requirements[-1:]:
            self.blame(channel, requirement)

    # ------------------------------------------------------------------------------------ what is owed

    def owe(
        self,
        channel: Channel,
        method: str,
        arguments: Table,
        *requirements: str,
        blame: dict[str, str] | None = None,
        lane: str = "channel",
        effect: Effect | None = None,
        crossing: str = "",
        due: Due | None = None,
        counted: bool = True,
    ) -> None:
        """The channel owes this frame; the first requirement is broken if it does not come.

        `counted`: as in `Expected`, if anything counts now.
        """
        if self.bookkeeping.credit:
            requirements = (self.bookkeeping.credit, *requirements)
        self.blame(channel, requirements[0])
        channel.owed.append(
            Expected(
                method,
                arguments,
                requirements,
                blame=blame or {},
                lane=lane,
                effect=effect,
                counted=counted and self.bookkeeping.counting,
                crossing=crossing,
                due=due,
            )
        )
        self.debtors[channel.key] = None

    def blame(self, channel: Channel, requirement: str) -> None:
        """The input being processed comes under this requirement: blamed for a frame that nothing explains."""
        if self.bookkeeping.counting:
            channel.reason = self.bookkeeping.reason = self.bookkeeping.credit or requirement

    def settle_debts(self, channel: Channel) -> None:
        """Note whether the channel still owes something."""
        if channel.owed or any(channel.confirms_due()):
            self.debtors[channel.key] = None
        else:
            self.debtors.pop(channel.key, None)

    @property
    def quiet(self) -> bool:
        """Nothing is owed: a broker that is silent now is right to be silent."""
        if self.failed:
            return not self.deliverable and all(is_mute(self.failed, connection) for connection, _ in self.debtors)
        return not self.debtors and not self.deliverable
