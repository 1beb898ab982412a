"""What one connection says of messages: the first stage of `conservation`.

Which queues a message went to is told by the topology of the whole run (`topology.py`), between the moment at which it
was sent and its confirm.

A message that was given back counts from the moment on at which a later reply on its channel shows that the broker
had read it; what the client settled counts as settled when it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import Any

from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, UnknownDialect, dialect_named
from amqpspec.model.protocol.methods import SYNCHRONOUS_METHODS
from amqpspec.model.rules.basic.message_checks import KEY_HEADERS
from amqpspec.pipeline.judging.channel_memory import Channel, Place, Publish
from amqpspec.pipeline.judging.message_facts import REASONS, Fact, What
from amqpspec.pipeline.judging.message_identity import form_of, message_of
from amqpspec.pipeline.judging.topology import UNBOUND, Reached, Sent, Topology
from amqpspec.targets.drivers.application import is_of_application

_ARGUMENTS, _AUTO_DELETE, _EXCLUSIVE, _EXPIRATION = REASONS[:6], 6, 7, 8

#: Of a gap in the tags of deliveries so many are remembered.
_MOST_SKIPPED = 100

#: Begins the names of the exchanges that a broker publishes to by itself: its log, its events, its tracer.
_OF_THE_BROKER = "amq.rabbitmq."


def facts_of(rows: Iterable[TraceRow], topology: Topology) -> Iterator[Fact]:
    """The facts of one sequence (a connection, or several). `topology`: of all sequences of the run."""
    return _Sequence(topology).facts(rows)


class _Sequence:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._name, self._host, self._dialect = "", "/", DEFAULT_DIALECT
        self._channels: dict[tuple[str, int], Channel] = {}
        self._found: list[Fact] = []
        #: queue -> the first time it was met, and the messages in it
        self._met: dict[str, tuple[float, int]] = {}
        #: queue -> when it was last asked and found empty, before it was purged here
        self._empty: dict[str, float] = {}
        self._purged: dict[str, float] = {}
        #: facts of queues that need not be told again
        self._told: set[tuple[str, int, int]] = set()
        self._closing: dict[str, float] = {}

    def facts(self, rows: Iterable[TraceRow]) -> Iterator[Fact]:
        for row in rows:
            if row["kind"] == "start":
                self._name, self._host = row["sequence"], row.get("virtual_host") or "/"
                with suppress(UnknownDialect):  # told where it is judged
                    self._dialect = dialect_named(row.get("dialect") or DEFAULT_DIALECT.name)
            elif row["kind"] == "frame" and not is_of_application(row["connection"]):
                self._frame(row)
                if self._found:
                    yield from self._found
                    self._found.clear()
        for connection in {connection for connection, _ in self._channels}:
            self._lost(connection)
        for queue, (time, ready) in self._met.items():
            self._add(queue, 0, ready, What.MET, time)
        for queue, time in self._empty.items():
            self._add(queue, 0, 0, What.EMPTY, time)
        for queue, time in self._purged.items():
            self._add(queue, 0, 0, What.PURGED, time)
        yield from self._found

    def _add(self, queue: str, message: int, form: int, what: What, time: float) -> None:
        self._found.append(Fact(queue, message, form, what.value, time))

    def _tell(self, queue: str, what: What, form: int = 0, time: float = 0.0) -> None:
        """Of a queue; the first time is enough."""
        if (queue, what, form) not in self._told:
            self._told.add((queue, what, form))
            self._add(queue, 0, form, what, time)

    def _frame(self, row: TraceRow) -> None:
        name, connection = row["method"], row["connection"]
        if name.startswith("frame."):
            self._tell("", What.BROKE_OFF)
        elif row["channel"]:
            key = connection, row["channel"]
            channel = self._channels.get(key)
            if channel is None or name == "channel.open":
                channel = self._channels[key] = Channel()
            self._on_channel(row, channel, key)
        elif name == "connection.close" and row["direction"] == "sent":
            self._closing[connection] = row["time"]
        elif name == "connection.close-ok" and row["direction"] == "received":
            for key in [key for key in self._channels if key[0] == connection]:
                channel = self._channels.pop(key)
                self._ended(channel, row["time"], self._closing.get(connection, row["time"]))
        elif name in ("connection.close", "socket.closed", "socket.abort"):
            self._lost(connection)

    def _lost(self, connection: str) -> None:
        for key in [key for key in self._channels if key[0] == connection]:
            self._broke_off(self._channels.pop(key), 1)

    def _broke_off(self, channel: Channel, is_lost: int = 0) -> None:
        """What the broker had read of its last frames is not known."""
        for queue in channel.sources:
            self._tell(queue, What.BROKE_OFF, is_lost)
        self._pin(channel, len(channel.returned), inf)

    def _ended(self, channel: Channel, time: float, asked: float) -> None:
        """Its client has closed it: what it held goes back."""
        held = [*channel.held.values(), *(place for _, place, _ in channel.settles)]
        channel.returned += [(place, asked) for place in held]
        self._pin(channel, len(channel.returned), time)
        for queue in channel.sources:
            self._add(queue, 0, 0, What.ENDED, asked)

    def _pin(self, channel: Channel, number: int, time: float) -> None:
        for place, sent in channel.returned[channel.pinned : number]:
            self._add(*place, int(sent * 1e6), What.RETURNED, time)
        channel.pinned = max(channel.pinned, number)

    def _on_channel(self, row: TraceRow, channel: Channel, key: tuple[str, int]) -> None:
        name, time = row["method"], row["time"]
        handler = _HANDLERS.get((name, row["direction"]))
        if handler is not None:
            handler(self, row, channel)
        if row["direction"] == "sent":
            if name in SYNCHRONOUS_METHODS and not row["arguments"].get("nowait"):
                channel.asked.append((name, row, len(channel.returned), channel.all_settled))
            if name == "channel.close":
                channel.closing = time
        elif name == "channel.close":
            self._broke_off(self._channels.pop(key))
        elif name == "channel.close-ok":
            if channel.closing is not None:
                self._ended(channel, time, channel.closing)
            self._channels.pop(key, None)
        elif name.endswith("-ok") or name == "basic.get-empty":
            self._replied(row, channel)

    def _replied(self, row: TraceRow, channel: Channel) -> None:
        """A reply shows that all was read that was sent before its request."""
        name = row["method"]
        method = "basic.get" if name.startswith("basic.get-") else name.removesuffix("-ok")
        found = next((each for each in channel.asked if each[0] == method), None)
        if found is None:
            return
        channel.asked.remove(found)
        _, request, returned, all_settled = found
        channel.all_read = max(channel.all_read, all_settled)
        self._pin(channel, returned, row["time"])
        if method == "basic.get":
            self._got(row, request, channel)
        elif method == "tx.commit":
            for publish in channel.committed:
                self._in_queues(publish, row)
            channel.committed.clear()

    def _named(self, given: Any, channel: Channel) -> str:
        return f"{self._host} {given or channel.last_queue}"

    # ------------------------------------------------------------------------------------------ what a client sends

    def _publish(self, row: TraceRow, channel: Channel) -> None:
        message, form = message_of(row), form_of(row)
        arguments = row["arguments"]
        properties = row.get("properties", {})
        headers = properties.get("headers") or {}
        keys = str(arguments.get("routing_key", "")), *self._further_keys(headers)
        publish = Publish(
            message, str(arguments.get("exchange") or ""), keys, headers, row["time"], "expiration" in properties,
            bool(arguments.get("mandatory")),
        )  # fmt: skip
        if channel.in_transaction:
            channel.publishes.append((publish, form))
            return
        self._add("", message, form, What.PUBLISHED, row["time"])
        if channel.published >= 0:
            channel.published += 1
            channel.unconfirmed[channel.published] = publish

    def _further_keys(self, headers: dict[str, Any]) -> Iterator[str]:
        """Those of CC and BCC (PUBLISH-011)."""
        if headers and self._dialect.extensions:
            lists = (headers[name] for name in KEY_HEADERS if isinstance(headers.get(name), list | tuple))
            yield from (key for keys in lists for key in keys if isinstance(key, str))

    def _in_queues(self, publish: Publish, read: TraceRow) -> None:
        """The broker has said that it has the message, wherever that went."""
        if not publish.exchange:
            reached = Reached(frozenset(publish.keys))
        else:
            headers = {name: value for name, value in publish.headers.items() if name != "BCC"}
            place = self._name, read["connection"], read["channel"]
            sent = Sent(self._host, publish.exchange, publish.keys, headers, place, publish.time)
            reached = self._topology.reached(sent, read["time"], self._dialect)
        for name in reached.queues:
            queue = f"{self._host} {name}"
            self._add(queue, publish.message, 0, What.CONFIRMED, read["time"])
            if publish.expires:
                self._tell(queue, What.LOSES, _EXPIRATION)
        for name, why in reached.doubtful.items():
            self._tell(f"{self._host} {name}", What.UNTOLD, why)
        exchanges = dict(reached.exchanges)
        if publish.is_mandatory and not (reached.queues or reached.doubtful or exchanges):
            exchanges[publish.exchange] = UNBOUND
        for name, why in exchanges.items():
            self._tell(f"{self._host} exchange {name}", What.EXCHANGE_UNTOLD, why)

    def _settle(self, row: TraceRow, channel: Channel) -> None:
        arguments = row["arguments"]
        tag = arguments.get("delivery_tag", 0)
        is_back = row["method"] != "basic.ack" and bool(arguments.get("requeue"))
        tags = [tag] if tag in channel.held else []
        if arguments.get("multiple"):
            tags = [each for each in channel.held if each <= tag or not tag]
            channel.all_settled += not tag
        if tag in channel.skipped or tag > channel.highest:
            channel.skipped.discard(tag)
            for queue in channel.sources:
                self._tell(queue, What.UNRECORDED)
        for each in tags:
            place = channel.held.pop(each)
            if channel.in_transaction:
                channel.settles.append((each, place, is_back))
            else:
                self._settled(channel, place, is_back, row["time"])

    def _settled(self, channel: Channel, place: Place, is_back: bool, time: float) -> None:
        if is_back:
            channel.returned.append((place, time))
        else:
            self._add(*place, 0, What.SETTLED, time)

    def _recover(self, row: TraceRow, channel: Channel) -> None:
        channel.returned += [(place, row["time"]) for place in channel.held.values()]
        channel.held.clear()

    def _select(self, row: TraceRow, channel: Channel) -> None:
        channel.in_transaction = True

    def _commit(self, row: TraceRow, channel: Channel) -> None:
        for publish, form in channel.publishes:
            self._add("", publish.message, form, What.PUBLISHED, row["time"])
            channel.committed.append(publish)
        for _, place, is_back in channel.settles:
            self._settled(channel, place, is_back, row["time"])
        channel.publishes.clear()
        channel.settles.clear()

    def _rollback(self, row: TraceRow, channel: Channel) -> None:
        channel.publishes.clear()
        channel.held = dict(sorted([*channel.held.items(), *((tag, place) for tag, place, _ in channel.settles)]))
        channel.settles.clear()

    def _consume(self, row: TraceRow, channel: Channel) -> None:
        arguments = row["arguments"]
        queue = self._named(arguments.get("queue"), channel)
        consumer = queue, bool(arguments.get("no_ack"))
        channel.sources.add(queue)
        if tag := arguments.get("consumer_tag"):
            channel.consumers[str(tag)] = consumer
        else:
            channel.nameless.append(consumer)

    def _get(self, row: TraceRow, channel: Channel) -> None:
        channel.sources.add(self._named(row["arguments"].get("queue"), channel))

    def _confirm(self, row: TraceRow, channel: Channel) -> None:
        channel.published = max(channel.published, 0)

    def _declare(self, row: TraceRow, channel: Channel) -> None:
        arguments = row["arguments"]
        if not arguments.get("queue") or arguments.get("passive"):
            return
        queue, given = self._named(arguments["queue"], channel), arguments.get("arguments") or {}
        if given.get("x-queue-type") == "stream":
            self._tell(queue, What.IS_STREAM)
        for number, name in enumerate(_ARGUMENTS):
            if name in given:
                self._tell(queue, What.LOSES, number)
        for name, number in (("auto_delete", _AUTO_DELETE), ("exclusive", _EXCLUSIVE)):
            if arguments.get(name):
                self._tell(queue, What.LOSES, number)

    def _purge(self, row: TraceRow, channel: Channel) -> None:
        self._purged.setdefault(self._named(row["arguments"].get("queue"), channel), row["time"])

    # ------------------------------------------------------------------------------------------ what a broker sends

    def _deliver(self, row: TraceRow, channel: Channel) -> None:
        consumer = channel.consumers.get(str(row["arguments"].get("consumer_tag", "")))
        if consumer is not None:
            self._delivered(row, channel, *consumer)

    def _delivered(self, row: TraceRow, channel: Channel, queue: str, is_settled: bool) -> None:
        arguments = row["arguments"]
        if str(arguments.get("exchange", "")).startswith(_OF_THE_BROKER):
            return  # nobody published it but the broker itself
        headers = row.get("properties", {}).get("headers") or {}
        is_dead_letter = "x-death" in headers
        if is_dead_letter:
            self._tell(queue, What.HAS_DEAD_LETTERS)
        if "x-stream-offset" in headers:
            self._tell(queue, What.IS_STREAM)
        message = message_of(row)
        what = What.REDELIVERED if arguments.get("redelivered") else What.DELIVERED
        self._add(queue, message, 0 if is_dead_letter else form_of(row), what, row["time"])
        tag = arguments.get("delivery_tag", 0)
        channel.skipped.update(range(max(channel.highest + 1, tag - _MOST_SKIPPED), tag))
        channel.highest = max(channel.highest, tag)
        if is_settled or channel.all_settled > channel.all_read:
            self._add(queue, message, 0, What.SETTLED, row["time"])
        if not is_settled:
            channel.held[tag] = queue, message

    def _got(self, row: TraceRow, request: TraceRow, channel: Channel) -> None:
        queue = self._named(request["arguments"].get("queue"), channel)
        if row["method"] == "basic.get-ok":
            self._delivered(row, channel, queue, bool(request["arguments"].get("no_ack")))
            return
        self._meet(queue, 0, row["time"])
        if queue not in self._purged:
            self._empty[queue] = request["time"]

    def _consumed(self, row: TraceRow, channel: Channel) -> None:
        tag = str(row["arguments"].get("consumer_tag", ""))
        if tag not in channel.consumers and channel.nameless:
            channel.consumers[tag] = channel.nameless.pop(0)

    def _declared(self, row: TraceRow, channel: Channel) -> None:
        channel.last_queue = str(row["arguments"].get("queue", ""))
        self._meet(self._named("", channel), int(row["arguments"].get("message_count", 0)), row["time"])

    def _meet(self, queue: str, ready: int, time: float) -> None:
        self._met.setdefault(queue, (time, ready))

    def _confirmed(self, row: TraceRow, channel: Channel) -> None:
        tag = row["arguments"].get("delivery_tag", 0)
        numbers = [tag] if tag in channel.unconfirmed else []
        if row["arguments"].get("multiple"):
            numbers = []
            for number in channel.unconfirmed:
                if number > tag:
                    break
                numbers.append(number)
        for number in numbers:
            publish = channel.unconfirmed.pop(number)
            if row["method"] == "basic.ack":
                self._in_queues(publish, row)

    def _returned(self, row: TraceRow, channel: Channel) -> None:
        """It reached no queue."""
        message = message_of(row)
        found = next((number for number, each in channel.unconfirmed.items() if each.message == message), None)
        if found is not None:
            del channel.unconfirmed[found]
        channel.committed = [each for each in channel.committed if each.message != message]

    def _cancelled(self, row: TraceRow, channel: Channel) -> None:
        """The broker ended a consumer: what that held may come again, or be gone with the queue."""
        consumer = channel.consumers.get(str(row["arguments"].get("consumer_tag", "")))
        if consumer is not None:
            self._tell(consumer[0], What.BROKE_OFF)


_SENT = {
    "basic.publish": _Sequence._publish, "basic.ack": _Sequence._settle, "basic.nack": _Sequence._settle,
    "basic.reject": _Sequence._settle, "basic.recover": _Sequence._recover, "basic.recover-async": _Sequence._recover,
    "tx.select": _Sequence._select, "tx.commit": _Sequence._commit, "tx.rollback": _Sequence._rollback,
    "basic.consume": _Sequence._consume, "basic.get": _Sequence._get, "confirm.select": _Sequence._confirm,
    "queue.declare": _Sequence._declare, "queue.purge": _Sequence._purge, "queue.delete": _Sequence._purge,
}  # fmt: skip
_RECEIVED = {
    "basic.deliver": _Sequence._deliver, "basic.consume-ok": _Sequence._consumed,
    "queue.declare-ok": _Sequence._declared, "basic.ack": _Sequence._confirmed, "basic.nack": _Sequence._confirmed,
    "basic.return": _Sequence._returned, "basic.cancel": _Sequence._cancelled,
}  # fmt: skip
_HANDLERS = {(name, "sent"): handler for name, handler in _SENT.items()}
_HANDLERS |= {(name, "received"): handler for name, handler in _RECEIVED.items()}
