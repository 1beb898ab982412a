"""The account of what clients take from queues in a soak: who holds which message, and settles it."""

from __future__ import annotations

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount, up_to
from amqpspec.conformance.soak.columns import Copies, Fate
from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity, identity_of, is_marker, is_unchanged
from amqpspec.conformance.soak.queue_deliveries import QueueDeliveries
from amqpspec.conformance.soak.stream_reading import StreamReading
from amqpspec.conformance.traces.trace_row import TraceRow


class Taking:
    """What a delivery says is judged by `QueueDeliveries`, of streams by `StreamReading`."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._deliveries, self._reading = QueueDeliveries(books), StreamReading(books)

    # ------------------------------------------------------------------------------------------ what clients send

    def limit(self, row: TraceRow, channel: ChannelAccount) -> None:
        channel.limit = row["arguments"].get("prefetch_count", 0)

    def consume(self, row: TraceRow, channel: ChannelAccount) -> None:
        arguments = row["arguments"]
        queue = str(arguments.get("queue", ""))
        tag = str(arguments.get("consumer_tag", ""))
        channel.consumers[tag] = channel.consumers_left[tag] = queue
        channel.sources.add(queue)

    def get(self, row: TraceRow, channel: ChannelAccount) -> None:
        queue = str(row["arguments"].get("queue", ""))
        channel.gets.append((queue, self._books.time))
        channel.sources.add(queue)

    def settle(self, row: TraceRow, channel: ChannelAccount) -> None:
        books, arguments = self._books, row["arguments"]
        tag, held = arguments.get("delivery_tag", 0), channel.held
        is_back = row["method"] != "basic.ack" and bool(arguments.get("requeue"))
        for each in up_to(held, tag, bool(arguments.get("multiple")), all_if_zero=True):
            copies, number = held.pop(each)
            if is_back:
                self._back(copies, number, channel)
                continue
            copies.happened(number, Fate.SETTLED, books.time, books.line, channel.number)
            copies.count(copies.settled, number)
            books.counts(copies.queue).settled += 1
            books.tally.second(books.time, "settled")

    def _back(self, copies: Copies, number: int, channel: ChannelAccount) -> None:
        if copies.fate[number] == Fate.HELD and copies.channel[number] == channel.number:
            copies.happened(number, Fate.BACK, self._books.time, self._books.line, channel.number)
        copies.count(copies.returns, number)

    def close(self, row: TraceRow, channel: ChannelAccount) -> None:
        self.closing(channel)

    def closing(self, channel: ChannelAccount) -> None:
        """Its client has asked to close it: what it holds is free from now on."""
        books = self._books
        self._deliveries.left_by(channel)
        channel.is_closing = True
        books.closings.setdefault(channel.number, books.line)
        for copies, number in channel.held.values():
            self._back(copies, number, channel)
        channel.held.clear()

    def over(self, channel: ChannelAccount) -> None:
        """The channel has ended."""
        self._deliveries.left_by(channel)
        for copies, number in channel.held.values():
            self._back(copies, number, channel)

    # ------------------------------------------------------------------------------------------ what a broker sends

    def delivered(self, row: TraceRow, channel: ChannelAccount) -> None:
        tag = str(row["arguments"].get("consumer_tag", ""))
        queue = channel.consumers.get(tag)
        if queue is not None:
            self._came(row, channel, queue, tag)

    def got(self, row: TraceRow, channel: ChannelAccount) -> None:
        if channel.gets:
            self._came(row, channel, channel.gets.popleft()[0], "")

    def cancelled(self, row: TraceRow, channel: ChannelAccount) -> None:
        channel.consumers_left.pop(str(row["arguments"].get("consumer_tag", "")), None)

    def got_none(self, row: TraceRow, channel: ChannelAccount) -> None:
        if channel.gets:
            queue, asked = channel.gets.popleft()
            self._books.emptied[queue] = asked

    def _came(self, row: TraceRow, channel: ChannelAccount, queue: str, tag: str) -> None:
        books, arguments, body = self._books, row["arguments"], row.get("body", "")
        identity = identity_of(body)
        published = books.message(identity)
        if identity is None or published is None:
            books.add(What.UNPUBLISHED, queue, identity or Identity(body[:40], -1), {"delivered": books.line})
            return
        number = identity.number
        copies = books.copies.get((published.name, queue))
        if copies is None:
            books.add(What.MISROUTED, queue, identity, {"delivered": books.line})
            return
        properties = row.get("properties", {})
        exchange, key = arguments.get("exchange", ""), arguments.get("routing_key", "")
        if not is_unchanged(body, identity, exchange, key, properties.get("message_id")):
            books.add(What.CHANGED, queue, identity, {"delivered": books.line})
        books.tally.second(books.time, "redelivered" if arguments.get("redelivered") else "delivered")
        if books.is_stream(queue):
            self._reading.read(copies, identity, channel, tag, properties)
            if is_marker(identity):
                books.emptied[queue] = published.sent[number]
        else:
            books.emptied.pop(queue, None)
            self._deliveries.taken(row, copies, identity, channel, tag)
        if not channel.is_closing:
            channel.held[arguments.get("delivery_tag", 0)] = copies, number
            copies.happened(number, Fate.HELD, books.time, books.line, channel.number)
        elif copies.fate[number] == Fate.NEVER_SEEN:
            copies.happened(number, Fate.BACK, books.time, books.line, channel.number)
