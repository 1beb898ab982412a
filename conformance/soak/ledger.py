"""The account of every message of a soak, across all connections: made of the rows of its trace, and of nothing else.

What the account says is wrong (`findings.What`) is what no broker may do whatever befalls it, and what it may do only
near a fault, where there was none (`windows.py`). A settlement counts from the moment on at which it was sent. What
comes on one connection may be received after what the broker sent later on another one: so a delivery on a channel that
its client is closing is counted, and not held against anybody.

The ledger follows connections and channels. What is published is the concern of `publishing.py`, what is taken from
queues that of `taking.py`, what is left at the end that of `balance.py`; all write to the same `books.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqpspec.conformance.soak.balance import balance, undecided
from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount
from amqpspec.conformance.soak.consumers_counted import ConsumersCounted
from amqpspec.conformance.soak.findings import Findings
from amqpspec.conformance.soak.publishing import Publishing
from amqpspec.conformance.soak.taking import Taking
from amqpspec.conformance.soak.tally import Tally
from amqpspec.conformance.soak.topology import Topology
from amqpspec.conformance.soak.windows import Windows
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.protocol.methods import FAULTS, OPERATOR

CLIENT = "client"
#: Seconds that a broker may take to confirm.
PATIENCE = 10.0
_Handler = Callable[[TraceRow, ChannelAccount], None]


class Ledger:
    """`patience`: seconds after which a confirm is missing."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._books = Books()
        self._publishing, self._taking = Publishing(self._books, patience), Taking(self._books)
        self._counted = ConsumersCounted(self._books)
        self._channels: dict[str, dict[int, ChannelAccount]] = {}
        self._numbers = 0
        self._handlers = _handlers(self._publishing, self._taking)
        self._handlers["queue.declare-ok", "received"] = self._declared

    @property
    def findings(self) -> Findings:
        return self._books.findings

    @property
    def tally(self) -> Tally:
        return self._books.tally

    @property
    def windows(self) -> Windows:
        return self._books.windows

    @property
    def topology(self) -> Topology:
        return self._books.topology

    @property
    def time(self) -> float:
        """That of the last row."""
        return self._books.time

    def row(self, row: TraceRow, line: int) -> None:
        """Take a row; `line` is its number in the trace."""
        if row["kind"] != "frame":
            return
        self._books.line, self._books.time = line, row["time"]
        connection, name = row["connection"], row["method"]
        if connection == OPERATOR:
            if name in FAULTS:
                self._fault(name, row["arguments"])
            return
        if row["direction"] == "received" and not name.startswith("socket."):
            self._books.heard[node_of(connection)] = row["time"]
        number = row["channel"]
        if not number:
            self._on_connection(row["sequence"], name, row["direction"] == "sent")
            return
        channels = self._channels.setdefault(row["sequence"], {})
        channel = channels.get(number)
        if channel is None or name == "channel.open":
            self._numbers += 1
            channel = channels[number] = ChannelAccount(self._numbers, node_of(connection))
        handler = self._handlers.get((name, row["direction"]))
        if handler is not None:
            handler(row, channel)
        elif name == "channel.close" and row["direction"] == "received":
            self._over(channels.pop(number), in_order=False)
        elif name == "channel.close-ok":
            self._over(channels.pop(number), in_order=row["direction"] == "received" and channel.is_closing)

    def _fault(self, name: str, arguments: dict[str, Any]) -> None:
        books = self._books
        known = len(books.windows.all)
        books.windows.take(name, arguments, books.time, books.line)
        if name == "broker.restart" and "node" not in arguments:
            self._counted.restarted()
        if len(books.windows.all) > known:
            books.latest = books.windows.all[-1].kind.value
            books.fault_counts.times += 1

    def _on_connection(self, sequence: str, name: str, is_sent: bool) -> None:
        books = self._books
        in_order = name == "connection.close-ok" and not is_sent
        if name == "socket.abort" and self._channels.get(sequence) and not books.windows.touch(books.time, books.time):
            books.latest = CLIENT
            books.fault_counts.times += 1
        if name == "connection.close" and is_sent:
            for channel in self._channels.get(sequence, {}).values():
                self._taking.closing(channel)
        elif in_order or name in ("connection.close", "socket.closed", "socket.abort", "socket.garbage"):
            channels = self._channels.pop(sequence, {})
            if channels and not in_order:
                books.fault_counts.connections_lost += 1
            for channel in channels.values():
                self._over(channel, in_order=in_order)

    def _declared(self, row: TraceRow, channel: ChannelAccount) -> None:
        arguments = row["arguments"]
        there = (each for channels in self._channels.values() for each in channels.values())
        self._counted.told(str(arguments.get("queue", "")), arguments.get("consumer_count", 0), there)

    def _over(self, channel: ChannelAccount, *, in_order: bool) -> None:
        self._books.ended[channel.number] = (self._books.time, in_order, self._books.line)
        self._counted.over(channel, in_order=in_order)
        self._taking.over(channel)
        self._publishing.over(channel)

    def end(self) -> None:
        """Nothing more was recorded."""
        for channels in self._channels.values():
            for channel in channels.values():
                self._over(channel, in_order=False)
        self._channels.clear()
        balance(self._books)
        self._counted.end()

    def undecided(self) -> dict[str, str]:
        """Queues of which it is not known what was left in them."""
        return undecided(self._books)


def _handlers(publishing: Publishing, taking: Taking) -> dict[tuple[str, str], _Handler]:
    return {
        ("queue.declare", "sent"): publishing.declare,
        ("exchange.declare", "sent"): publishing.declare,
        ("queue.bind", "sent"): publishing.declare,
        ("confirm.select", "sent"): publishing.select,
        ("basic.publish", "sent"): publishing.publish,
        ("basic.ack", "received"): publishing.confirmed,
        ("basic.nack", "received"): publishing.confirmed,
        ("basic.return", "received"): publishing.returned,
        ("basic.qos", "sent"): taking.limit,
        ("basic.consume", "sent"): taking.consume,
        ("basic.get", "sent"): taking.get,
        ("basic.ack", "sent"): taking.settle,
        ("basic.nack", "sent"): taking.settle,
        ("basic.reject", "sent"): taking.settle,
        ("channel.close", "sent"): taking.close,
        ("basic.deliver", "received"): taking.delivered,
        ("basic.get-ok", "received"): taking.got,
        ("basic.get-empty", "received"): taking.got_none,
        ("basic.cancel-ok", "received"): taking.cancelled,
        ("basic.cancel", "received"): taking.cancelled,
    }
