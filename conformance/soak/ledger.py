"""The account of every message of a soak, across all connections: made of the rows of its trace, and of nothing else.

What the account says is wrong (`findings.What`) is what no broker may do whatever befalls it, and what it may do only
near a fault, where there was none (`windows.py`). A settlement counts from the moment on at which it was sent. What
comes on one connection may be received after what the broker sent later on another one: so a delivery on a channel that
its client is closing is counted, and not held against anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amqpspec.conformance.soak.channel_account import ChannelAccount
from amqpspec.conformance.soak.columns import Copies, Fate, Outcome, Published
from amqpspec.conformance.soak.findings import Finding, Findings, What
from amqpspec.conformance.soak.message import Identity, identity_of, is_marker, is_unchanged
from amqpspec.conformance.soak.plan import TRANSIENT
from amqpspec.conformance.soak.tally import Tally
from amqpspec.conformance.soak.topology import Topology
from amqpspec.conformance.soak.windows import BEFORE, Windows
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import FAULTS, OPERATOR

NO_FAULT, CLIENT = "none", "client"
#: Seconds that a broker may take to confirm.
PATIENCE = 10.0
#: Seconds after the end of a connection in which its broker may still hand out messages to it.
_NOTICED = 5.0


class Ledger:
    """`patience`: seconds after which a confirm is missing."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.findings = Findings()
        self.tally = Tally()
        self.windows = Windows()
        self.topology = Topology()
        self.published: dict[str, Published] = {}
        self.copies: dict[tuple[str, str], Copies] = {}
        #: queues that were found empty, by a request of that time, since when nothing came of them; streams that were
        #: read up to what was published then
        self.emptied: dict[str, float] = {}
        self.time = 0.0
        self._patience = patience
        self._latest = NO_FAULT
        self._channels: dict[str, dict[int, ChannelAccount]] = {}
        #: of each channel by its number: the line where its client asked to close it
        self._closings: dict[int, int] = {}
        #: of each, once it is over: when, whether in order, and the line
        self._ended: dict[int, tuple[float, bool, int]] = {}
        self._numbers = 0
        #: queue: when a consumer of it was last lost, or gone
        self._left: dict[str, float] = {}
        #: publisher and consuming channel and tag: the number that came last without the flag
        self._order: dict[tuple[str, int, str], int] = {}
        #: in quorum queues: the count that a message came with last
        self._counts: dict[tuple[str, str, int], int] = {}
        #: reader of a stream: the offset that came last
        self._offsets: dict[tuple[int, str], int] = {}
        self._line = 0

    # ------------------------------------------------------------------------------------------ rows

    def row(self, row: TraceRow, line: int) -> None:
        """Take a row; `line` is its number in the trace."""
        if row["kind"] != "frame":
            return
        self._line, self.time = line, row["time"]
        connection, name = row["connection"], row["method"]
        if connection == OPERATOR:
            if name in FAULTS:
                self._fault(name, row["arguments"])
            return
        number = row["channel"]
        if not number:
            self._on_connection(row["sequence"], name, row["direction"] == "sent")
            return
        channels = self._channels.setdefault(row["sequence"], {})
        channel = channels.get(number)
        if channel is None or name == "channel.open":
            self._numbers += 1
            channel = channels[number] = ChannelAccount(self._numbers)
        handler = _HANDLERS.get((name, row["direction"]))
        if handler is not None:
            handler(self, row, channel)
        elif name == "channel.close-ok":
            self._end(channels.pop(number), in_order=row["direction"] == "received" and channel.is_closing)

    def _fault(self, name: str, arguments: dict[str, Any]) -> None:
        known = len(self.windows.all)
        self.windows.take(name, arguments, self.time, self._line)
        if len(self.windows.all) > known:
            self._latest = self.windows.all[-1].kind.value
            self.tally.of_fault(self._latest).times += 1

    def _on_connection(self, sequence: str, name: str, is_sent: bool) -> None:
        in_order = name == "connection.close-ok" and not is_sent
        if name == "socket.abort" and self._channels.get(sequence) and not self.windows.touch(self.time, self.time):
            self._latest = CLIENT
            self.tally.of_fault(CLIENT).times += 1
        if in_order or name in ("connection.close", "socket.closed", "socket.abort", "socket.garbage"):
            if name == "connection.close" and is_sent:
                for channel in self._channels.get(sequence, {}).values():
                    self._close(channel)
                return
            channels = self._channels.pop(sequence, {})
            if channels and not in_order:
                self.tally.of_fault(self._latest).connections_lost += 1
            for channel in channels.values():
                self._end(channel, in_order=in_order)

    def _end(self, channel: ChannelAccount, *, in_order: bool) -> None:
        time = self.time
        self._ended[channel.number] = (time, in_order, self._line)
        for copies, number in channel.held.values():
            self._back(copies, number, channel)
        for queue in channel.sources:
            self._left[queue] = time
        for published, number in channel.unconfirmed.values():
            self._unknown(published, number)

    def _unknown(self, published: Published, number: int) -> None:
        sent = published.sent[number]
        published.resolve(number, Outcome.UNKNOWN, self.time, self._line)
        for queue in published.queues:
            self.tally.of_type(self.topology.type_of(queue)).unknown += 1
        self.tally.of_fault(self._latest).unknown += 1
        if self.time - sent >= self._patience and not self.windows.touch(sent, self.time):
            for queue in published.queues[:1]:
                self._add(What.UNCONFIRMED, queue, Identity(published.name, number), {"waited until": self._line})

    # ------------------------------------------------------------------------------------------ what clients send

    def _declare(self, row: TraceRow, channel: ChannelAccount) -> None:
        self.topology.take(row["method"], row["arguments"])

    def _select(self, row: TraceRow, channel: ChannelAccount) -> None:
        channel.confirms = True

    def _publish(self, row: TraceRow, channel: ChannelAccount) -> None:
        identity = identity_of(row.get("body", ""))
        arguments = row["arguments"]
        if identity is None:
            return
        name, number = identity
        published = self.published.get(name)
        if published is None:
            queues = self.topology.queues_of(arguments.get("exchange", ""), arguments.get("routing_key", ""))
            is_transient = row.get("properties", {}).get("delivery_mode") == TRANSIENT
            published = self.published[name] = Published(name, queues, is_transient)
            for queue in queues:
                self.copies[name, queue] = Copies(published, queue)
        is_first = channel.publisher != name
        channel.publisher = name
        published.add(number, self.time, self._line, is_first)
        for queue in published.queues:
            self.copies[name, queue].reach(number)
            self.tally.of_type(self.topology.type_of(queue)).sent += 1
        if channel.confirms:
            channel.tag += 1
            channel.unconfirmed[channel.tag] = published, number
        self.tally.second(self.time, "sent")

    def _consume(self, row: TraceRow, channel: ChannelAccount) -> None:
        arguments = row["arguments"]
        queue = str(arguments.get("queue", ""))
        channel.consumers[str(arguments.get("consumer_tag", ""))] = queue
        channel.sources.add(queue)

    def _get(self, row: TraceRow, channel: ChannelAccount) -> None:
        queue = str(row["arguments"].get("queue", ""))
        channel.gets.append((queue, self.time))
        channel.sources.add(queue)

    def _settle(self, row: TraceRow, channel: ChannelAccount) -> None:
        arguments = row["arguments"]
        tag = arguments.get("delivery_tag", 0)
        is_back = row["method"] != "basic.ack" and bool(arguments.get("requeue"))
        held = channel.held
        if arguments.get("multiple"):
            tags = []
            for each in held:
                if each > tag and tag:
                    break
                tags.append(each)
        else:
            tags = [tag] if tag in held else []
        for each in tags:
            copies, number = held.pop(each)
            if is_back:
                self._back(copies, number, channel)
                continue
            copies.happened(number, Fate.SETTLED, self.time, self._line, channel.number)
            counts = self.tally.of_type(self.topology.type_of(copies.queue))
            counts.settled += 1
            self.tally.second(self.time, "settled")

    def _back(self, copies: Copies, number: int, channel: ChannelAccount) -> None:
        if copies.fate[number] == Fate.HELD and copies.channel[number] == channel.number:
            copies.happened(number, Fate.BACK, self.time, self._line, channel.number)
        copies.count(copies.returns, number)

    def _closing(self, row: TraceRow, channel: ChannelAccount) -> None:
        self._close(channel)

    def _close(self, channel: ChannelAccount) -> None:
        """Its client has asked to close it: what it holds is free from now on."""
        channel.is_closing = True
        self._closings.setdefault(channel.number, self._line)
        for copies, number in channel.held.values():
            self._back(copies, number, channel)
        channel.held.clear()
        for queue in channel.sources:
            self._left[queue] = self.time

    # ------------------------------------------------------------------------------------------ what a broker sends

    def _closed(self, row: TraceRow, channel: ChannelAccount) -> None:
        self._channels[row["sequence"]].pop(row["channel"], None)
        self._end(channel, in_order=False)

    def _confirmed(self, row: TraceRow, channel: ChannelAccount) -> None:
        arguments = row["arguments"]
        tag = arguments.get("delivery_tag", 0)
        unconfirmed = channel.unconfirmed
        if arguments.get("multiple"):
            tags = []
            for each in unconfirmed:
                if each > tag:
                    break
                tags.append(each)
        else:
            tags = [tag] if tag in unconfirmed else []
        is_ack = row["method"] == "basic.ack"
        for each in tags:
            published, number = unconfirmed.pop(each)
            is_returned = published.outcome[number] == Outcome.RETURNED
            outcome = Outcome.CONFIRMED if is_ack else Outcome.REFUSED
            published.resolve(number, Outcome.RETURNED if is_returned else outcome, self.time, self._line)
            is_taken = is_ack and not is_returned
            for queue in published.queues:
                counts = self.tally.of_type(self.topology.type_of(queue))
                if is_taken:
                    counts.confirmed += 1
                else:
                    counts.refused += 1
            self.tally.second(self.time, "confirmed" if is_taken else "refused")

    def _returned(self, row: TraceRow, channel: ChannelAccount) -> None:
        identity = identity_of(row.get("body", ""))
        published = self.published.get(identity.publisher) if identity is not None else None
        if identity is None or published is None or identity.number >= len(published.sent):
            return
        published.resolve(identity.number, Outcome.RETURNED, self.time, self._line)
        if published.queues:
            why = "near a fault" if self.windows.touch(published.sent[identity.number], self.time) else ""
            self._add(What.RETURNED, published.queues[0], identity, {"returned": self._line}, allowed=why)

    def _delivered(self, row: TraceRow, channel: ChannelAccount) -> None:
        tag = str(row["arguments"].get("consumer_tag", ""))
        queue = channel.consumers.get(tag)
        if queue is not None:
            self._came(row, channel, queue, tag)

    def _got(self, row: TraceRow, channel: ChannelAccount) -> None:
        if channel.gets:
            self._came(row, channel, channel.gets.popleft()[0], "")

    def _got_none(self, row: TraceRow, channel: ChannelAccount) -> None:
        if channel.gets:
            queue, asked = channel.gets.popleft()
            self.emptied[queue] = asked

    def _came(self, row: TraceRow, channel: ChannelAccount, queue: str, tag: str) -> None:
        arguments, body = row["arguments"], row.get("body", "")
        identity = identity_of(body)
        published = self.published.get(identity.publisher) if identity is not None else None
        if identity is None or published is None or identity.number >= len(published.sent):
            self._add(What.UNPUBLISHED, queue, identity or Identity(body[:40], -1), {"delivered": self._line})
            return
        number = identity.number
        copies = self.copies.get((published.name, queue))
        if copies is None:
            self._add(What.MISROUTED, queue, identity, {"delivered": self._line})
            return
        properties = row.get("properties", {})
        exchange, key = arguments.get("exchange", ""), arguments.get("routing_key", "")
        if not is_unchanged(body, identity, exchange, key, properties.get("message_id")):
            self._add(What.CHANGED, queue, identity, {"delivered": self._line})
        self.tally.second(self.time, "redelivered" if arguments.get("redelivered") else "delivered")
        if self.topology.type_of(queue) == QueueType.STREAM.value:
            self._read(copies, identity, channel, tag, properties)
            if is_marker(identity):
                self.emptied[queue] = published.sent[number]
        else:
            self.emptied.pop(queue, None)
            self._taken(row, copies, identity, channel, tag)
        if not channel.is_closing:
            channel.held[arguments.get("delivery_tag", 0)] = copies, number
            copies.happened(number, Fate.HELD, self.time, self._line, channel.number)
        elif copies.fate[number] == Fate.NEVER_SEEN:
            copies.happened(number, Fate.BACK, self.time, self._line, channel.number)

    # ------------------------------------------------------------------------------------------ judging a delivery

    def _taken(
        self, row: TraceRow, copies: Copies, identity: Identity, channel: ChannelAccount, tag: str
    ) -> None:
        """From a queue, where a message is for one client at a time."""
        number, published, queue = identity.number, copies.published, copies.queue
        is_again = bool(row["arguments"].get("redelivered"))
        counts = self.tally.of_type(self.topology.type_of(queue))
        fate = copies.fate[number]
        total = copies.count(copies.deliveries, number)
        if total > 1 or is_again:
            counts.redelivered += 1
            self.tally.of_fault(self._latest).redelivered += 1
        else:
            counts.delivered += 1
        if total == 1 and published.outcome[number] == Outcome.UNKNOWN:
            counts.unknown_delivered += 1
        if fate == Fate.SETTLED and not channel.is_closing:
            self._settled_again(copies, identity)
        elif fate == Fate.HELD and not channel.is_closing:
            self._held_elsewhere(copies, identity)
        if not is_again:
            if copies.count(copies.fresh, number) > 1:
                counts.duplicates += 1
                self.tally.of_fault(self._latest).duplicates += 1
                self._add(What.UNFLAGGED, queue, identity, {"before": copies.line[number], "delivered": self._line})
            self._in_order(copies, identity, channel, tag)
        elif total == 1 and not self._may_have_been_out(queue, published.sent[number]):
            self._add(What.FLAGGED, queue, identity, {"delivered": self._line})
        if published.outcome[number] == Outcome.REFUSED:
            near = self.windows.touch(published.sent[number], published.told[number])
            self._add(What.REFUSED, queue, identity, {"delivered": self._line}, allowed="near a fault" if near else "")
        is_classic = self.topology.type_of(queue) == QueueType.CLASSIC.value
        if is_classic and published.is_transient and self.windows.went_down_after(published.sent[number]):
            self._add(What.OUTLIVED, queue, identity, {"delivered": self._line})
        if not channel.is_closing:
            self._counted(row, copies, identity)

    def _settled_again(self, copies: Copies, identity: Identity) -> None:
        number = identity.number
        settled, line = copies.time[number], copies.line[number]
        self.tally.of_type(self.topology.type_of(copies.queue)).settlements_lost += 1
        self.tally.of_fault(self._latest).settlements_lost += 1
        ended = self._ended.get(copies.channel[number])
        why = ""
        if self.windows.touch(settled, settled):
            why = "settled near a fault"
        elif ended is not None and not ended[1] and ended[0] - settled < BEFORE:
            why = "settled shortly before its connection was lost"
        lines = {"settled": line, "delivered": self._line}
        if copies.channel[number] in self._closings:
            lines["channel closed by its client"] = self._closings[copies.channel[number]]
        if ended is not None:
            lines["channel ended in order" if ended[1] else "channel ended"] = ended[2]
        self._add(What.SETTLED, copies.queue, identity, lines, allowed=why)

    def _held_elsewhere(self, copies: Copies, identity: Identity) -> None:
        since = copies.time[identity.number]
        why = "near a fault" if self.windows.touch(since, self.time) else ""
        lines = {"held since": copies.line[identity.number], "delivered": self._line}
        self._add(What.HELD, copies.queue, identity, lines, allowed=why)

    def _in_order(self, copies: Copies, identity: Identity, channel: ChannelAccount, tag: str) -> None:
        key = (copies.published.name, channel.number, tag or copies.queue)
        last = self._order.get(key, -1)
        if last < identity.number:
            self._order[key] = identity.number
        elif last > identity.number:
            published = copies.published
            if published.channel_of(last) == published.channel_of(identity.number):
                later = copies.line[last]
                self._add(What.MISORDERED, copies.queue, identity, {"later": later, "delivered": self._line})

    def _may_have_been_out(self, queue: str, published: float) -> bool:
        """May somebody have been handed it before, whose connection was lost then?"""
        return self._left.get(queue, -_NOTICED) + _NOTICED >= published or self.windows.touch(published, self.time)

    def _counted(self, row: TraceRow, copies: Copies, identity: Identity) -> None:
        count = (row.get("properties", {}).get("headers") or {}).get("x-delivery-count")
        if not isinstance(count, int):
            return
        key = (copies.queue, *identity)
        before = self._counts.get(key, 0)
        ended = self._ended.get(copies.channel[identity.number])
        # that a holder's channel was lost counts in any case
        was_lost = ended is not None and not ended[1] and ended[2] == copies.line[identity.number]
        if count < before + was_lost:
            lines = {"before": copies.line[identity.number], "delivered": self._line}
            self._add(What.COUNT, copies.queue, identity, lines)
        self._counts[key] = count

    def _read(
        self, copies: Copies, identity: Identity, channel: ChannelAccount, tag: str, properties: dict[str, Any]
    ) -> None:
        """From a stream, which each reader reads by itself."""
        number, queue = identity.number, copies.queue
        counts = self.tally.of_type(self.topology.type_of(queue))
        counts.delivered += 1
        copies.read[number] = self.time
        if copies.count(copies.deliveries, number) == 1 and copies.published.outcome[number] == Outcome.UNKNOWN:
            counts.unknown_delivered += 1
        offset = (properties.get("headers") or {}).get("x-stream-offset")
        if not isinstance(offset, int):
            return
        key = (channel.number, tag)
        before = self._offsets.get(key)
        if before is not None and offset != before + 1:
            self._add(What.GAP, queue, identity, {"delivered": self._line})
        self._offsets[key] = offset
        known = copies.offset[number]
        if known < 0:
            copies.offset[number] = offset
            self._in_order(copies, identity, channel, tag)
        elif known != offset and (queue, *identity) not in self._counts:
            self._counts[(queue, *identity)] = 0
            counts.duplicates += 1
            self.tally.of_fault(self._latest).duplicates += 1
            published = copies.published
            near = self.windows.touch(published.sent[number], max(published.told[number], published.sent[number]))
            why = "published near a fault" if near else ""
            self._add(What.TWICE_IN_STREAM, queue, identity, {"delivered": self._line}, allowed=why)

    # ------------------------------------------------------------------------------------------ the end

    def end(self) -> None:
        """Nothing more was recorded."""
        for channels in self._channels.values():
            for channel in channels.values():
                self._end(channel, in_order=False)
        self._channels.clear()
        for (_, queue), copies in self.copies.items():
            if queue in self.emptied:
                self._balance(copies)

    def undecided(self) -> dict[str, str]:
        """Queues of which it is not known what was left in them."""
        return {
            queue: "nobody found it empty at the end"
            for queue in self.topology.types
            if queue not in self.emptied and any(name == queue for _, name in self.copies)
        }

    def _balance(self, copies: Copies) -> None:
        published, queue = copies.published, copies.queue
        type = self.topology.type_of(queue)
        is_stream = type == QueueType.STREAM.value
        for number, outcome in enumerate(published.outcome):
            if outcome != Outcome.CONFIRMED:
                continue
            told, until = published.told[number], self.emptied[queue]
            # a stream was read from its beginning then, whoever had read it before
            if copies.read[number] >= until if is_stream else copies.fate[number] == Fate.SETTLED:
                continue
            if told > until or (copies.time[number] > until and not is_stream):
                continue  # it may have come, or have come back, since
            died = self.windows.came_back_after(published.sent[number])
            why = ""
            if published.is_transient and type == QueueType.CLASSIC.value and died:
                why = "transient, and its broker went down"
            elif copies.returns[number] >= self.topology.delivery_limit:
                why = "came back so often that it may be given up"
            counts = self.tally.of_type(type)
            window = self.windows.to_blame(published.sent[number], max(told, copies.time[number]))
            of_fault = self.tally.of_fault(window.kind.value if window is not None else self._latest)
            if why:
                counts.lost_allowed += 1
                of_fault.lost_allowed += 1
            else:
                counts.lost += 1
                of_fault.lost += 1
            lines = {"last seen": copies.line[number]} if copies.line[number] else {}
            what = What.LOST_IN_RESTART if died else What.LOST
            fault = window.name if window is not None else ""
            self._add(what, queue, Identity(published.name, number), lines, allowed=why, fault=fault)

    def _add(
        self,
        what: What,
        queue: str,
        identity: Identity,
        lines: Mapping[str, int],
        *,
        allowed: str = "",
        fault: str = "",
    ) -> None:
        found = dict(lines)
        published, number = self.published.get(identity.publisher), identity.number
        if published is not None and 0 <= number < len(published.sent) and published.sent_line[number]:
            found["published"] = published.sent_line[number]
            if published.told_line[number]:
                found[Outcome(published.outcome[number]).name.lower()] = published.told_line[number]
        window = self.windows.last_before(self.time)
        fault = fault or (window.name if window is not None else "")
        name = f"{identity.publisher}-{number}"
        in_order = dict(sorted(found.items(), key=lambda item: item[1]))
        sent = -1.0
        if published is not None and 0 <= number < len(published.sent):
            sent = published.sent[number]
        self.findings.add(Finding(what, queue, name, self.time, in_order, fault, allowed, published=sent))


Handler = Callable[[Ledger, TraceRow, ChannelAccount], None]
_HANDLERS: dict[tuple[str, str], Handler] = {
    ("queue.declare", "sent"): Ledger._declare,
    ("exchange.declare", "sent"): Ledger._declare,
    ("queue.bind", "sent"): Ledger._declare,
    ("confirm.select", "sent"): Ledger._select,
    ("basic.publish", "sent"): Ledger._publish,
    ("basic.consume", "sent"): Ledger._consume,
    ("basic.get", "sent"): Ledger._get,
    ("basic.ack", "sent"): Ledger._settle,
    ("basic.nack", "sent"): Ledger._settle,
    ("basic.reject", "sent"): Ledger._settle,
    ("channel.close", "sent"): Ledger._closing,
    ("channel.close", "received"): Ledger._closed,
    ("basic.ack", "received"): Ledger._confirmed,
    ("basic.nack", "received"): Ledger._confirmed,
    ("basic.return", "received"): Ledger._returned,
    ("basic.deliver", "received"): Ledger._delivered,
    ("basic.get-ok", "received"): Ledger._got,
    ("basic.get-empty", "received"): Ledger._got_none,
}
