"""Everything that the reference broker remembers, and what is noted at every turn: what counts, what is owed.

The steps that change it build on this: `model.broker.queue_steps`, `model.broker.broker`. Copied by
`model.broker.copying` when explanations part.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import InitVar, dataclass, field
from typing import ClassVar

from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.effects import Effect
from amqpspec.model.broker.hooks import NO_HOOKS, Hooks
from amqpspec.model.broker.internal_events import PossibleEvent, Teardown
from amqpspec.model.broker.measurement import Due, Measurement
from amqpspec.model.broker.queues import Exchange, Queue
from amqpspec.model.broker.state import Channel, Connection, Expected, Policy, User
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Table

PREDECLARED_EXCHANGES = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}


def predeclared_exchanges() -> dict[str, Exchange]:
    return {name: Exchange(name, type) for name, type in PREDECLARED_EXCHANGES.items()}


@dataclass(eq=False)
class BrokerState:
    """One virtual host of a broker that speaks `dialect`, and everybody's connections to it."""

    #: it knows what it does at which time, and is no judge of another
    is_punctual: ClassVar[bool] = False

    dialect: Dialect
    #: the virtual host that exists
    virtual_host: InitVar[str] = "/"
    #: who logs in with what the target was given, if known
    own_user: str = ""
    #: the guests (`model.broker.hooks`), what each remembers, by its name, and which of them are asked about inputs
    hooks: Hooks = NO_HOOKS
    memories: dict[str, object] = field(default_factory=dict)
    armed: frozenset[str] = frozenset()
    connections: dict[str, Connection] = field(default_factory=dict)
    channels: dict[ChannelKey, Channel] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=predeclared_exchanges)
    #: whom the operator made; virtual hosts that are there (True) or were deleted (False); an alarm that the operator
    #: raised
    users: dict[str, User] = field(default_factory=dict)
    vhosts: dict[str, bool] = field(default_factory=dict)
    alarm: bool = False
    #: the requirement by which the input is processed at all: blamed before those that say what it brings about
    credit: str = ""
    #: counts the inputs; stamps say which of two changes is the later one
    stamp: int = 0
    #: how often each requirement made a difference
    exercised: Counter[str] = field(default_factory=Counter)
    #: known defects that would have shown, and did not (model.judging.refuted)
    refuted: set[str] = field(default_factory=set)
    #: how late it was with what it did by itself
    measurements: list[Measurement] = field(default_factory=list)
    #: the queue that does not refuse what it should by all that is known, or does (model.broker.overflow)
    contrary: Queue | None = None
    #: the requirement that the input processed last came under: blamed for what nothing explains
    reason: str = ""
    #: a known defect has done what nobody can follow: whatever comes now, or does not, is explained by it
    is_unpredictable: bool = False
    #: False while barrier traffic is processed: it is judged, but shows nothing
    counting: bool = True
    #: what the broker will do by itself, when it comes to it
    teardowns: list[Teardown] = field(default_factory=list)
    #: what the broker may do by itself, sooner or later
    internal_events: list[PossibleEvent] = field(default_factory=list)
    #: when the input being processed was sent, and the latest moment that was heard of; both of `TraceEvent.time`
    now: float = 0.0
    latest: float = 0.0
    #: names of queues that expire when they are not used (model.rules.extensions.queue_expiry)
    expiring: dict[str, None] = field(default_factory=dict)
    #: queues that hold messages whose time will be up; when all was at rest last, and until when it matters what
    #: expires; before when the state cannot be, by what has come about in it; by when what is being done has been
    #: done (all: model.rules.extensions.message_expiry)
    ageing: dict[Queue, None] = field(default_factory=dict)
    rested: float = 0.0
    foreseen: float = 0.0
    not_before: float = 0.0
    done_by: float = NEVER
    #: the operator's settings (model.rules.operator.settings), and what policies say of single queues, by their
    #: names
    settings: dict[str, int] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    #: channels that hold deliveries whose time will be up, and when that of the first one may be at the earliest;
    #: what would time out but for a requirement that it does not;
    #: when the first input was sent since all was at rest (all: model.broker.consumer_timeouts)
    timing: dict[ChannelKey, None] = field(default_factory=dict)
    next_timeout: float = NEVER
    #: until when, at last, the client has done nothing but take what came
    waited: float = 0.0
    spared: list[tuple[ChannelKey, str, Deadline]] = field(default_factory=list)
    stirred: float = NEVER
    #: names handed out so far (amq.gen-…, amq.ctag-…)
    serial: int = 0
    #: addresses of direct replies: the model's name for each, and the broker's once it was seen
    reply_addresses: dict[str, str | None] = field(default_factory=dict)
    #: who owes a frame, and which queues have something to deliver and somebody to take it
    #: (dictionaries serve as sets that remember the order in which things were put in)
    debtors: dict[ChannelKey, None] = field(default_factory=dict)
    deliverable: dict[Queue, None] = field(default_factory=dict)
    #: (channel, queue) pairs whose order towards each other only a round trip can settle
    touched: dict[tuple[ChannelKey, Queue], None] = field(default_factory=dict)
    #: queues that were deleted since the broker was at rest, and that no publish has missed yet, by name: channels may
    #: know them still (`model.judging.alternatives`)
    deleted_of_late: dict[str, QueueType] = field(default_factory=dict)
    #: queues that went by themselves, with the requirement that says so: blamed if they are still there
    ended_queues: dict[str, str] = field(default_factory=dict)
    #: exchanges that went by themselves, with the requirement that says so: blamed if they are still there
    ended_exchanges: dict[str, str] = field(default_factory=dict)
    #: bodies published of late, with the requirement that routed them: blamed if they turn up where they should not
    published: deque[tuple[bytes, str]] = field(default_factory=lambda: deque(maxlen=64))

    def __post_init__(self, virtual_host: str) -> None:
        self.vhosts[virtual_host] = True
        for guest in self.hooks.guests:
            if (memory := guest.new_memory()) is not None:
                self.memories[guest.name] = memory

    def channel(self, connection: str, number: int) -> Channel:
        """The channel of that number, which need not be open."""
        key = (connection, number)
        channel = self.channels.get(key)
        if channel is None:
            channel = self.channels[key] = Channel(connection, number)
        return channel

    def fired(self, *requirements: str) -> None:
        """These requirements made a difference just now."""
        if self.counting:
            for requirement in requirements:
                self.exercised[requirement] += 1

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
    ) -> None:
        """The channel owes this frame; the first requirement is broken if it does not come."""
        if self.credit:
            requirements = (self.credit, *requirements)
        self.blame(channel, requirements[0])
        channel.owed.append(
            Expected(
                method,
                arguments,
                requirements,
                blame or {},
                None,
                lane,
                effect,
                self.counting,
                0,
                crossing=crossing,
                due=due,
            )
        )
        self.debtors[channel.key] = None

    def blame(self, channel: Channel, requirement: str) -> None:
        """The input being processed comes under this requirement: blamed for a frame that nothing explains."""
        if self.counting:
            channel.reason = self.reason = self.credit or requirement

    def settle_debts(self, channel: Channel) -> None:
        """Note whether the channel still owes something."""
        if channel.owed or channel.unconfirmed:
            self.debtors[channel.key] = None
        else:
            self.debtors.pop(channel.key, None)

    @property
    def quiet(self) -> bool:
        """Nothing is owed: a broker that is silent now is right to be silent."""
        return (not self.debtors and not self.deliverable) or self.is_unpredictable
