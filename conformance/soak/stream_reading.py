"""What a delivery from a stream says in a soak: each reader reads all of it, each message at its offset."""

from __future__ import annotations

from typing import Any

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount
from amqpspec.conformance.soak.columns import Copies, Outcome
from amqpspec.conformance.soak.delivery_order import DeliveryOrder
from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity


class StreamReading:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._order = DeliveryOrder(books)
        #: reader: the offset that came last
        self._last: dict[tuple[int, str], int] = {}
        #: queue and offset: what was read there
        self._at: dict[tuple[str, int], Identity] = {}
        #: those that were told of: they are there twice
        self._twice: set[tuple[str, Identity]] = set()

    def read(
        self, copies: Copies, identity: Identity, channel: ChannelAccount, tag: str, properties: dict[str, Any]
    ) -> None:
        """A message was delivered to a reader."""
        books, number, queue = self._books, identity.number, copies.queue
        counts = books.counts(queue)
        counts.delivered += 1
        copies.read[number] = books.time
        if copies.count(copies.deliveries, number) == 1 and copies.published.outcome[number] == Outcome.UNKNOWN:
            counts.unknown_delivered += 1
        offset = (properties.get("headers") or {}).get("x-stream-offset")
        if not isinstance(offset, int):
            return
        key = (channel.number, tag)
        before = self._last.get(key)
        if before is not None and offset != before + 1:
            books.add(What.GAP, queue, identity, {"delivered": books.line})
        self._last[key] = offset
        self._in_its_place(queue, offset, identity)
        known = copies.offset[number]
        if known < 0:
            copies.offset[number] = offset
            self._order.came(copies, identity, channel, tag)
        elif known != offset and (queue, identity) not in self._twice:
            self._twice.add((queue, identity))
            counts.duplicates += 1
            books.fault_counts.duplicates += 1
            published = copies.published
            near = books.windows.touch(published.sent[number], max(published.told[number], published.sent[number]))
            why = "published near a fault" if near else ""
            books.add(What.TWICE_IN_STREAM, queue, identity, {"delivered": books.line}, allowed=why)

    def _in_its_place(self, queue: str, offset: int, identity: Identity) -> None:
        """What was not confirmed need not have stayed where it was read."""
        books, other = self._books, self._at.setdefault((queue, offset), identity)
        if other == identity:
            return
        self._at[queue, offset] = identity
        published = books.published[other.publisher]
        if published.outcome[other.number] == Outcome.CONFIRMED:
            before = {"confirmed what was there before": published.told_line[other.number]}
            books.add(What.OFFSET, queue, identity, {**before, "delivered": books.line})
