"""In which order the messages of one publisher's channel come to one consumer of a soak, for the first time."""

from __future__ import annotations

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount
from amqpspec.conformance.soak.columns import Copies
from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity


class DeliveryOrder:
    def __init__(self, books: Books) -> None:
        self._books = books
        #: publisher and consuming channel and tag: the number that came last without the flag
        self._last: dict[tuple[str, int, str], int] = {}

    def came(self, copies: Copies, identity: Identity, channel: ChannelAccount, tag: str) -> None:
        """A message came for the first time."""
        key = (copies.published.name, channel.number, tag or copies.queue)
        last = self._last.get(key, -1)
        if last < identity.number:
            self._last[key] = identity.number
        elif last > identity.number:
            published = copies.published
            if published.channel_of(last) == published.channel_of(identity.number):
                lines = {"later": copies.line[last], "delivered": self._books.line}
                self._books.add(What.MISORDERED, copies.queue, identity, lines)
