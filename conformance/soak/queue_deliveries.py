"""What a delivery from a queue says in a soak: a message is for one client at a time, and settled once."""

from __future__ import annotations

from amqpspec.conformance.soak.books import Books
from amqpspec.conformance.soak.channel_account import ChannelAccount
from amqpspec.conformance.soak.columns import Copies, Fate, Outcome
from amqpspec.conformance.soak.delivery_order import DeliveryOrder
from amqpspec.conformance.soak.findings import CLOSED, What
from amqpspec.conformance.soak.message import Identity
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.soak.unseen import Unseen
from amqpspec.conformance.soak.windows import BEFORE
from amqpspec.conformance.traces.trace_row import TraceRow


class QueueDeliveries:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._order = DeliveryOrder(books)
        self._unseen = Unseen()
        #: in quorum queues: the count that a message came with last
        self._counts: dict[tuple[str, str, int], int] = {}

    def left_by(self, channel: ChannelAccount) -> None:
        """A channel that takes messages is closed, or lost."""
        self._unseen.left_by(channel, self._books.time)

    def taken(self, row: TraceRow, copies: Copies, identity: Identity, channel: ChannelAccount, tag: str) -> None:
        """A message was delivered."""
        books, number, published, queue = self._books, identity.number, copies.published, copies.queue
        is_again = bool(row["arguments"].get("redelivered"))
        counts, fate = books.counts(queue), copies.fate[number]
        total = copies.count(copies.deliveries, number)
        if total > 1 or is_again:
            counts.redelivered += 1
            books.fault_counts.redelivered += 1
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
                books.fault_counts.duplicates += 1
                books.add(What.UNFLAGGED, queue, identity, {"before": copies.line[number], "delivered": books.line})
            self._order.came(copies, identity, channel, tag)
        elif total == 1:
            self._flagged(queue, identity, published.sent[number])
        if published.outcome[number] == Outcome.REFUSED:
            near = books.windows.touch(published.sent[number], published.told[number])
            books.add(What.REFUSED, queue, identity, {"delivered": books.line}, allowed="near a fault" if near else "")
        home = books.topology.homes.get(queue, 0)
        is_forgotten = published.is_transient and books.is_classic(queue)
        if is_forgotten and books.windows.went_down_after(published.sent[number], home):
            books.add(What.OUTLIVED, queue, identity, {"delivered": books.line})
        if not channel.is_closing:
            self._counted(row, copies, identity, channel.node)

    def _settled_again(self, copies: Copies, identity: Identity) -> None:
        books, number = self._books, identity.number
        settled, line = copies.time[number], copies.line[number]
        books.counts(copies.queue).settlements_lost += 1
        books.fault_counts.settlements_lost += 1
        ended = books.ended.get(copies.channel[number])
        why = ""
        if books.windows.touch(settled, settled):
            why = "settled near a fault"
        elif ended is not None and not ended[1] and ended[0] - settled < BEFORE:
            why = "settled shortly before its connection was lost"
        lines = {"settled": line, "delivered": books.line}
        if copies.channel[number] in books.closings:
            lines[CLOSED] = books.closings[copies.channel[number]]
        if ended is not None:
            lines["channel ended in order" if ended[1] else "channel ended"] = ended[2]
        books.add(What.SETTLED, copies.queue, identity, lines, allowed=why)

    def _held_elsewhere(self, copies: Copies, identity: Identity) -> None:
        books, since = self._books, copies.time[identity.number]
        why = "near a fault" if books.windows.touch(since, books.time) else ""
        lines = {"held since": copies.line[identity.number], "delivered": books.line}
        books.add(What.HELD, copies.queue, identity, lines, allowed=why)

    def _flagged(self, queue: str, identity: Identity, published: float) -> None:
        """It comes for the first time, with the flag. A fault other than a stop of the whole broker excuses that."""
        books = self._books
        faults = list(books.windows.between(published, books.time))
        is_excused = any(fault.kind is not Kind.STOP or fault.node is not None for fault in faults)
        if not is_excused and not self._unseen.may_be(queue, published):
            what = What.FLAGGED_BY_STOP if faults else What.FLAGGED
            books.add(what, queue, identity, {"delivered": books.line})

    def _counted(self, row: TraceRow, copies: Copies, identity: Identity, node: int) -> None:
        """The count is left out while it is 0. Without the flag, that may be a delivery that is read late."""
        books = self._books
        count = (row.get("properties", {}).get("headers") or {}).get("x-delivery-count")
        if count is None and row["arguments"].get("redelivered") and not books.windows.are_of_nodes:
            count = 0
        if not books.is_quorum(copies.queue) or not isinstance(count, int):
            return
        key = (copies.queue, *identity)
        before = self._counts.get(key, 0)
        ended = books.ended.get(copies.channel[identity.number])
        # that a holder's channel was lost counts; but whose node is lost may be there yet, and has not failed (4.3)
        was_lost = ended is not None and not ended[1] and ended[2] == copies.line[identity.number]
        was_lost = was_lost and not (ended and books.windows.touch_node(ended[0]))
        # what a node sent before it was paused is read when it goes on, and others may have had the message since
        is_late = any(window.node == node for window in books.windows.between(books.time, books.time))
        if count < before + was_lost and not is_late:
            since = copies.time[identity.number]
            what = What.COUNT_ANEW if books.windows.came_back_after(since) else What.COUNT
            lines = {"before": copies.line[identity.number], "delivered": books.line}
            books.add(what, copies.queue, identity, lines)
        if count or before:
            self._counts[key] = max(count, before) if is_late else count
