"""The part of the theme publishing about time to live: times that are certainly over, certainly not, or none at all.

In between a broker may do either, which says little, and waiting is dear: so times are short or very long, and what
shall expire is waited for at once, on a queue of its own.
"""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.command import Command
from conformance.search_actions import Draw, Key, flags, picks, seldom
from conformance.search_targets import TARGETS, some_target
from conformance.search_transactions import TransactionActions
from model.alphabet import OPERATOR, Table

#: The queues whose messages expire, a classic and a quorum queue.
BRIEF = ("q4", "q5")
#: Milliseconds: a short time is over when it has been waited for, by whatever clock (`model.deadlines`), and three
#: times as much would not be.
_SHORT, _LONG, _WAIT = 800, 60_000, 2_050

_own_times = st.sampled_from((None, _SHORT, _SHORT, _LONG))
_times_of_queue = st.sampled_from((None, _SHORT, _SHORT, _LONG))
_several = st.integers(1, 4)


class ExpiryActions(TransactionActions):
    """Actions that let time pass, and those for which none needs to."""

    def let_expire(self, draw: Draw) -> None:
        """Messages of a queue live for a short time or a long one, some of them with a client meanwhile."""
        if not self.dialect.extensions:
            return
        channel = self.a_publisher(draw)
        name = self._brief_queue(draw)
        for _ in range(draw(_several)):
            own = draw(_own_times)
            properties: Table = {"expiration": str(own)} if own is not None else {}
            self.send(draw, channel, name, content=self.new_content(properties))
        state = self.state(channel)
        if state is not None and state.transaction is not None:
            self.issue(channel, "tx.commit", {})
        holder: Key | None = self.channel(draw) if draw(flags) else None
        if holder is not None:
            self.get_from(draw, name, holder)
        self.carry_out(Command(OPERATOR, 0, "clock.wait", {"milliseconds": _WAIT}))
        self._see_what_is_left(draw, name, holder)

    def _brief_queue(self, draw: Draw) -> str:
        channel = self.channel(draw)
        name: str = draw(st.sampled_from(BRIEF))
        if self.plan.queue(name) is not None:
            self.issue(channel, "queue.delete", {"queue": name})
        table: Table = {"x-queue-type": "quorum"} if name == BRIEF[1] else {}
        life = draw(_times_of_queue)
        if life is not None:
            table["x-message-ttl"] = life
        table |= self.dead_letters_of(draw, name)
        arguments: Table = {"queue": name, "durable": True}
        if table:
            arguments["arguments"] = table
        self.issue(channel, "queue.declare", arguments)
        return name

    def _see_what_is_left(self, draw: Draw, name: str, holder: Key | None) -> None:
        """Counted, taken, and given back by who had it."""
        channel = self.channel(draw)
        if draw(flags):
            self.issue(channel, "queue.declare", {"queue": name, "passive": True})
        state = self.state(holder) if holder is not None else None
        held = [tag for tag, each in state.unsettled.items() if each.queue.name == name] if state is not None else []
        if holder is not None and held and draw(picks) < 6:
            self.issue(holder, "basic.reject", {"delivery_tag": held[-1], "requeue": True})
        for _ in range(draw(st.integers(0, 2))):
            self.get_from(draw, name, channel)

    def leave_no_time(self, draw: Draw) -> None:
        """Messages that somebody takes at once or nobody does; somebody waits, every other time."""
        if not self.dialect.extensions:
            return
        channel = self.a_publisher(draw)
        name = draw(some_target)
        if draw(flags):
            awaited = self._awaited_targets()
            if not awaited:
                self.consume_target(draw)
            name = draw(st.sampled_from(self._awaited_targets() or TARGETS))
        for left in reversed(range(1 + draw(seldom))):
            content = self.new_content({"expiration": "0"})
            self.send(draw, channel, name, content=content, in_flight=left > 0)
        if draw(seldom):
            self.get_from(draw, name)

    def _awaited_targets(self) -> list[str]:
        """Those that would hand over the next message at once."""
        broker = self.plan.broker
        return [
            name
            for name in TARGETS
            if not self.is_stream(name)
            and (queue := self.plan.queue(name)) is not None
            and any(broker.has_room(consumer) for consumer in queue.consumers)
        ]
