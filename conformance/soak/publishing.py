"""The account of what is published in a soak: what becomes of each publish until its publisher is told."""

from __future__ import annotations

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount, up_to
from amqpspec.conformance.soak.columns import Copies, Outcome, Published
from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity, identity_of
from amqpspec.conformance.soak.plan import TRANSIENT
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.broker.nodes import node_of


class Publishing:
    """`patience`: seconds after which a confirm is missing."""

    def __init__(self, books: Books, patience: float) -> None:
        self._books, self._patience = books, patience

    # ------------------------------------------------------------------------------------------ what clients send

    def declare(self, row: TraceRow, channel: ChannelAccount) -> None:
        self._books.topology.take(row["method"], row["arguments"], node_of(row["connection"]), row["time"])

    def select(self, row: TraceRow, channel: ChannelAccount) -> None:
        channel.confirms = True

    def publish(self, row: TraceRow, channel: ChannelAccount) -> None:
        books, arguments = self._books, row["arguments"]
        identity = identity_of(row.get("body", ""))
        if identity is None:
            return
        name, number = identity
        published = books.published.get(name)
        if published is None:
            queues = books.topology.queues_of(arguments.get("exchange", ""), arguments.get("routing_key", ""))
            is_transient = row.get("properties", {}).get("delivery_mode") == TRANSIENT
            published = books.published[name] = Published(name, queues, is_transient)
            for queue in queues:
                books.copies[name, queue] = Copies(published, queue)
        is_first = channel.publisher != name
        channel.publisher = name
        published.add(number, books.time, books.line, is_first)
        for queue in published.queues:
            books.copies[name, queue].reach(number)
            books.counts(queue).sent += 1
        if channel.confirms:
            channel.tag += 1
            channel.unconfirmed[channel.tag] = published, number
        books.tally.second(books.time, "sent")

    # ------------------------------------------------------------------------------------------ what a broker sends

    def confirmed(self, row: TraceRow, channel: ChannelAccount) -> None:
        books, arguments = self._books, row["arguments"]
        unconfirmed = channel.unconfirmed
        is_ack = row["method"] == "basic.ack"
        for each in up_to(unconfirmed, arguments.get("delivery_tag", 0), bool(arguments.get("multiple"))):
            published, number = unconfirmed.pop(each)
            is_returned = published.outcome[number] == Outcome.RETURNED
            outcome = Outcome.CONFIRMED if is_ack else Outcome.REFUSED
            published.resolve(number, Outcome.RETURNED if is_returned else outcome, books.time, books.line)
            is_taken = is_ack and not is_returned
            for queue in published.queues:
                counts = books.counts(queue)
                if is_taken:
                    counts.confirmed += 1
                else:
                    counts.refused += 1
            books.tally.second(books.time, "confirmed" if is_taken else "refused")

    def returned(self, row: TraceRow, channel: ChannelAccount) -> None:
        books, identity = self._books, identity_of(row.get("body", ""))
        published = books.message(identity)
        if identity is None or published is None:
            return
        published.resolve(identity.number, Outcome.RETURNED, books.time, books.line)
        if published.queues:
            why = "near a fault" if books.windows.touch(published.sent[identity.number], books.time) else ""
            books.add(What.RETURNED, published.queues[0], identity, {"returned": books.line}, allowed=why)

    def over(self, channel: ChannelAccount) -> None:
        """The channel has ended: what waits for its confirm gets none."""
        for published, number in channel.unconfirmed.values():
            self._unknown(published, number, channel.node)

    def _unknown(self, published: Published, number: int, node: int) -> None:
        books, sent = self._books, published.sent[number]
        published.resolve(number, Outcome.UNKNOWN, books.time, books.line)
        for queue in published.queues:
            books.counts(queue).unknown += 1
        books.fault_counts.unknown += 1
        # a node that says nothing to anybody any more is gone, and owes nothing
        if books.heard.get(node, 0.0) - sent >= self._patience and not books.windows.touch(sent, books.time):
            for queue in published.queues[:1]:
                books.add(What.UNCONFIRMED, queue, Identity(published.name, number), {"waited until": books.line})
