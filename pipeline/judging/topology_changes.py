"""What the clients of a run do to exchanges and bindings, with when the broker can have done it.

A change was asked for at one time, and had been done when its reply came, or the reply to a later request of its
channel. In between it is under way: what other channels publish meanwhile may be routed before or after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace_parquet import batch_rows, columns_of, require_schema
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow
from amqpspec.model.broker.queues import Binding, Exchange, Queue
from amqpspec.model.protocol.methods import METHOD_IDS, SYNCHRONOUS_METHODS
from amqpspec.model.rules.queue.binding import binding_of
from amqpspec.targets.drivers.application import is_of_application


class Kind(Enum):
    DECLARED = "exchange declared"
    DELETED = "exchange deleted"
    BOUND = "bound"
    UNBOUND = "unbound"
    QUEUE_DELETED = "queue deleted"


@dataclass(slots=True)
class Change:
    """`name`: of the exchange, the source of the binding, or the queue. `place`: the channel on which it was asked for,
    where all that is asked for later comes after it.
    """

    kind: Kind
    host: str
    name: str
    place: tuple[str, str, int]
    asked: float
    done: float = inf
    exchange: Exchange | None = None
    binding: Binding | None = None


@dataclass(slots=True)
class _Channel:
    last_queue: str = ""
    #: requests that wait: name, when they were sent, and what they change
    asked: list[tuple[str, float, Change | None]] = field(default_factory=list)
    #: asked for without a reply, and not known to have been done
    silent: list[Change] = field(default_factory=list)

    def is_read(self, until: float, time: float) -> None:
        """The broker has read what was sent by then."""
        for each in self.silent:
            if each.asked <= until:
                each.done = time
        self.silent = [each for each in self.silent if each.asked > until]


def changes_of(rows: Iterable[TraceRow]) -> list[Change]:
    """Those of one sequence, in the order in which they were asked for."""
    host, sequence = "/", ""
    channels: dict[tuple[str, int], _Channel] = {}
    found: list[Change] = []
    for row in rows:
        if row["kind"] == "start":
            host, sequence = row.get("virtual_host") or "/", row["sequence"]
        if row["kind"] != "frame" or is_of_application(row["connection"]):
            continue
        name, key, time = row["method"], (row["connection"], row["channel"]), row["time"]
        if name == "connection.close-ok" and row["direction"] == "received":
            for (connection, _), one in channels.items():
                if connection == row["connection"]:
                    one.is_read(time, time)
        if not row["channel"]:
            continue
        channel = channels.get(key)
        if channel is None or name == "channel.open":
            channel = channels[key] = _Channel()
        if row["direction"] == "received":
            _received(channel, row)
            continue
        change = _asked(channel, host, (sequence, *key), row)
        if change is not None:
            found.append(change)
        if name in SYNCHRONOUS_METHODS and not row["arguments"].get("nowait"):
            channel.asked.append((name, time, change))
        elif change is not None:
            channel.silent.append(change)
    return [change for change in found if change.asked < inf]


def _received(channel: _Channel, row: TraceRow) -> None:
    name = row["method"]
    if name == "queue.declare-ok":
        channel.last_queue = str(row["arguments"].get("queue", ""))
    if name == "channel.close":
        _refused(channel, row)
    elif name.endswith("-ok") or name == "basic.get-empty":
        method = "basic.get" if name.startswith("basic.get-") else name.removesuffix("-ok")
        found = next((each for each in channel.asked if each[0] == method), None)
        if found is None:
            return
        channel.asked.remove(found)
        _, sent, change = found
        if change is not None:
            change.done = row["time"]
        channel.is_read(sent, row["time"])


def _refused(channel: _Channel, row: TraceRow) -> None:
    """What was refused did not happen, where it is certain which of the requests that was."""
    identifiers = row["arguments"].get("class_id", 0), row["arguments"].get("method_id", 0)
    changes = [*channel.silent, *(change for name, _, change in channel.asked if METHOD_IDS[name] == identifiers)]
    if len(changes) == 1 and changes[0] is not None:
        changes[0].asked = inf
    channel.asked.clear()
    channel.silent.clear()


def _asked(channel: _Channel, host: str, place: tuple[str, str, int], row: TraceRow) -> Change | None:
    name, given = row["method"], row["arguments"]
    kind = _KINDS.get(name)
    if kind is None or given.get("passive"):
        return None
    change = Change(kind, host, "", place, row["time"])
    if name.startswith("exchange.") and kind in (Kind.DECLARED, Kind.DELETED):
        change.name = str(given.get("exchange", ""))
        arguments = given.get("arguments") or {}
        change.exchange = Exchange(
            change.name,
            str(given.get("type", "direct")),
            auto_delete=bool(given.get("auto_delete")),
            arguments=arguments,
        )
    elif kind is Kind.QUEUE_DELETED:
        change.name = str(given.get("queue") or channel.last_queue)
    elif name.startswith("exchange."):
        change.name = str(given.get("source", ""))
        destination = Exchange(str(given.get("destination", "")), "")
        change.binding = binding_of(destination, str(given.get("routing_key", "")), given)
    else:
        change.name = str(given.get("exchange", ""))
        queue, key = str(given.get("queue", "")), str(given.get("routing_key", ""))
        if not queue:
            queue, key = channel.last_queue, key or channel.last_queue
        change.binding = binding_of(Queue(queue), key, given)
    return change


#: What changes something, and so has to be known of the topology.
_KINDS = {
    "exchange.declare": Kind.DECLARED, "exchange.delete": Kind.DELETED, "queue.delete": Kind.QUEUE_DELETED,
    "queue.bind": Kind.BOUND, "exchange.bind": Kind.BOUND, "queue.unbind": Kind.UNBOUND,
    "exchange.unbind": Kind.UNBOUND,
}  # fmt: skip

#: Frames that say nothing of this, and are most of all.
_CONTENTS = pa.array([
    "basic.publish", "basic.deliver", "basic.ack", "basic.nack", "basic.reject", "basic.return", "basic.get",
    "basic.get-ok", "basic.get-empty",
])  # fmt: skip
_NOT_READ = frozenset({"properties", "body", "body_size", "body_sha256"})


def changes_in(file: Path) -> list[Change]:
    """Those of a part, which holds whole sequences, one after the other. Raises `TraceError`."""
    found: list[Change] = []
    for _, rows in groupby(_rows(file), key=lambda row: row["sequence"]):
        found += changes_of(rows)
    return found


def _rows(file: Path) -> Iterator[TraceRow]:
    require_schema(file)
    try:
        with pq.ParquetFile(file) as columns:
            wanted = [name for name in columns_of(columns.schema_arrow.names, file) if name not in _NOT_READ]
            for batch in columns.iter_batches(columns=wanted):
                is_other = pc.and_(
                    pc.is_in(batch.column("kind"), pa.array(["start", "frame"])),
                    pc.invert(pc.is_in(batch.column("method"), _CONTENTS)),
                )
                yield from batch_rows(batch.filter(is_other), str(file))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{file}: not a readable Parquet file: {' '.join(str(error).split())}") from error
