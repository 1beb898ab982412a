"""How many consumers a queue is said to have, and how many it can have: those that began, and did not end in order.

Who is lost with its connection may be there for a while; but not over a restart of the whole broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount
from amqpspec.conformance.soak.findings import What
from amqpspec.conformance.soak.message import Identity


class ConsumersCounted:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._lost: Counter[str] = Counter()
        #: by queue: what was told last, how many there can have been, and the line
        self._told: dict[str, tuple[int, int, int]] = {}

    def told(self, queue: str, count: int, channels: Iterable[ChannelAccount]) -> None:
        """A queue.declare-ok came; these channels are not over."""
        most = self._lost[queue] + sum(list(each.consumers_left.values()).count(queue) for each in channels)
        self._told[queue] = count, most, self._books.line

    def over(self, channel: ChannelAccount, *, in_order: bool) -> None:
        """The channel has ended."""
        if not in_order:
            self._lost.update(channel.consumers_left.values())

    def restarted(self) -> None:
        """The whole broker was."""
        self._lost.clear()

    def end(self) -> None:
        """Who asks does so again where a consumer may just be leaving: the last answer counts. Not in clusters, where
        the end of a client at another node takes its time.
        """
        for queue, (count, most, line) in self._told.items():
            if count > most and not self._books.windows.are_of_nodes:
                self._books.add(What.CONSUMERS, queue, Identity("consumer", count), {"told": line})
