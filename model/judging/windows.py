"""Windows: where and by what a known defect may have spoiled a sequence, or a race that the model does not follow.

What a broken broker does after it broke is nobody's law. A window says by which input a defect comes in, in a state of
the lawful broker (it is *armed* then), which queues, channels and connections it can spoil from there on, and which
frames of these. A difference that nothing explains, and that lies within an armed window, is credited to the defect.
What its queues do from then on nobody knows: they are open (`model.broker.openness`), and all else is judged as ever. A
race is the same without anybody's fault: the difference is undecided.

An armed window changes nothing of what is permitted, so explanations are compared without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, Kind, kind_of
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.outputs.debts import Debt
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import ChannelKey, TraceEvent


class Part(Enum):
    """What a frame is about, whether it is wrong, one too many, or missing."""

    #: which message goes to whom: basic.deliver, basic.get-ok and basic.get-empty
    DELIVERY = "delivery"
    #: what these say: tag, redelivered, properties
    CONTENT = "content"
    #: how many messages or consumers a queue has
    COUNT = "count"
    #: basic.ack, basic.nack and basic.return of the broker
    CONFIRM = "confirm"
    #: basic.cancel of the broker
    CANCEL = "cancel"
    #: channel.close
    CHANNEL_CLOSE = "channel close"
    #: connection.close, and the end of the TCP stream
    CONNECTION_CLOSE = "connection close"
    #: all other answers
    REPLY = "reply"


#: What a queue does that has gone wrong.
SERVICE = frozenset({Part.DELIVERY, Part.CONTENT, Part.COUNT})
#: What comes of a process that crashes over a channel: it ends with its connection, in place of an answer, and what the
#: connection holds goes to others, which may be seen first.
CRASH = SERVICE | {Part.CONNECTION_CLOSE, Part.CHANNEL_CLOSE, Part.REPLY}

_PARTS = {
    "basic.deliver": Part.DELIVERY, "basic.get-ok": Part.DELIVERY, "basic.get-empty": Part.DELIVERY,
    "basic.ack": Part.CONFIRM, "basic.nack": Part.CONFIRM, "basic.return": Part.CONFIRM,
    "basic.cancel": Part.CANCEL, "channel.close": Part.CHANNEL_CLOSE,
    "connection.close": Part.CONNECTION_CLOSE, "socket.closed": Part.CONNECTION_CLOSE,
    "socket.garbage": Part.CONNECTION_CLOSE,
}  # fmt: skip
_COUNTS = ("message_count", "consumer_count")


@dataclass(frozen=True, slots=True)
class Scope:
    """What a window can spoil: queues by name, channels, connections."""

    queues: frozenset[str] = frozenset()
    channels: frozenset[ChannelKey] = frozenset()
    connections: frozenset[str] = frozenset()
    #: whatever there is
    is_everything: bool = False


#: All there is.
EVERYTHING = Scope(is_everything=True)


def of_queues(broker: Broker, queues: Iterable[Queue], *channels: ChannelKey) -> Scope:
    """The queues and these channels. What a queue dead-letters goes to others, which it spoils as well."""
    found = list(queues)
    if any(EXCHANGE in queue.in_force for queue in found):
        return EVERYTHING
    return Scope(frozenset(queue.name for queue in found), frozenset(channels))


def of_any(broker: Broker, queues: Iterable[Queue], *channels: ChannelKey) -> Scope | None:
    """The same, if there are any such queues."""
    found = list(queues)
    return of_queues(broker, found, *channels) if found else None


def of_channel(event: TraceEvent) -> Scope:
    """The channel of the input."""
    return Scope(channels=frozenset({(event.connection, event.channel)}))


def of_connection(broker: Broker, event: TraceEvent, *queues: Queue) -> Scope:
    """The connection of the input, and the queues that it has consumers or deliveries of, besides these."""
    return of_connections(broker, frozenset({event.connection}), *queues)


def of_connections(broker: Broker, connections: frozenset[str], *queues: Queue) -> Scope:
    """The same of several connections."""
    own = [each for each in broker.channels.values() if each.connection in connections]
    served = [consumer.queue for channel in own for consumer in channel.consumers.values()]
    held = [entry.queue for channel in own for entry in channel.unacknowledged.values()]
    where = of_queues(broker, [*served, *held, *queues])
    return Scope(where.queues, where.channels, connections, where.is_everything)


@dataclass(frozen=True, slots=True)
class Difference:
    """A frame that is wrong, one too many or missing, and where."""

    part: Part
    shape: Shape
    frame: str
    channel: ChannelKey
    #: the queue that it is about; None: it is about none, or nobody knows which
    queue: str | None
    requirement: str
    #: the frame, or the one that is missing; None: only numbers show what is missing
    event: TraceEvent | None
    mismatch: Mismatch | None = None
    #: the channels that have consumers of that queue
    served: frozenset[ChannelKey] = frozenset()

    def is_within(self, scope: Scope) -> bool:
        """Does it lie there? A confirm may be of a message in any queue, and so may be what is delivered for a
        consumer that nobody knows.
        """
        if scope.is_everything or self.channel in scope.channels or self.channel[0] in scope.connections:
            return True
        if self.part in SERVICE and not self.served.isdisjoint(scope.channels):
            return True
        if self.part is Part.CONNECTION_CLOSE and any(self.channel[0] == each for each, _ in scope.channels):
            return True
        if self.queue is None:
            return bool(scope.queues) and self.part in (*SERVICE, Part.CONFIRM)
        return self.queue in scope.queues


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How something comes in that is not followed, and what may be otherwise by it."""

    name: str
    #: what it is, in a sentence
    statement: str
    #: what may be otherwise
    spoils: frozenset[Part] = SERVICE
    #: the kinds of inputs by which it comes in
    kinds: tuple[Kind, ...] = ()
    #: does it, by this input, in this state, before it is processed, and where? None: it does not. It is asked about no
    #: others
    arms: Callable[[Broker, Any], Scope | None] = lambda broker, event: None
    #: does it explain this difference, in this state, before the frame? With `kinds`: where it lies within what is
    #: armed; without: it needs no input to come in
    explains: Callable[[Broker, Difference], bool] = lambda broker, difference: True
    #: it is over when the broker is at rest
    is_brief: bool = False
    #: it shows before the broker is at rest, or not at all: then the broker does not have it
    shows_at_once: bool = False


@dataclass(frozen=True, kw_only=True)
class Window(Reach, KnownDefect):
    """A known defect that is not followed."""

    @property
    def sentence(self) -> str:
        """Why what it has touched is open."""
        return f"known defect {self.name}"


@dataclass(frozen=True, kw_only=True)
class Race(Reach):
    """What a broker may do in several orders that the model does not follow. What it explains is undecided."""

    @property
    def sentence(self) -> str:
        """Why what it has touched is open."""
        return self.statement


class Armed(NamedTuple):
    """A window that is armed in a state."""

    name: str
    scope: Scope
    #: the stamp of the input by which it was (`BrokerState.stamp`)
    stamp: int


@dataclass(slots=True)
class Windows:
    """The windows that a judge knows; which are armed, each explanation knows by itself."""

    windows: tuple[Window | Race, ...] = ()
    #: what was armed since the broker was last at rest, by whatever explanation: until then nobody knows which is right
    lately: set[Armed] = field(default_factory=set)
    _by_kind: Mapping[Kind, tuple[Window | Race, ...]] = field(default_factory=dict)
    _brief: frozenset[str] = frozenset()
    _at_once: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._brief = frozenset(window.name for window in self.windows if window.is_brief)
        self._at_once = frozenset(window.name for window in self.windows if window.shows_at_once)
        kinds = {kind for window in self.windows for kind in window.kinds}
        self._by_kind = {kind: tuple(each for each in self.windows if kind in each.kinds) for kind in kinds}

    def armed_by(self, broker: Broker, event: Input) -> list[Armed]:
        """Those that the input arms, which is about to be processed in that state."""
        own = self._by_kind.get(kind_of(event))
        if own is None:
            return []
        scopes = ((window.name, window.arms(broker, event)) for window in own)
        armed = [Armed(name, scope, broker.stamp) for name, scope in scopes if scope is not None]
        self.lately.update(armed)
        return armed

    def left_at_rest(self, armed: frozenset[Armed]) -> frozenset[Armed]:
        """Those that are not over when nothing is under way any more."""
        return frozenset(each for each in armed if each.name not in self._brief)

    def would_have_shown(self, armed: Iterable[Armed]) -> set[str]:
        """Names of those that would have shown before the broker came to rest."""
        return {each.name for each in armed if each.name in self._at_once}

    def explaining(self, broker: Broker, difference: Difference, armed: frozenset[Armed]) -> Window | Race | None:
        """The window that the difference lies in: of several a race, or else one that had to be armed, then of the
        requirement that the difference breaks, then the one that was armed last.
        """
        found = [window for window in self.windows if _explains(window, broker, difference, armed)]
        since = {name: max(each.stamp for each in armed if each.name == name) for name, _, _ in armed}
        return min(
            found,
            key=lambda each: (
                isinstance(each, Window), not each.kinds, _is_other(each, difference), -since.get(each.name, 0)
            ),
            default=None,
        )  # fmt: skip


def touched(window: Window | Race, broker: Broker, difference: Difference, armed: frozenset[Armed]) -> list[Queue]:
    """The queues of which nobody knows what they do when the window has shown."""
    scopes = [each.scope for each in armed if each.name == window.name]
    channels = frozenset(key for scope in scopes for key in scope.channels)
    names = {name for scope in scopes for name in scope.queues} | {difference.queue}
    return [
        queue
        for name, queue in broker.queues.items()
        if name in names
        or any(scope.is_everything for scope in scopes)
        or any(consumer.channel in channels for consumer in queue.consumers)
    ]


def _explains(window: Window | Race, broker: Broker, difference: Difference, armed: frozenset[Armed]) -> bool:
    if difference.part not in window.spoils:
        return False
    own = (each.scope for each in armed if each.name == window.name)
    if window.kinds and not any(map(difference.is_within, own)):
        return False
    return window.explains(broker, difference)


def _is_other(window: Window | Race, difference: Difference) -> bool:
    return isinstance(window, Window) and window.requirement != difference.requirement


# ------------------------------------------------------------------------------------------------ differences


def difference_of(broker: Broker, event: TraceEvent, mismatch: Mismatch) -> Difference:
    """What is wrong with a frame that came; `broker` as it was before the frame, or after it."""
    part = _PARTS.get(event.name, Part.REPLY)
    if mismatch.shape is Shape.WRONG_ARGUMENT:
        is_count = any(each in mismatch.detail for each in ("-count", *_COUNTS)) or mismatch.argument in _COUNTS
        part = Part.COUNT if is_count else (Part.CONTENT if part is Part.DELIVERY else part)
    key = (event.connection, event.channel)
    queue = _queue_of(broker, event)
    if queue is None and isinstance(mismatch.about, Queue):
        queue = mismatch.about.name
    served = _served(broker, queue)
    return Difference(part, mismatch.shape, event.name, key, queue, mismatch.requirement, event, mismatch, served)


def difference_of_debt(broker: Broker, debt: Debt) -> Difference:
    """What has not come."""
    event = debt.event
    if event is None:
        served = _served(broker, debt.queue)
        return Difference(Part.COUNT, Shape.MISSING, "", ("", 0), debt.queue, debt.requirement, None, None, served)
    part, key, queue = _PARTS.get(event.name, Part.REPLY), (event.connection, event.channel), _queue_of(broker, event)
    served = _served(broker, queue)
    return Difference(part, Shape.MISSING, event.name, key, queue, debt.requirement, event, None, served)


def _served(broker: Broker, name: str | None) -> frozenset[ChannelKey]:
    queue = broker.queues.get(name or "")
    return frozenset() if queue is None else frozenset(consumer.channel for consumer in queue.consumers)


def _queue_of(broker: Broker, event: TraceEvent) -> str | None:
    """The name of the queue that the frame is about, as far as the state knows."""
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None:
        return None
    if "consumer_tag" in event.arguments:
        tag = event.arguments["consumer_tag"]
        consumer = channel.consumers.get(tag) or channel.may_still_be_served.get(tag)
        return consumer.queue.name if consumer is not None else None
    if event.name in ("basic.get-ok", "basic.get-empty"):
        return next((owed.queue.name for owed in channel.owed if isinstance(owed, PendingGet)), None)
    if "queue" in event.arguments:
        return str(event.arguments["queue"])
    answers = (each for each in channel.owed if isinstance(each, Expected) and each.method == event.name)
    lane = next((each.lane for each in answers), "channel")
    return None if lane == "channel" else lane
