"""Everything that the reference broker remembers, and what is noted at every turn: what counts, what is owed.

The steps that change it build on this: `model.broker.queue_steps`, `model.broker.broker`. Copied by
`model.broker.copying` when explanations part.
"""

from __future__ import annotations

from collections import Counter, deque

from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.measurement import Due, Measurement
from amqpspec.model.broker.queues import Exchange, Queue
from amqpspec.model.broker.state import Channel, Connection, Expected, Policy, User
from amqpspec.model.promises.dialects import Dialect
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Frame, Table

PREDECLARED_EXCHANGES = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}


class BrokerState:
    """One virtual host of a broker that speaks `dialect`, and everybody's connections to it."""

    #: it knows what it does at which time, and is no judge of another
    is_punctual = False

    def __init__(self, dialect: Dialect, virtual_host: str = "/", own_user: str = "") -> None:
        """`virtual_host`: the one that exists. `own_user`: who logs in with what the target was given, if known."""
        self.dialect = dialect
        self.own_user = own_user
        self.connections: dict[str, Connection] = {}
        self.channels: dict[ChannelKey, Channel] = {}
        self.queues: dict[str, Queue] = {}
        self.exchanges = {name: Exchange(name, type) for name, type in PREDECLARED_EXCHANGES.items()}
        #: whom the operator made; virtual hosts that are there (True) or were deleted (False); an alarm of his
        self.users: dict[str, User] = {}
        self.vhosts: dict[str, bool] = {virtual_host: True}
        self.alarm = False
        #: the requirement by which the input is processed at all: blamed before those that say what it brings about
        self.credit = ""
        #: counts the inputs; stamps say which of two changes is the later one
        self.stamp = 0
        #: how often each requirement made a difference
        self.exercised: Counter[str] = Counter()
        #: known defects that would have shown, and did not (model.judging.refuted)
        self.refuted: set[str] = set()
        #: how late it was with what it did by itself
        self.measurements: list[Measurement] = []
        #: the queue that does not refuse what it should by all that is known, or does (model.broker.overflow)
        self.contrary: Queue | None = None
        #: the requirement that the input processed last came under: blamed for what nothing explains
        self.reason = ""
        #: a known defect has done what nobody can follow: whatever comes now, or does not, is explained by it
        self.is_astray = False
        #: it has shown that it counts as RabbitMQ's limiter does: so do the limits that are to come
        #: (model.broker.limits)
        self.limiters_are_followed = False
        #: False while barrier traffic is processed: it is judged, but shows nothing
        self.counting = True
        #: connections that an error has broken (channel 0), whose other channels the broker ends when it comes to it;
        #: and channels that break theirs by themselves some time after what makes them do so
        self.teardowns: list[ChannelKey] = []
        #: what the broker will do by itself, sooner or later (model.rules.happenings)
        self.happenings: list[Frame] = []
        #: when the input being processed was sent, and the latest moment that was heard of; both of `Frame.time`
        self.now = self.latest = 0.0
        #: names of queues that expire when they are not used (model.rules.extensions.queue_expiry)
        self.expiring: dict[str, None] = {}
        #: queues that hold messages whose time will be up; when all was at rest last, and until when it matters what
        #: expires; before when the state cannot be, by what has come about in it; by when what is being done has been
        #: done (all: model.rules.extensions.message_expiry)
        self.ageing: dict[Queue, None] = {}
        self.rested = self.foreseen = 0.0
        self.not_before = 0.0
        self.done_by = NEVER
        #: the operator's settings (model.rules.operator.settings), and what policies say of single queues, by their
        #: names
        self.settings: dict[str, int] = {}
        self.policies: dict[str, Policy] = {}
        #: channels that hold deliveries whose time will be up, and when that of the first one may be at the earliest;
        #: what would time out but for a requirement that it does not;
        #: when the first input was sent since all was at rest (all: model.broker.consumer_timeouts)
        self.timing: dict[ChannelKey, None] = {}
        self.next_timeout = NEVER
        #: until when, at last, the client has done nothing but take what came
        self.waited = 0.0
        self.spared: list[tuple[ChannelKey, str, Deadline]] = []
        self.stirred = NEVER
        #: names handed out so far (amq.gen-…, amq.ctag-…)
        self.serial = 0
        #: addresses of direct replies: the model's name for each, and the broker's once it was seen
        self.reply_addresses: dict[str, str | None] = {}
        #: who owes a frame, and which queues have something to deliver and somebody to take it
        #: (dictionaries serve as sets that remember the order in which things were put in)
        self.debtors: dict[ChannelKey, None] = {}
        self.deliverable: dict[Queue, None] = {}
        #: (channel, queue) pairs whose order towards each other only a round trip can settle
        self.touched: dict[tuple[ChannelKey, Queue], None] = {}
        #: queues that were deleted since the broker was at rest, and that no publish has missed yet, by name: one that
        #: crosses the deletion may meet them half gone (model.defects.queues)
        self.deleted_of_late: dict[str, QueueType] = {}
        #: queues that went with the connection which they were exclusive to, and when (of `Frame.time`)
        self.left_behind: dict[str, float] = {}
        #: queues that went by themselves, with the requirement that says so: blamed if they are still there
        self.ended_queues: dict[str, str] = {}
        #: exchanges that went by themselves, with the requirement that says so: blamed if they are still there
        self.ended_exchanges: dict[str, str] = {}
        #: bodies published of late, with the requirement that routed them: blamed if they turn up where they should not
        self.published: deque[tuple[bytes, str]] = deque(maxlen=64)

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
        effect: tuple[str, object] | None = None,
        defects: dict[str, tuple[object, str]] | None = None,
        crossing: str = "",
        due: Due | None = None,
        missed_as: str = "",
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
                defects or {},
                crossing=crossing,
                due=due,
                missed_as=missed_as,
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
        return (not self.debtors and not self.deliverable) or self.is_astray
