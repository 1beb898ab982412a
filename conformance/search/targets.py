"""The queues that the theme publishing publishes to, what leads to them, and who takes from them again.

Limits of length and of octets, what becomes of what is too much, and dead letters: to another of these queues, through
an exchange, nowhere, or round to where they came from.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import Draw, Key, flags, seldom
from amqpspec.conformance.search.traffic import TrafficActions
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Table

TARGETS = ("q1", "q2", "q3")
#: Takes dead letters to queues, and what is published to it.
LETTERS = "letters"
#: Lead to all targets, to those with a key, and to either by way of another exchange.
EXCHANGES = ("all", "keyed", "far")

some_target = st.sampled_from(("q1", "q1", "q2", "q2", "q3"))
_types = st.sampled_from(("classic", "classic", "classic", "quorum", "quorum", "quorum", "stream"))
_limits = st.sampled_from(
    (
        {}, {}, {"x-max-length": 1}, {"x-max-length": 2}, {"x-max-length": 3}, {"x-max-length": 1},
        {"x-max-length": 0}, {"x-max-length": 0}, {"x-max-length-bytes": 6}, {"x-max-length-bytes": 12},
        {"x-max-length-bytes": 40}, {"x-max-length": 2, "x-max-length-bytes": 10},
    )
)  # fmt: skip
_overflows = st.sampled_from((None, None, "drop-head", "reject-publish", "reject-publish", "reject-publish-dlx"))
_letters_go = st.sampled_from(("nowhere", "nowhere", "next", "next", "round", "exchange", "missing"))
_lives = st.sampled_from((None, None, None, None, None, 60000, 60000, 0))
_prefetches = st.sampled_from((1, 1, 2, 3, 1, 0))
_from_where = st.sampled_from(EXCHANGES)


def limit_of(queue: Queue | None) -> int | None:
    """How many short messages the queue has room for; None: it is not there, or has no limit."""
    if queue is None:
        return None
    length: Any = queue.arguments.get("x-max-length")
    octets: Any = queue.arguments.get("x-max-length-bytes")
    limits = [each for each in (length, octets and octets // 3) if each is not None]
    return min(limits) if limits else None


#: What a message looks like that was a dead letter before (DLX-004).
_HISTORY: Table = {
    "x-death": [
        {"count": 3, "reason": "rejected", "queue": "other", "exchange": "", "routing-keys": ["k"]}
    ],
    "x-first-death-queue": "other",
}


class TargetActions(TrafficActions):
    """What publishers have to do with."""

    def __init__(self) -> None:
        super().__init__()
        #: the type that the queues of each name are of: what becomes of others is not this theme's business
        self.types: dict[str, str] = {}

    # ---------------------------------------------------------------------------------------------- queues

    def declare_target(self, draw: Draw, name: str) -> None:
        """A queue of any kind under that name, unless there is one."""
        if self.plan.queue(name) is not None:
            return
        arguments: Table = {"queue": name, "durable": True}
        table = self._kind_of_target(draw, name)
        if table:
            arguments["arguments"] = table
        self.issue(self.channel(draw), "queue.declare", arguments)

    def _kind_of_target(self, draw: Draw, name: str) -> Table:
        for each in TARGETS:
            self.types.setdefault(each, draw(_types))
        kind = self.types[name]
        if kind == "stream":
            return {"x-queue-type": kind}
        table: Table = {} if kind == "classic" else {"x-queue-type": kind}
        limits: Table = draw(_limits)
        table |= limits
        overflow = draw(_overflows) if limits else None
        # of quorum queues it would be drop-head
        if overflow is not None:
            table["x-overflow"] = overflow
        table |= self.dead_letters_of(draw, name)
        if limits and self._closes_ring(name, table):
            table = {key: value for key, value in table.items() if key not in limits and key != "x-overflow"}
        life = draw(_lives)
        if life is not None and (life or self._goes_one_way(table)):
            table["x-message-ttl"] = life
        if kind == "quorum" and draw(seldom):
            table["x-delivery-limit"] = 1
        elif kind == "classic" and draw(seldom) and draw(seldom):
            table["x-max-priority"] = 4
        return table

    def _closes_ring(self, name: str, table: Table) -> bool:
        """Do its dead letters come back to it, by way of others that all have limits?

        Each message that is one too many then sets off a round of drops, and nothing tells when it is over: each queue
        holds as many messages as before.
        """

        def after(arguments: Table) -> set[str]:
            if arguments.get("x-dead-letter-exchange") == LETTERS:
                return set(TARGETS)  # what is bound to it may change
            return {key for key in (arguments.get("x-dead-letter-routing-key"),) if key is not None}

        reached: set[str] = set()
        left = after(table) - {name}
        while left:
            reached |= left
            there = (queue for each in left if (queue := self.plan.queue(each)) is not None)
            limited = [queue for queue in there if limit_of(queue) is not None]
            left = set().union(*(after(queue.arguments) - {queue.name} for queue in limited)) - reached
        return name in reached

    def dead_letters_of(self, draw: Draw, name: str) -> Table:
        """Where the queue's dead letters go: to the queue after it, back to itself, to any, or nowhere."""
        where = draw(_letters_go)
        if name not in TARGETS and self._is_crowded(where):
            where = "nowhere"
        after = TARGETS[(TARGETS.index(name) + 1) % len(TARGETS)] if name in TARGETS else TARGETS[0]
        return {
            "nowhere": {},
            "next": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": after},
            "round": {"x-dead-letter-exchange": ""},
            "exchange": {"x-dead-letter-exchange": LETTERS},
            "missing": {"x-dead-letter-exchange": "missing"},
        }[where]

    def _goes_one_way(self, table: Table) -> bool:
        """Do dead letters of such a queue come to one place, and no stream or queue where they have no time either?
        With messages that have no time at all there are too many ways in which they may have gone otherwise; or in
        which they have driven each other out, where it is not sure what they weigh (OVERFLOW-004).
        """
        if any(map(self.is_timeless, TARGETS)):
            return False
        if table.get("x-queue-type") == "quorum" and "x-max-length-bytes" in table:
            return False
        letters_go = table.get("x-dead-letter-exchange")
        return letters_go != LETTERS and (letters_go is None or "stream" not in self.types.values())

    def _is_crowded(self, where: str) -> bool:
        """Are there too many ways in which the dead letters of several messages that expire may have gone there?

        Some streams take none, which shows only when they are read; messages without any time go on at once.
        """
        names = {"next": {TARGETS[0]}, "exchange": self.destinations(LETTERS)}.get(where, set())
        names |= set().union(*map(self._led_to, names))
        return any(self.is_stream(name) or self.is_timeless(name) for name in names)

    def remake_target(self, draw: Draw) -> None:
        """Another queue under a name; what was in it, and what is bound to it, goes."""
        name = draw(st.sampled_from(TARGETS))
        if self.plan.queue(name) is not None:
            self.issue(self.channel(draw), "queue.delete", {"queue": name})
        if not draw(seldom):
            self.declare_target(draw, name)

    def purge_target(self, draw: Draw) -> None:
        name = self.a_filled_target(draw)
        if not self.is_stream(name):
            self.issue(self.channel(draw), "queue.purge", {"queue": name})

    def look_at_targets(self, draw: Draw) -> None:
        channel = self.channel(draw)
        for name in TARGETS:
            if self.plan.queue(name) is not None:
                self.issue(channel, "queue.declare", {"queue": name, "passive": True})

    # -------------------------------------------------------------------------------------------- exchanges

    def remake_exchange(self, draw: Draw) -> None:
        """An exchange that leads to several queues, by itself or by way of another, or as an alternate."""
        channel, name = self.channel(draw), draw(_from_where)
        present = [each for each in TARGETS if self.plan.queue(each) is not None]
        if name in self.plan.broker.exchanges and draw(seldom):
            self.issue(channel, "exchange.delete", {"exchange": name})
            return
        binds, names_alternates = map(self.dialect.has, ("exchange_exchange_bindings", "alternate-exchange"))
        if name == "far" and (binds or names_alternates):
            self._make(channel, "all", "fanout", {})
            if not binds or (names_alternates and draw(flags)):
                self._make(channel, "far", "direct", {"alternate-exchange": "all"})
            else:
                self._make(channel, "far", "fanout", {})
                self.issue(channel, "exchange.bind", {"destination": "all", "source": "far"})
        else:
            self._make(channel, name, "fanout" if name != "keyed" else "direct", {})
        bound = "all" if name == "far" else name
        for queue in present if draw(flags) else present[:1]:
            self.issue(channel, "queue.bind", {"queue": queue, "exchange": bound, "routing_key": "k"})
        if present and draw(flags):
            self._make(channel, LETTERS, "fanout", {})
            self.issue(channel, "queue.bind", {"queue": present[-1], "exchange": LETTERS})

    def _make(self, channel: Key, name: str, kind: str, table: Table) -> None:
        if name not in self.plan.broker.exchanges:
            arguments: Table = {"exchange": name, "type": kind}
            if table:
                arguments["arguments"] = table
            self.issue(channel, "exchange.declare", arguments)

    def leading(self) -> tuple[str, ...]:
        """The exchanges that there are."""
        return tuple(name for name in EXCHANGES if name in self.plan.broker.exchanges)

    # ---------------------------------------------------------------------------------------------- taking

    def consume_target(self, draw: Draw) -> None:
        name = draw(some_target)
        if self.plan.queue(name) is None:
            self.declare_target(draw, name)
        channel = self.channel(draw)
        self.issue(channel, "basic.qos", {"prefetch_count": draw(_prefetches) or (2 if self.is_stream(name) else 0)})
        self.tags += 1
        arguments: Table = {"queue": name, "consumer_tag": f"t{self.tags}"}
        if self.is_stream(name):
            arguments["arguments"] = {"x-stream-offset": "first"}
        elif draw(seldom):
            arguments["no_ack"] = True
            if limit_of(self.plan.queue(name)) is not None:
                # a quorum queue would have messages wait, and count them, until the channel has settled the former ones
                self.issue(channel, "basic.qos", {"prefetch_count": 0})
        self.issue(channel, "basic.consume", arguments)

    def drain(self, draw: Draw) -> None:
        """Take some messages, and keep them or not; most limits do not count those that are kept."""
        name, keeps = self.a_filled_target(draw), draw(flags)
        if self.is_stream(name):
            return
        channel = self.channel(draw)
        for _ in range(draw(st.integers(1, 3))):
            self.get_from(draw, name, channel, no_ack=not keeps)

    def get_from(self, draw: Draw, name: str, channel: Key | None = None, *, no_ack: bool = False) -> None:
        """Only of a queue that is there and lets itself be asked."""
        if self.plan.queue(name) is None or self.is_stream(name):
            return
        arguments: Table = {"queue": name}
        if no_ack:
            arguments["no_ack"] = True
        self.issue(channel or self.channel(draw), "basic.get", arguments)

    def dead_letter(self, draw: Draw) -> None:
        """Refuse messages for good, best where somebody else gets them then."""
        with_letters = [name for name in TARGETS if self.has_argument(name, "x-dead-letter-exchange")]
        name, channel = draw(st.sampled_from(with_letters or TARGETS)), self.channel(draw)
        if self.is_stream(name):
            return
        queue = self.plan.queue(name)
        if queue is None or not queue.messages:
            # in a transaction it would not come before the commit
            free = self.channel_with(draw, lambda each: each.transaction is None)
            # what it weighs then is not what its body does
            has_history = draw(seldom) and not any(self.is_stream(each) or self.is_weighed(each) for each in TARGETS)
            properties: Table = {"headers": dict(_HISTORY)} if has_history else {}
            keeper = self.state(free)
            if keeper is None or keeper.transaction is None:
                self.issue(free, "basic.publish", {"routing_key": name}, self.new_content(properties))
        many = draw(st.integers(1, 2))
        for _ in range(many):
            self.get_from(draw, name, channel)
        state = self.state(channel)
        tags = list(state.unsettled) if state is not None else []
        if not tags:
            return
        if many > 1 and self.dialect.has("basic.nack") and draw(flags):
            self.issue(channel, "basic.nack", {"delivery_tag": tags[-1], "multiple": True})
        else:
            self.issue(channel, "basic.reject", {"delivery_tag": tags[-1]})

    def go_round(self, draw: Draw) -> None:
        """The same message is refused several times, by whichever queue it is in: its history grows."""
        self.dead_letter(draw)
        for _ in range(draw(st.integers(1, 3))):
            letters = [
                name
                for name in TARGETS
                if (queue := self.plan.queue(name)) is not None and any(each.deaths for each in queue.messages)
            ]
            if not letters:
                return
            channel = self.channel(draw)
            self.get_from(draw, letters[0], channel)
            state = self.state(channel)
            if state is not None and state.unsettled:
                self.issue(channel, "basic.reject", {"delivery_tag": list(state.unsettled)[-1]})

    # ---------------------------------------------------------------------------------------------- parts

    def is_calm(self, *names: str) -> bool:
        """May these queues be published to at once? Not if their dead letters come to one of them, or to one place.

        What a queue with a limit drops then depends on when these come, which nothing tells.
        """
        led_to = [self._led_to(name) for name in dict.fromkeys(names)]
        return not any(reached & set(names) for reached in led_to) and sum(map(len, led_to)) == len(
            set().union(*led_to)
        )

    def is_weighed(self, name: str) -> bool:
        """A quorum queue with a limit of octets, which are not everywhere counted as promised (OVERFLOW-004)."""
        queue = self.plan.queue(name)
        return queue is not None and queue.type is QueueType.QUORUM and "x-max-length-bytes" in queue.arguments

    def is_uneven(self, name: str) -> bool:
        """Does it matter, to it or to where its dead letters go, when exactly each of several messages comes?"""
        return self.is_weighed(name) or any(map(self.is_timeless, {name} | self._led_to(name)))

    def is_timeless(self, name: str) -> bool:
        """Its messages expire at once, or somebody takes them at once: of several nobody sees which did what."""
        queue = self.plan.queue(name)
        return queue is not None and queue.arguments.get("x-message-ttl") == 0

    def _led_to(self, name: str) -> set[str]:
        """The queues that dead letters of this one may come to, by way of others as well."""
        found: set[str] = set()
        left = [name]
        while left:
            queue = self.plan.queue(left.pop())
            reached = self._next_of(queue) - found if queue is not None else set()
            found |= reached
            left += reached
        return found

    def letters_reach(self, queue: Queue) -> set[str]:
        """… and itself, if its dead letters come back to it."""
        goes_round = queue.arguments.get("x-dead-letter-exchange") == "" and not self._next_of(queue)
        return self._led_to(queue.name) | ({queue.name} if goes_round else set())

    def _next_of(self, queue: Queue) -> set[str]:
        exchange = queue.arguments.get("x-dead-letter-exchange")
        if exchange == "":
            key = queue.arguments.get("x-dead-letter-routing-key")
            return {key} if key is not None else set()
        return self.destinations(exchange) if exchange is not None else set()

    def destinations(self, exchange: str) -> set[str]:
        """The queues that the exchange may lead to, by way of others as well."""
        found: set[str] = set()
        seen: set[str] = set()
        left = [exchange]
        while left:
            known = self.plan.broker.exchanges.get(left.pop())
            if known is None or known.name in seen:
                continue
            seen.add(known.name)
            left += [known.alternate] if known.alternate is not None else []
            for binding in known.bindings:
                if binding.to_exchange:
                    left.append(binding.destination)
                else:
                    found.add(binding.destination)
        return found

    def a_filled_target(self, draw: Draw) -> str:
        filled = [name for name in TARGETS if (queue := self.plan.queue(name)) is not None and queue.messages]
        name: str = draw(st.sampled_from(filled or TARGETS))
        return name

    def is_stream(self, name: str) -> bool:
        queue = self.plan.queue(name)
        return queue is not None and queue.type is QueueType.STREAM

    def has_argument(self, name: str, argument: str) -> bool:
        queue = self.plan.queue(name)
        return queue is not None and argument in queue.arguments
