"""The part of the theme publishing about time to live: times that are certainly over, certainly not, or none at all.

In between a broker may do either, which says little, and waiting is dear: so times are short or very long, and what
shall expire is waited for at once, on a queue of its own.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import Draw, Key, flags, picks, seldom
from amqpspec.conformance.search.targets import TARGETS, some_target
from amqpspec.conformance.search.transactions import TransactionActions
from amqpspec.model.protocol.methods import OPERATOR, Table

#: The queues whose messages expire, a classic and a quorum queue.
BRIEF = ("q4", "q5")
#: Milliseconds: a short time is over when it has been waited for, by whatever clock (`model.broker.deadlines`), and
#: three times as much would not be.
_SHORT, _LONG, _WAIT = 800, 60_000, 2_050
#: Of two queues in a circle: the times of their messages, and when they have certainly come round.
_ROUND, _WAIT_ROUND = (10, 400), 2_700

_own_times = st.sampled_from((None, _SHORT, _SHORT, _LONG))
_times_of_queue = st.sampled_from((None, _SHORT, _SHORT, _LONG))
_several = st.integers(1, 4)


class ExpiryActions(TransactionActions):
    """Actions that let time pass, and those for which none needs to."""

    def let_expire(self, draw: Draw) -> None:
        """Messages of a queue live for a short time or a long one, some of them with a client meanwhile."""
        if not self.dialect.has("expiration") and not self.dialect.has("x-message-ttl"):
            return
        if draw(seldom) and self.dialect.extensions:
            self._let_expire_in_a_circle(draw)
            return
        channel = self.a_publisher(draw)
        name = self._brief_queue(draw)
        for index in range(draw(_several)):
            # the first one has a short time in any case: often it is the only one that is looked at
            own = draw(_own_times) if index or self._life_in(name) == _SHORT else _SHORT
            properties: Table = {"expiration": str(own)} if own is not None else {}
            self.send(draw, channel, name, content=self.new_content(properties))
        self._commit(channel)
        holder: Key | None = self.channel(draw) if draw(flags) else None
        if holder is not None:
            self.get_from(draw, name, holder)
        self.carry_out(Command(OPERATOR, 0, "clock.wait", {"milliseconds": _WAIT}))
        self._see_what_is_left(draw, name, holder)

    def _commit(self, channel: Key) -> None:
        state = self.state(channel)
        if state is not None and state.transaction is not None:
            self.end(channel, "tx.commit")

    def _life_in(self, name: str) -> Any:
        queue = self.plan.queue(name)
        return queue.arguments.get("x-message-ttl") if queue is not None else None

    def _let_expire_in_a_circle(self, draw: Draw) -> None:
        """What expires in one queue comes to the other, and from there not to the first one again (DLX-008)."""
        channel = self.a_publisher(draw)
        first, second = draw(st.permutations(BRIEF))
        for name, life, after in ((first, _ROUND[0], second), (second, _ROUND[1], first)):
            letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": after}
            self._make_anew(self.channel(draw), name, {"x-message-ttl": life, **letters})
        self.send(draw, channel, second)
        self._commit(channel)
        self.carry_out(Command(OPERATOR, 0, "clock.wait", {"milliseconds": _WAIT_ROUND}))
        for name in BRIEF:
            self.issue(channel, "queue.declare", {"queue": name, "passive": True})

    def _brief_queue(self, draw: Draw) -> str:
        channel = self.channel(draw)
        name: str = draw(st.sampled_from(BRIEF))
        life = draw(_times_of_queue)
        table: Table = {"x-message-ttl": life} if life is not None else {}
        if draw(flags):
            # to a queue of their own, where nothing else hides them
            place = BRIEF[1 - BRIEF.index(name)]
            self._make_anew(channel, place, {})
            letters: Table = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": place}
        else:
            letters = self.dead_letters_of(draw, name)
        self._make_anew(channel, name, {**table, **letters})
        return name

    def _make_anew(self, channel: Key, name: str, table: Table) -> None:
        """Declare a queue in place of the one of that name."""
        if self.plan.queue(name) is not None:
            self.issue(channel, "queue.delete", {"queue": name})
        if name == BRIEF[1]:
            table = {"x-queue-type": "quorum", **table}
        arguments: Table = {"queue": name, "durable": True}
        if table:
            arguments["arguments"] = table
        self.issue(channel, "queue.declare", arguments)

    def _see_what_is_left(self, draw: Draw, name: str, holder: Key | None) -> None:
        """Counted, taken, looked for where dead letters come, and given back by who had it."""
        channel = self.channel(draw)
        if draw(flags):
            self.issue(channel, "queue.declare", {"queue": name, "passive": True})
        state = self.state(holder) if holder is not None else None
        held = [tag for tag, each in state.unsettled.items() if each.queue.name == name] if state is not None else []
        letters = self._next_queue(name)
        if letters is not None and (held or draw(flags)):
            for _ in range(1 + draw(flags)):
                self.get_from(draw, letters, channel, no_ack=True)
        if holder is not None and held and draw(picks) < 6:
            self.issue(holder, "basic.reject", {"delivery_tag": held[-1], "requeue": True})
        for _ in range(draw(st.integers(0, 2))):
            self.get_from(draw, name, channel)

    def _next_queue(self, name: str) -> str | None:
        """The one that its dead letters come to, if it is one only that is named."""
        queue = self.plan.queue(name)
        if queue is None or queue.arguments.get("x-dead-letter-exchange") != "":
            return None
        key: str = queue.arguments.get("x-dead-letter-routing-key", name)
        return key

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
