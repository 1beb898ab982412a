"""How long confirms and first deliveries took, by the times in the rows of a sequence.

A confirm is timed from the publish to the `basic.ack` or `basic.nack` that settles it. A first delivery is timed from
the publish to the first `basic.deliver` of that content which is not marked as redelivered; content that is published
again meanwhile is left out, as nobody can say which of the two came.
Times are rounded to three digits and counted, so that a long sequence needs no more memory than a short one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import floor, log10
from typing import Any

from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.drivers.application import is_of_application

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
        if method in _LOOKED_AT and not is_of_application(row["connection"]):
            key = _content(row.get("body") or row.get("body_base64") or row.get("body_sha256"), row.get("properties"))
            is_sent = row["direction"] == "sent"
            self._take(method, is_sent, (row["connection"], row["channel"]), row["time"], row["arguments"], key)

    def events(self, events: Iterable[TraceEvent]) -> None:
        """Take the frames of some rows."""
        for event in events:
            name = event.name
            # what a client settles is most of what is left out
            if name in _LOOKED_AT and not ((event.sent and name in _CONFIRMS) or is_of_application(event.connection)):
                content = event.content
                key = None if content is None else _content(content.body, content.properties)
                channel = event.connection, event.channel
                self._take(name, event.sent, channel, event.time, event.arguments, key)

    def _take(
        self, method: str, is_sent: bool, channel: _Channel, time: float, arguments: Mapping[str, Any], key: object
    ) -> None:
        if method == "basic.publish":
            self._published(channel, time, key)
        elif method == "basic.deliver":
            if key is not None and not arguments.get("redelivered"):
                began = self._undelivered.get(key)
                if began is not None:
                    del self._undelivered[key]
                    self._note(FIRST_DELIVERY, time - began)
        elif method in _CONFIRMS:
            if not is_sent:
                self._settled(channel, time, arguments)
        elif method == "confirm.select-ok":
            self._next.setdefault(channel, 1)
        else:
            self._forget(*channel)

    def _published(self, channel: _Channel, time: float, key: object) -> None:
        number = self._next.get(channel)
        if number is not None:
            self._next[channel] = number + 1
            self._unsettled[channel][number] = time
        if key is not None:
            if len(self._undelivered) >= MOST_OPEN:
                del self._undelivered[next(iter(self._undelivered))]
            self._undelivered[key] = None if key in self._undelivered else time

    def _settled(self, channel: _Channel, time: float, arguments: Mapping[str, Any]) -> None:
        waiting = self._unsettled.get(channel)
        if not waiting:
            return
        tag = arguments.get("delivery_tag", 0)
        tags = [tag]
        if arguments.get("multiple"):
            tags = [number for number in waiting if number <= tag] if tag else list(waiting)
        for number in tags:
            began = waiting.pop(number, None)
            if began is not None:
                self._note(CONFIRM, time - began)

    def _forget(self, connection: str, channel: int) -> None:
        """Numbers begin again with 1 when a channel is opened again."""
        for each in [each for each in self._next if each[0] == connection and channel in (0, each[1])]:
            del self._next[each]
            self._unsettled.pop(each, None)

    def _note(self, what: str, seconds: float) -> None:
        self.found[what][_rounded(seconds)] += 1


_ENDS = frozenset(
    {"channel.close", "channel.close-ok", "connection.close", "connection.close-ok", "socket.closed", "socket.abort"}
)


_CONFIRMS = frozenset({"basic.ack", "basic.nack"})
_LOOKED_AT = _ENDS | {"basic.publish", "basic.deliver", "basic.ack", "basic.nack", "confirm.select-ok"}


def _content(body: object, properties: Mapping[str, Any] | None) -> object:
    """What tells a message from others; None: nothing does."""
    identity = properties.get("message_id") if properties else None
    return (body, identity) if body or identity else None


def _rounded(seconds: float) -> float:
    if seconds <= 0:
        return 0.0
    return round(seconds, 2 - floor(log10(seconds)))
