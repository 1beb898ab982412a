"""Conservation: what becomes of a message between the connections of a run in which all clients were recorded.

The first stage takes from each sequence (connection) what it says of messages, in columns: a queue, a message, what was
done with it, when. A message is known by its body. The second stage brings together what belongs to one message, and to
one message in one queue. It finds

* a delivery of what nobody had published (PUBLISH-016);
* more deliveries of a message without the flag `redelivered` than it was published times (ACK-015);
* a message that was confirmed to a queue and never delivered, though the queue was found empty later (CONFIRM-010).

Each is said only where the recording decides it: of a queue that was empty when the recording first met it; the second
not of streams, nor where dead letters come back; the third not where a message may be dropped, expire, be purged or be
deleted, nor where a consumer's connection broke off. Times are on the one clock of the recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby, takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.store import Store

#: Arguments of a queue by which it may lose messages, or pass them on.
_LOSING = ("x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-dead-letter-exchange")
_BROKE_OFF = "the connection of a consumer broke off"
_PUBLISHED, _CONFIRMED, _DELIVERED, _REDELIVERED = range(4)
#: Identifiers of the requirements, and what is wrong.
UNPUBLISHED = ("PUBLISH-016", "delivered, and published by nobody before")
TWICE = ("ACK-015", "delivered more often without the flag redelivered than it was published")
LOST = ("CONFIRM-010", "confirmed, never delivered, and its queue was empty later")


@dataclass(frozen=True, slots=True)
class Violation:
    """One message of one queue. `body`: its text, shortened, where the recording has it; else its digest."""

    requirement: str
    what: str
    queue: str
    body: str
    #: when the frame came that shows it, in seconds since the recording began
    time: float


@dataclass(slots=True)
class Conservation:
    """What was found. `undecided`: queue -> why something could not be decided of it."""

    violations: list[Violation] = field(default_factory=list)
    undecided: dict[str, str] = field(default_factory=dict)
    messages: int = 0
    queues: int = 0


@dataclass(slots=True)
class _Queue:
    """What all sequences say of a queue."""

    #: ready messages when it was first met, and when that was; -1: nobody asked
    began_with: int = -1
    met: float = float("inf")
    is_stream: bool = False
    #: why messages may be gone without a trace; "": they may not
    loses: str = ""
    #: dead letters come to it
    has_dead_letters: bool = False
    #: when it was last found empty
    empty: float = -1.0
    #: the connection of a consumer broke off: what was under way to it is not known
    broke_off: bool = False


@dataclass(slots=True)
class _Channel:
    """`unconfirmed`: number of a publish to its queue and message. `asked`: queues that basic.get asked, in order."""

    last_queue: str = ""
    consumers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    #: queues of consumers that the server is to name
    nameless: list[str] = field(default_factory=list)
    published: int = -1
    unconfirmed: dict[int, tuple[str, int]] = field(default_factory=dict)


class Facts:
    """The first stage: fed sequence by sequence, in any order."""

    def __init__(self) -> None:
        self.queues: dict[str, _Queue] = {}
        self._names: dict[str, int] = {}
        self._columns: tuple[list[int], list[int], list[int], list[float]] = ([], [], [], [])
        self._chunks: list[pa.RecordBatch] = []
        #: a body of each message that was seen, as far as there is room
        self._bodies: dict[int, str] = {}

    def add(self, rows: Iterable[TraceRow]) -> None:
        """Take the rows of one sequence."""
        host = "/"
        channels: dict[tuple[str, int], _Channel] = {}
        is_over = True
        for row in rows:
            if row["kind"] == "start":
                host = row.get("virtual_host") or "/"
            elif row["kind"] == "frame":
                name = row["method"]
                if row["channel"]:
                    key = row["connection"], row["channel"]
                    channel = channels.setdefault(key, _Channel())
                    if name in ("channel.open", "channel.close-ok"):
                        channels[key] = _Channel()
                    else:
                        self._frame(row, channel, host)
                elif name == "socket.open":
                    is_over = False
                elif name in ("connection.close-ok", "connection.close"):
                    is_over = True
        if not is_over:
            for channel in channels.values():
                for queue in channel.consumers.values():
                    self._queue(queue).broke_off = True

    def _frame(self, row: TraceRow, channel: _Channel, host: str) -> None:
        name, arguments, time = row["method"], row["arguments"], row["time"]

        def named(given: Any) -> str:
            return f"{host} {given or channel.last_queue}"

        if name == "basic.publish":
            self._published(row, channel, host)
        elif name == "basic.deliver":
            queue = channel.consumers.get(str(arguments.get("consumer_tag", "")))
            if queue is not None:
                self._delivered(row, queue)
        elif name == "basic.get":
            channel.asked.append(named(arguments.get("queue")))
        elif name in ("basic.get-ok", "basic.get-empty") and channel.asked:
            queue = channel.asked.pop(0)
            if name == "basic.get-ok":
                self._delivered(row, queue)
            else:
                self._met(queue, 0, time)
                self._queue(queue).empty = max(self._queue(queue).empty, time)
        elif name == "basic.consume":
            tag = str(arguments.get("consumer_tag", ""))
            if tag:
                channel.consumers[tag] = named(arguments.get("queue"))
            else:
                channel.nameless.append(named(arguments.get("queue")))
            self._queue(named(arguments.get("queue")))
        elif name == "basic.consume-ok":
            tag = str(arguments.get("consumer_tag", ""))
            if tag not in channel.consumers and channel.nameless:
                channel.consumers[tag] = channel.nameless.pop(0)
        elif name == "queue.declare":
            self._declared(arguments, named(arguments.get("queue")) if arguments.get("queue") else None)
        elif name == "queue.declare-ok":
            channel.last_queue = str(arguments.get("queue", ""))
            self._met(named(""), int(arguments.get("message_count", 0)), time)
        elif name in ("queue.purge", "queue.delete"):
            self._queue(named(arguments.get("queue"))).loses = f"there was a {name}"
        elif name == "confirm.select":
            channel.published = max(channel.published, 0)
        elif name in ("basic.ack", "basic.nack") and row["direction"] == "received":
            self._confirmed(row, channel)
        elif name == "basic.return":
            self._returned(row, channel)
        elif name.startswith("tx."):
            channel.published = -1

    def _declared(self, arguments: dict[str, Any], queue: str | None) -> None:
        given = arguments.get("arguments") or {}
        if queue is None or arguments.get("passive"):
            return
        known = self._queue(queue)
        known.is_stream = known.is_stream or given.get("x-queue-type") == "stream"
        losing = next((each for each in _LOSING if each in given), None)
        if losing or arguments.get("auto_delete") or arguments.get("exclusive"):
            known.loses = f"it has {losing}" if losing else "it is deleted by itself"

    def _published(self, row: TraceRow, channel: _Channel, host: str) -> None:
        message = self._message(row)
        self._fact("", message, _PUBLISHED, row["time"])
        queue = f"{host} {row['arguments'].get('routing_key', '')}"
        if (row.get("properties") or {}).get("expiration") is not None:
            self._queue(queue).loses = "a message had a time to live"
        if channel.published >= 0:
            channel.published += 1
            if not row["arguments"].get("exchange"):
                channel.unconfirmed[channel.published] = (queue, message)

    def _confirmed(self, row: TraceRow, channel: _Channel) -> None:
        tag = int(row["arguments"].get("delivery_tag", 0))
        if row["arguments"].get("multiple"):
            numbers = list(takewhile(lambda number: number <= tag, channel.unconfirmed))
        else:
            numbers = [tag] if tag in channel.unconfirmed else []
        for number in numbers:
            queue, message = channel.unconfirmed.pop(number)
            if row["method"] == "basic.ack":
                self._fact(queue, message, _CONFIRMED, row["time"])

    def _returned(self, row: TraceRow, channel: _Channel) -> None:
        """It reached no queue."""
        message = self._message(row)
        found = next((number for number, each in channel.unconfirmed.items() if each[1] == message), None)
        if found is not None:
            del channel.unconfirmed[found]

    def _delivered(self, row: TraceRow, queue: str) -> None:
        is_again = bool(row["arguments"].get("redelivered"))
        headers = (row.get("properties") or {}).get("headers") or {}
        if "x-death" in headers:
            self._queue(queue).has_dead_letters = True
        if "x-stream-offset" in headers:
            self._queue(queue).is_stream = True
        self._fact(queue, self._message(row), _REDELIVERED if is_again else _DELIVERED, row["time"])

    def _met(self, queue: str, ready: int, time: float) -> None:
        known = self._queue(queue)
        if time < known.met:
            known.met, known.began_with = time, ready

    def _queue(self, queue: str) -> _Queue:
        return self.queues.setdefault(queue, _Queue())

    def _message(self, row: TraceRow) -> int:
        """A number for the body, equal for equal ones."""
        text = row.get("body")
        if "body_sha256" in row:
            text = f"{row['body_size']} octets, SHA-256 {row['body_sha256']}"
        elif text is None:
            text = row.get("body_base64", "")
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "big", signed=True)
        if len(self._bodies) < 100_000:
            self._bodies.setdefault(number, text[:80])
        return number

    def body_of(self, message: int) -> str:
        return self._bodies.get(message, f"message {message:x}")

    def _fact(self, queue: str, message: int, what: int, time: float) -> None:
        queues, messages, kinds, times = self._columns
        queues.append(self._names.setdefault(queue, len(self._names)))
        messages.append(message)
        kinds.append(what)
        times.append(time)
        if len(times) >= 100_000:
            self._flush()

    def _flush(self) -> None:
        arrays = [
            pa.array(column, kind)
            for column, kind in zip(self._columns, (pa.int32(), pa.int64(), pa.int8(), pa.float64()), strict=True)
        ]
        self._chunks.append(pa.RecordBatch.from_arrays(arrays, ["queue", "message", "what", "time"]))
        for column in self._columns:
            column.clear()

    def table(self) -> pa.Table:
        """All facts."""
        self._flush()
        return pa.Table.from_batches(self._chunks)

    @property
    def names(self) -> list[str]:
        """Of the queues, by the numbers in the table."""
        return list(self._names)


def conservation_of_run(store: Store, run: str) -> Conservation:
    """Both stages for a run of the store. Raises `StoreError` where it has no such run, `TraceError`."""
    parts = [part for part in store.contents().parts if part.run == run]
    if not parts:
        raise StoreError(f"{store.root}: the store has no run {run!r}")
    facts = Facts()
    for part in parts:
        # a part holds whole sequences, one after the other
        for _, rows in groupby(read_trace(store.root / part.trace), key=lambda row: row["sequence"]):
            facts.add(rows)
    return conservation(facts)


def conservation(facts: Facts) -> Conservation:
    """The second stage."""
    table, names = facts.table(), facts.names
    published = _grouped(table, [_PUBLISHED], ["message"])
    fresh = _grouped(table, [_DELIVERED], ["queue", "message"])
    delivered = _grouped(table, [_DELIVERED, _REDELIVERED], ["queue", "message"])
    confirmed = _grouped(table, [_CONFIRMED], ["queue", "message"])
    found = Conservation(messages=published.num_rows, queues=len(facts.queues))

    def add(rule: tuple[str, str], row: dict[str, Any], time: float) -> None:
        requirement, what = rule
        body = facts.body_of(row["message"])
        found.violations.append(Violation(requirement, what, names[row["queue"]], body, time))

    for row in _joined(delivered, published, ["message"], "left outer"):
        is_published = row["first_of_other"] is not None and row["first_of_other"] <= row["first"]
        if not is_published and _is_known(facts, names[row["queue"]], found):
            add(UNPUBLISHED, row, row["first"])
    for row in _joined(fresh, published, ["message"], "inner"):
        if row["count"] > row["count_of_other"] and _is_known(facts, names[row["queue"]], found):
            queue = facts.queues[names[row["queue"]]]
            if queue.is_stream or queue.has_dead_letters:
                found.undecided[names[row["queue"]]] = "a stream, or dead letters come back to it"
            elif queue.broke_off:
                found.undecided[names[row["queue"]]] = _BROKE_OFF
            else:
                add(TWICE, row, row["last"])
    for row in _joined(confirmed, delivered, ["queue", "message"], "left anti"):
        queue = facts.queues.get(names[row["queue"]], _Queue())
        if queue.loses or queue.broke_off or queue.empty <= row["last"]:
            why = queue.loses or (_BROKE_OFF if queue.broke_off else "nobody found it empty at the end")
            found.undecided[names[row["queue"]]] = why
        else:
            add(LOST, row, row["last"])
    found.violations.sort(key=lambda each: each.time)
    return found


def _is_known(facts: Facts, queue: str, found: Conservation) -> bool:
    """Was the queue empty when the recording first met it?"""
    if facts.queues[queue].began_with == 0:
        return True
    found.undecided[queue] = "it was not empty at the beginning, or nobody asked"
    return False


def _grouped(table: pa.Table, kinds: list[int], keys: list[str]) -> pa.Table:
    wanted = table.filter(pc.is_in(table.column("what"), pa.array(kinds, pa.int8())))
    grouped = wanted.group_by(keys).aggregate([("time", "count"), ("time", "min"), ("time", "max")])
    new = {"time_count": "count", "time_min": "first", "time_max": "last"}
    return grouped.rename_columns([new.get(name, name) for name in grouped.column_names])


def _joined(one: pa.Table, other: pa.Table, keys: list[str], how: str) -> Iterator[dict[str, Any]]:
    joined = one.join(other, keys, join_type=how, right_suffix="_of_other")
    for batch in joined.to_batches():
        yield from batch.to_pylist()
