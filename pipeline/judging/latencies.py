"""How long confirms and first deliveries took, by the times in the rows of a sequence.

A confirm is timed from the publish to the `basic.ack` or `basic.nack` that settles it. A first delivery is timed from
the publish to the first `basic.deliver` of that content which is not marked as redelivered; content that is published
again meanwhile is left out, as nobody can say which of the two came.
Times are rounded to three digits and counted, so that a long sequence needs no more memory than a short one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import floor, log10

from amqpspec.conformance.traces.trace_row import TraceRow

CONFIRM, FIRST_DELIVERY = "confirm", "first delivery"
#: Publishes of a sequence that are waited for at one time; older ones are given up.
MOST_OPEN = 100_000

_Channel = tuple[str, int]


class Latencies:
    """Is shown the rows of one sequence in their order."""

    def __init__(self) -> None:
        #: "confirm" or "first delivery" -> seconds -> how often
        self.found: defaultdict[str, Counter[float]] = defaultdict(Counter)
        #: channels in confirm mode -> (number of the next publish, times of those that are not settled)
        self._next: dict[_Channel, int] = {}
        self._unsettled: defaultdict[_Channel, dict[int, float]] = defaultdict(dict)
        #: content -> time of its publish; None: there is more than one
        self._undelivered: dict[object, float | None] = {}

    def row(self, row: TraceRow) -> None:
        """Take a row of kind "frame"."""
        method = row["method"]
        if method == "basic.publish":
            self._published(row)
        elif method == "basic.deliver":
            self._delivered(row)
        elif method in ("basic.ack", "basic.nack"):
            if row["direction"] == "received":
                self._settled(row)
        elif method == "confirm.select-ok":
            self._next.setdefault((row["connection"], row["channel"]), 1)
        elif method in _ENDS:
            self._forget(row)

    def _published(self, row: TraceRow) -> None:
        channel = row["connection"], row["channel"]
        number = self._next.get(channel)
        if number is not None:
            self._next[channel] = number + 1
            self._unsettled[channel][number] = row["time"]
        key = _content(row)
        if key is not None:
            if len(self._undelivered) >= MOST_OPEN:
                del self._undelivered[next(iter(self._undelivered))]
            self._undelivered[key] = None if key in self._undelivered else row["time"]

    def _settled(self, row: TraceRow) -> None:
        waiting = self._unsettled.get((row["connection"], row["channel"]))
        if not waiting:
            return
        tag = row["arguments"].get("delivery_tag", 0)
        tags = [tag]
        if row["arguments"].get("multiple"):
            tags = [number for number in waiting if number <= tag] if tag else list(waiting)
        for number in tags:
            began = waiting.pop(number, None)
            if began is not None:
                self._note(CONFIRM, row["time"] - began)

    def _delivered(self, row: TraceRow) -> None:
        key = _content(row)
        if key is not None and not row["arguments"].get("redelivered"):
            began = self._undelivered.get(key)
            if began is not None:
                del self._undelivered[key]
                self._note(FIRST_DELIVERY, row["time"] - began)

    def _forget(self, row: TraceRow) -> None:
        """Numbers begin again with 1 when a channel is opened again."""
        connection, channel = row["connection"], row["channel"]
        for each in [each for each in self._next if each[0] == connection and channel in (0, each[1])]:
            del self._next[each]
            self._unsettled.pop(each, None)

    def _note(self, what: str, seconds: float) -> None:
        self.found[what][_rounded(seconds)] += 1


_ENDS = frozenset(
    {"channel.close", "channel.close-ok", "connection.close", "connection.close-ok", "socket.closed", "socket.abort"}
)


def _content(row: TraceRow) -> object:
    """What tells a message from others; None: nothing does."""
    body = row.get("body") or row.get("body_base64") or row.get("body_sha256")
    identity = row.get("properties", {}).get("message_id")
    return (body, identity) if body or identity else None


def _rounded(seconds: float) -> float:
    if seconds <= 0:
        return 0.0
    return round(seconds, 2 - floor(log10(seconds)))
