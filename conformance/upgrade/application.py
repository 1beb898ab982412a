"""What a recorded application does that a change is about: its frames, read in any order of its connections.

The content of queues is not known, and what one connection uses another may have declared. So what depends on a queue
is noted with what the queue has to be (`Need`), and decided when all is read (`conformance.upgrade.meeting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from amqpspec.conformance.traces.trace_row import TraceError, TraceRow, row_event
from amqpspec.conformance.upgrade.needs import NEEDS
from amqpspec.model.protocol.methods import Content, TraceEvent, method_text
from amqpspec.targets.drivers.application import is_of_application

#: Frames that are kept of what was met.
MOST_SIGHTS = 3
#: Different declarations of one queue that are kept.
MOST_TABLES = 10


class Effect(StrEnum):
    """What a change does to what the application does; the gravest first."""

    GONE = "no longer works"
    OTHERWISE = "works otherwise"
    PERHAPS = "may work otherwise"
    WORDS = "only a text is another"
    UNKNOWN = "cannot be known from the recording"


class Sight(NamedTuple):
    """A frame of the recording."""

    sequence: str
    time: float
    text: str


class Queue(NamedTuple):
    """A queue by its virtual host and name. `passed_by`: an exchange, which stands for all queues bound to it."""

    virtual_host: str
    name: str
    passed_by: bool = False


class Met(NamedTuple):
    """A frame comes under a change, if the queue is as `need` says (`conformance.upgrade.meeting`; "": any is)."""

    effect: Effect
    why: str
    queue: str = ""
    need: str = ""
    #: in place of a queue: the exchange that the message goes to
    exchange: str = ""


class Key(NamedTuple):
    """What is counted together."""

    choice: str
    effect: str
    why: str
    queue: Queue | None
    need: str


@dataclass(slots=True)
class Seen:
    """How often something was seen, and the first frames of it."""

    times: int = 0
    sights: list[Sight] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        self.times += other.times
        self.sights = sorted([*self.sights, *other.sights], key=lambda each: (each.sequence, each.time))[:MOST_SIGHTS]


@dataclass(slots=True)
class Application:
    """All that is kept of a recording: its size depends on what the application does, not on how often."""

    sequences: int = 0
    frames: int = 0
    seen: dict[Key, Seen] = field(default_factory=dict)
    #: the arguments with which a queue was declared: a name may be used again for another queue
    declared: dict[Queue, list[dict[str, Any]]] = field(default_factory=dict)
    #: the queues that were bound to an exchange, or declared for the default exchange
    bound: dict[Queue, set[str]] = field(default_factory=dict)
    #: what brokers the recordings are of: (product, version, dialect)
    brokers: set[tuple[str, str, str]] = field(default_factory=set)

    def merge(self, other: Application) -> None:
        """Take in what another part of the recording shows."""
        self.sequences += other.sequences
        self.frames += other.frames
        for key, seen in other.seen.items():
            self.seen.setdefault(key, Seen()).add(seen)
        for queue, tables in other.declared.items():
            for table in tables:
                self.declare(queue, table)
        for exchange, queues in other.bound.items():
            self.bound.setdefault(exchange, set()).update(queues)
        self.brokers |= other.brokers


    def declare(self, queue: Queue, arguments: dict[str, Any]) -> None:
        """Note with which arguments it was declared."""
        tables = self.declared.setdefault(queue, [])
        if arguments not in tables and len(tables) < MOST_TABLES:
            tables.append(arguments)


#: For the name of a method, sent or received: (choice, rule) of those that look at it.
Rules = Mapping[tuple[str, bool], tuple[tuple[str, "Rule"], ...]]
Rule = Callable[[TraceEvent, "ChannelView"], Iterable[Met]]


@dataclass(slots=True)
class ChannelView:
    """What a rule may want to know beside the frame."""

    connection: ConnectionView
    #: the queue that was named last
    last_queue: str = ""
    consumers: dict[str, str] = field(default_factory=dict)
    #: tag -> (queue, consumer tag or "" for basic.get, time)
    unsettled: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    #: consumers and basic.get that were asked for and have no answer: their queue, and whether they have no_ack
    consuming: list[tuple[str, bool]] = field(default_factory=list)
    getting: list[tuple[str, bool]] = field(default_factory=list)
    #: the arguments of queue.declare that have no answer; None: of a passive one
    declaring: list[dict[str, Any] | None] = field(default_factory=list)
    no_ack: set[str] = field(default_factory=set)
    #: in a transaction: the tags that are settled when it is committed; None: there is no transaction
    uncommitted: list[int] | None = None

    def queue_of(self, event: TraceEvent) -> str:
        """The queue that the frame is about; "": none is known."""
        name = event.name
        if name == "basic.deliver":
            return self.consumers.get(str(event.arguments.get("consumer_tag", "")), "")
        if name == "basic.get-ok":
            return self.getting[0][0] if self.getting else ""
        return str(event.arguments.get("queue") or self.last_queue)

    def settled_by(self, event: TraceEvent) -> list[tuple[str, str, float]]:
        """The deliveries that basic.ack, nack, reject or recover are about: queue, consumer tag, time."""
        if event.name.startswith("basic.recover"):
            return list(self.unsettled.values())
        tag = int(event.arguments.get("delivery_tag", 0))
        if event.arguments.get("multiple"):
            return [held for number, held in self.unsettled.items() if number <= tag or not tag]
        return [self.unsettled[tag]] if tag in self.unsettled else []


@dataclass(slots=True)
class ConnectionView:
    """A connection, with its channels."""

    virtual_host: str
    channels: dict[int, ChannelView] = field(default_factory=dict)

    def channel(self, number: int) -> ChannelView:
        found = self.channels.get(number)
        if found is None:
            found = self.channels[number] = ChannelView(self)
        return found


class Reader:
    """Reads rows of traces. Several sequences may be mixed."""

    def __init__(self, rules: Rules) -> None:
        self.application = Application()
        self._rules = rules
        self._hosts: dict[str, str] = {}
        self._connections: dict[tuple[str, str], ConnectionView] = {}

    def rows(self, rows: Iterable[TraceRow]) -> Application:
        """Take all rows. Raises `TraceError` for one that cannot be understood."""
        for row in rows:
            self.row(row)
        return self.application

    def row(self, row: TraceRow) -> None:
        kind, name = row["kind"], row["sequence"]
        if kind == "start":
            self._hosts[name] = row.get("virtual_host") or "/"
            self.application.sequences += row.get("repeats") is None
            self.application.brokers.add((row.get("product") or "", row.get("version") or "", row["dialect"]))
        elif kind == "frame":
            try:
                self._frame(name, row)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                why = f"{type(error).__name__}: {error}"
                where = f"the sequence {name!r} cannot be read at its row {row.get('method')}"
                raise TraceError(f"{where}: {why}") from error
        elif kind == "end":
            for key in [key for key in self._connections if key[0] == name]:
                del self._connections[key]

    def _frame(self, sequence: str, row: TraceRow) -> None:
        event = row_event(row)
        if is_of_application(event.connection):
            return
        self.application.frames += 1
        key = sequence, event.connection
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = ConnectionView(self._hosts.get(sequence, "/"))
        channel = connection.channel(event.channel)
        for choice, rule in self._rules.get((event.name, event.sent), ()):
            for met in rule(event, channel):
                self._note(choice, met, connection.virtual_host, sequence, event)
        follow = _FOLLOWED.get((event.name, event.sent))
        if follow is not None:
            follow(self.application, channel, event)

    def _note(self, choice: str, met: Met, host: str, sequence: str, event: TraceEvent) -> None:
        if event.name == "queue.declare" and met.need:
            # whether it is made or refused, the frame says what it was to be
            if not NEEDS[met.need](event.arguments.get("arguments") or {}, False):
                return
            met = met._replace(need="")
        where = Queue(host, met.exchange, True) if met.exchange else Queue(host, met.queue) if met.queue else None
        key = Key(choice, str(met.effect), met.why, where, met.need)
        seen = self.application.seen.setdefault(key, Seen())
        seen.times += 1
        if len(seen.sights) < MOST_SIGHTS:
            seen.sights.append(Sight(sequence, event.time, _text(event)))


def _text(event: TraceEvent) -> str:
    """The frame without its body, which is the application's own."""
    content = None if event.content is None else Content(event.content.properties, b"")
    arrow = ">" if event.sent else "<"
    text = method_text(event.name, event.arguments, content).replace(" body=''", "")
    return f"{event.connection}.{event.channel} {arrow} {text}"


# --------------------------------------------------------------------------------- what is followed of a channel


def _declare(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    arguments = event.arguments
    table = None if arguments.get("passive") else dict(arguments.get("arguments") or {})
    channel.last_queue = str(arguments.get("queue", ""))
    if not arguments.get("nowait"):
        channel.declaring.append(table)
    elif table is not None:
        application.declare(Queue(channel.connection.virtual_host, channel.last_queue), table)


def _declared(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    channel.last_queue = str(event.arguments.get("queue", ""))
    table = channel.declaring.pop(0) if channel.declaring else None
    if table is not None:
        application.declare(Queue(channel.connection.virtual_host, channel.last_queue), table)


def _bind(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    exchange = Queue(channel.connection.virtual_host, str(event.arguments.get("exchange", "")), True)
    application.bound.setdefault(exchange, set()).add(channel.queue_of(event))


def _consume(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    asked = channel.queue_of(event), bool(event.arguments.get("no_ack"))
    if event.arguments.get("nowait"):
        _is_consumer(channel, str(event.arguments.get("consumer_tag", "")), *asked)
    else:
        channel.consuming.append(asked)


def _consumed(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    if channel.consuming:
        _is_consumer(channel, str(event.arguments.get("consumer_tag", "")), *channel.consuming.pop(0))


def _is_consumer(channel: ChannelView, tag: str, queue: str, no_ack: bool) -> None:
    channel.consumers[tag] = queue
    if no_ack:
        channel.no_ack.add(tag)
    else:
        channel.no_ack.discard(tag)


def _get(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    channel.getting.append((channel.queue_of(event), bool(event.arguments.get("no_ack"))))


def _got(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    queue, no_ack = channel.getting.pop(0) if channel.getting else ("", False)
    if event.name == "basic.get-ok" and not no_ack:
        channel.unsettled[int(event.arguments.get("delivery_tag", 0))] = (queue, "", event.time)


def _delivered(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    tag = str(event.arguments.get("consumer_tag", ""))
    if tag not in channel.no_ack:
        held = channel.consumers.get(tag, ""), tag, event.time
        channel.unsettled[int(event.arguments.get("delivery_tag", 0))] = held


def _settled(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    if event.name.startswith("basic.recover"):
        channel.unsettled.clear()
        return
    tag = int(event.arguments.get("delivery_tag", 0))
    all_of_them = [each for each in channel.unsettled if each <= tag or not tag]
    tags = all_of_them if event.arguments.get("multiple") else [tag]
    if channel.uncommitted is None:
        _drop(channel, tags)
    else:
        channel.uncommitted += tags


def _drop(channel: ChannelView, tags: Iterable[int]) -> None:
    for each in tags:
        channel.unsettled.pop(each, None)


def _transaction(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    if event.name == "tx.commit":
        _drop(channel, channel.uncommitted or ())
    channel.uncommitted = []


def _closed(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    if event.channel:
        channel.connection.channels[event.channel] = ChannelView(channel.connection)
    else:
        channel.connection.channels.clear()


def _opened(application: Application, channel: ChannelView, event: TraceEvent) -> None:
    channel.connection.virtual_host = str(event.arguments.get("virtual_host") or "/")


_Follow = Callable[[Application, ChannelView, TraceEvent], None]
_FOLLOWED: Mapping[tuple[str, bool], _Follow] = {
    ("connection.open", True): _opened,
    ("queue.declare", True): _declare,
    ("queue.declare-ok", False): _declared,
    ("queue.bind", True): _bind,
    ("basic.consume", True): _consume,
    ("basic.consume-ok", False): _consumed,
    ("basic.get", True): _get,
    ("basic.get-ok", False): _got,
    ("basic.get-empty", False): _got,
    ("basic.deliver", False): _delivered,
    **{(name, True): _settled for name in ("basic.ack", "basic.nack", "basic.reject", "basic.recover")},
    ("basic.recover-async", True): _settled,
    **{(name, True): _transaction for name in ("tx.select", "tx.commit", "tx.rollback")},
    ("channel.close", True): _closed,
    ("channel.close", False): _closed,
    ("connection.close", True): _closed,
    ("connection.close", False): _closed,
    ("socket.closed", False): _closed,
}
