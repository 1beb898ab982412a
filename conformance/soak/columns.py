"""What is remembered of each message of a soak, in columns: millions of them fit into memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from enum import IntEnum


class Outcome(IntEnum):
    """Of a publish."""

    WAITING = 0
    CONFIRMED = 1
    REFUSED = 2
    RETURNED = 3
    #: its channel ended before the confirm came
    UNKNOWN = 4
    #: a number that was never sent, as the connection was over
    UNSENT = 5


class Fate(IntEnum):
    """Of a message in a queue."""

    NEVER_SEEN = 0
    #: a client holds it
    HELD = 1
    #: it was given back, or its holder is gone
    BACK = 2
    SETTLED = 3


class Published:
    """The messages of one publisher, by number. `queues`: those that they go to."""

    def __init__(self, name: str, queues: tuple[str, ...], is_transient: bool) -> None:
        self.name, self.queues, self.is_transient = name, queues, is_transient
        self.sent = array("d")
        self.sent_line = array("q")
        self.outcome = bytearray()
        self.told = array("d")
        self.told_line = array("q")
        #: the numbers with which its channels began
        self._channels: list[int] = []

    def __len__(self) -> int:
        return len(self.sent)

    def add(self, number: int, time: float, line: int, is_first: bool) -> None:
        """That one was published, as the first of a channel or not."""
        missing = number + 1 - len(self.sent)
        if missing > 0:
            self.sent.extend([-1.0] * missing)
            self.sent_line.extend([0] * missing)
            self.outcome.extend(bytes([Outcome.UNSENT]) * missing)
            self.told.extend([-1.0] * missing)
            self.told_line.extend([0] * missing)
        if is_first:
            self._channels.append(number)
        self.sent[number], self.sent_line[number], self.outcome[number] = time, line, Outcome.WAITING

    def resolve(self, number: int, outcome: Outcome, time: float, line: int) -> None:
        self.outcome[number] = outcome
        self.told[number] = time
        self.told_line[number] = line

    def channel_of(self, number: int) -> int:
        """Which of its channels that was published on."""
        return bisect_right(self._channels, number)


class Copies:
    """The same messages in one queue."""

    def __init__(self, published: Published, queue: str) -> None:
        self.published, self.queue = published, queue
        self.fate = bytearray()
        #: deliveries without the flag, and all, up to 255
        self.fresh = bytearray()
        self.deliveries = bytearray()
        #: times that it came back, and was settled, up to 255
        self.returns = bytearray()
        self.settled = bytearray()
        #: the last thing that happened to it
        self.time = array("d")
        self.line = array("q")
        #: the number of the channel that has it, or has settled it
        self.channel = array("i")
        #: of a stream: its offset, -1 where nobody has read it, and when it was read last
        self.offset = array("q")
        self.read = array("d")

    def reach(self, number: int) -> None:
        """Make room for that message."""
        missing = number + 1 - len(self.fate)
        if missing > 0:
            for column in (self.fate, self.fresh, self.deliveries, self.returns, self.settled):
                column.extend(bytes(missing))
            self.time.extend([-1.0] * missing)
            self.line.extend([0] * missing)
            self.channel.extend([-1] * missing)
            self.offset.extend([-1] * missing)
            self.read.extend([-1.0] * missing)

    def happened(self, number: int, fate: Fate, time: float, line: int, channel: int) -> None:
        self.fate[number] = fate
        self.time[number] = time
        self.line[number] = line
        self.channel[number] = channel

    def count(self, column: bytearray, number: int) -> int:
        """One more; gives how many there are."""
        column[number] = min(column[number] + 1, 255)
        return column[number]
