"""The theme publishing: what publishers are promised, and what becomes of a message that its queue has no room for.

Channels in confirm mode, in transactions and in neither publish to queues with limits and dead-letter exchanges
(`conformance.search.targets`), others drain these, and it shows at the queues, in confirms and in returns who got what.
"""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import Draw, Key, flags, picks, seldom
from amqpspec.conformance.search.contents import content_of
from amqpspec.conformance.search.targets import TARGETS, TargetActions, limit_of, some_target
from amqpspec.conformance.search.traffic import SETTLING
from amqpspec.model.broker.channels import Channel
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Table

#: How often each action is tried, in parts of the whole.
PUBLISHING = {
    "publish_to_target": 14, "publish_several": 8, "overfill": 10, "publish_to_all": 8, "publish_nowhere": 5,
    "publish_any_content": 4, "select_mode": 4,
    "consume_target": 4, "drain": 5, "ack": 5, "nack": 4, "reject": 4, "settle_all_so_far": 2,
    "settle_everything": 2, "recover": 1, "cancel": 2, "dead_letter": 4, "go_round": 2,
    "transact": 6, "settle_in_transaction": 8, "end_transaction": 6, "fail_in_transaction": 2, "hurry_behind_commit": 1,
    "delete_behind_publishes": 1,
    "let_expire": 2, "leave_no_time": 3, "cross_publishes": 4,
    "remake_target": 4, "remake_exchange": 2, "purge_target": 1, "look_at_targets": 3,
    "close_channel": 2, "close_connection": 1, "publish_wrongly": 5,
}  # fmt: skip

_modes = st.sampled_from(("confirm", "confirm", "confirm", "transaction", "none", "none"))
_keys = st.sampled_from(("k", "k", "l", "nobody's"))
_several = st.integers(2, 5)
#: Most publishes to a limited queue that are under way at one time.
_MOST_AT_ONCE = 6
_lengths = st.sampled_from((0, 0, 0, 0, 5, 8, 30))


class PublishingActions(TargetActions):
    """Each action draws who acts and on what, and issues its commands."""

    def __init__(self) -> None:
        super().__init__()
        #: queues that something was published to, which is in flight
        self.under_way: set[str] = set()

    def set_the_targets(self, draw: Draw) -> None:
        """What is there before anything happens: queues, an exchange that leads to them, channels in their modes."""
        for name in TARGETS[: 3 if draw(flags) else 2]:
            self.declare_target(draw, name)
        if draw(flags):
            self.remake_exchange(draw)
        for channel in self.channels():
            self.enter(channel, draw(_modes), nowait=draw(seldom) and draw(seldom))

    # ---------------------------------------------------------------------------------------------- modes

    def select_mode(self, draw: Draw) -> None:
        """Of a channel that has none, mostly; the mode that it has is right as well, the other one is a mistake."""
        free = self.channel_with(draw, lambda state: not self.has_mode(state.key))
        self.enter(free if not draw(seldom) else self.channel(draw), draw(_modes))

    def enter(self, channel: Key, mode: str, *, nowait: bool = False) -> None:
        if mode == "transaction":
            self.issue(channel, "tx.select", {})
        elif mode == "confirm" and self.dialect.has("publisher_confirms"):
            self.issue(channel, "confirm.select", {"nowait": True} if nowait else {})

    def a_publisher(self, draw: Draw) -> Key:
        """Any channel, those without a mode less often: what becomes of their publishes is seldom told."""
        return self.channel_with(draw, lambda state: self.has_mode(state.key)) if draw(flags) else self.channel(draw)

    def a_confirming_publisher(self, draw: Draw) -> Key:
        """In confirm mode, if any channel can be."""
        channel = self.channel_with(draw, lambda state: state.confirming)
        if not self.has_mode(channel):
            self.enter(channel, "confirm")
        return channel

    # ------------------------------------------------------------------------------------------- publishing

    def send(
        self,
        draw: Draw,
        channel: Key,
        key: str,
        exchange: str = "",
        *,
        content: Content | None = None,
        in_flight: bool = False,
    ) -> None:
        """One publish, mandatory or not, with a short body of its own if no other content is given.

        Not at once with others, and not to several queues, where nothing tells what becomes of it.
        """
        if exchange and not self.is_calm(*self.destinations(exchange)):
            key, exchange = "q1", ""
        state = self.state(channel)
        reached = self.destinations(exchange) if exchange else {key}
        if state is not None and state.transaction is not None:
            kept = reached_by_commit(state)
            settled = {state.queue_of(tag) for tag in state.transaction.reserved}
            ruled = {queue.name for queue in settled if limit_of(queue) is not None}
            hurries = self._hurries(state, kept & reached, content)
            if not self.is_calm(*kept, *reached) or ruled & self._with_letters(reached) or hurries:
                key, exchange, reached = "nobody's", "", set()
        if self.under_way and not self.is_calm(*self.under_way, *reached):
            key, exchange, reached = "nobody's", "", set()
        in_flight = in_flight and self.is_calm(*reached) and not any(map(self.is_uneven, reached))
        self.under_way = self.under_way | reached if in_flight else set()
        arguments: Table = {"routing_key": key}
        if exchange:
            arguments["exchange"] = exchange
        if draw(seldom):
            arguments["mandatory"] = True
        content = content or self.body_of(draw(_lengths), {"delivery_mode": 2} if draw(seldom) else {})
        self.issue(channel, "basic.publish", arguments, content, in_flight=in_flight)

    def _hurries(self, channel: Channel, names: set[str], content: Content | None) -> bool:
        """Would messages of one commit come to a limited queue of which one may expire before the next is there?

        Then there is room for that, and nothing tells whether it was so.
        """
        limited = [name for name in names if limit_of(self.plan.queue(name)) is not None]
        kept = channel.transaction.publications if channel.transaction is not None else ()
        contents = [publication.pattern.content for publication in kept] + ([content] if content is not None else [])
        has_little_time = any("expiration" in each.properties for each in contents)
        return any(has_little_time or self.is_timeless(name) for name in limited)

    def issue(
        self,
        channel: Key,
        method: str,
        arguments: Table,
        content: Content | None = None,
        *,
        in_flight: bool = False,
        as_it_stands: bool = False,
    ) -> None:
        """Carry out one command, but no settlement that would meet publishes of its own transaction."""
        if method not in SETTLING or not self.meets_publishes(channel, arguments):
            super().issue(channel, method, arguments, content, in_flight=in_flight, as_it_stands=as_it_stands)

    def meets_publishes(self, channel: Key, settlement: Table) -> bool:
        """Does it settle what came from a queue with a limit, which the same commit publishes to?

        Publishes to quorum queues give way to settlements, which the channel sends after them (rabbit_fifo_client:
        enqueue, priority low): nothing tells which of them the queue's limit, and its dead letters, come by.
        """
        state = self.state(channel)
        if state is None or state.transaction is None:
            return False
        kept = self._with_letters(reached_by_commit(state))
        tag, is_multiple = settlement.get("delivery_tag", 0), settlement.get("multiple", False)
        meant = [each for each in state.unsettled if each == tag or (is_multiple and (each < tag or not tag))]
        queues = {state.unacknowledged[each].queue for each in meant}
        return any(limit_of(queue) is not None and queue.name in kept for queue in queues)

    def _with_letters(self, names: set[str]) -> set[str]:
        """Those queues, and the ones that their dead letters may come to."""
        return names.union(*map(self._led_to, names))

    def body_of(self, length: int, properties: Table) -> Content:
        """A body of its own of that length, if it is long enough."""
        content = self.new_content(properties)
        return Content(content.properties, content.body.ljust(length, b"."))

    def publish_to_target(self, draw: Draw) -> None:
        self.send(draw, self.a_publisher(draw), draw(some_target))

    def publish_confirmed(self, draw: Draw) -> None:
        """In place of a settlement, where there is nothing to settle; in a transaction not to just any queue."""
        states = map(self.state, self.channels())
        if any(state is not None and state.transaction is not None for state in states):
            self.publish_to_target(draw)
        else:
            super().publish_confirmed(draw)

    def publish_several(self, draw: Draw) -> None:
        """At once, to one queue or to any: how they are confirmed is the broker's choice."""
        channel, one, several = self.a_publisher(draw), draw(some_target), draw(flags)
        for left in reversed(range(draw(_several))):
            self.send(draw, channel, draw(some_target) if several else one, in_flight=left > 0)

    def overfill(self, draw: Draw) -> None:
        """As many as a limited queue has room for, and some more; in confirm mode, mostly."""
        limited = [name for name in TARGETS if limit_of(self.plan.queue(name))]
        if not limited:
            self.remake_target(draw)
            return
        name = draw(st.sampled_from(limited))
        queue = self.plan.queue(name)
        channel = self.channel(draw) if draw(seldom) else self.a_confirming_publisher(draw)
        room = max((limit_of(queue) or 0) - (len(queue.messages) if queue is not None else 0), 0)
        at_once = draw(flags) and room <= _MOST_AT_ONCE  # which of many was refused, nothing tells until all is said
        for left in reversed(range(room + draw(st.sampled_from((1, 1, 2, 3))))):
            self.send(draw, channel, name, in_flight=at_once and left > 0)

    def publish_to_all(self, draw: Draw) -> None:
        """To several queues, through what leads to them."""
        exchange = draw(st.sampled_from(self.leading() or ("",)))
        if not exchange:
            self.remake_exchange(draw)
            return
        channel = self.a_confirming_publisher(draw) if draw(flags) else self.a_publisher(draw)
        at_once = draw(seldom)
        for left in reversed(range(1 + at_once)):
            self.send(draw, channel, draw(_keys), exchange, in_flight=left > 0)

    def publish_nowhere(self, draw: Draw) -> None:
        """Nobody takes it, and it is mandatory or not."""
        channel = self.a_confirming_publisher(draw) if draw(flags) else self.a_publisher(draw)
        many = 1 + (draw(flags) and draw(flags))
        for left in reversed(range(many)):
            arguments: Table = {"routing_key": "nobody's"}
            if draw(flags):
                arguments["mandatory"] = True
            self.issue(channel, "basic.publish", arguments, self.new_content(), in_flight=left > 0)

    def publish_any_content(self, draw: Draw) -> None:
        """Every property, headers of every type, empty bodies and large ones; somebody gets it, or it comes back."""
        self.bodies += 1
        streams = any(queue.type is QueueType.STREAM for queue in self.plan.broker.queues.values())
        content = content_of(draw, f"m{self.bodies}", is_simple=streams)
        channel, name = self.a_publisher(draw), draw(some_target)
        if draw(seldom):
            arguments: Table = {"routing_key": "nobody's", "mandatory": True}
            self.issue(channel, "basic.publish", arguments, content)
            return
        self.send(draw, channel, name, content=content)
        if draw(flags):
            self.get_from(draw, name)

    def cross_publishes(self, draw: Draw) -> None:
        """Two channels publish at once; or one does while another takes from the queue, or settles what is its own."""
        holder = self.channel_with(draw, lambda state: bool(state.unsettled))
        first, second, name = self.a_publisher(draw), holder if draw(flags) else self.channel(draw), draw(some_target)
        for _ in range(draw(st.integers(1, 2))):
            self.send(draw, first, name, in_flight=True)
        held = self.state(second)
        tags = list(held.unsettled) if held is not None else []
        pick = draw(picks)
        if pick < 4 and tags and not self.meets_publishes(second, {"delivery_tag": tags[0]}):
            self.issue(second, "basic.ack", {"delivery_tag": tags[0]})
        elif pick < 5 and not self.is_stream(name):
            self.issue(second, "basic.get", {"queue": name})
        elif pick < 6 and not self.is_stream(name) and second != first:
            # else a quorum queue is purged before the channel's own publishes come, which are less urgent (Ra), or not
            self.issue(second, "queue.purge", {"queue": name})
        else:
            self.send(draw, second, name)

    def delete_behind_publishes(self, draw: Draw) -> None:
        """The queue is gone before what was published to it is confirmed, which it is all the same."""
        name = draw(some_target)
        queue = self.plan.queue(name)
        if queue is None or queue.type is not QueueType.CLASSIC or queue.consumers:
            # a quorum queue can be told to go before the publishes are its
            return
        channel = self.a_confirming_publisher(draw)
        for _ in range(draw(_several)):
            self.send(draw, channel, name, in_flight=True)
        self.issue(channel, "queue.delete", {"queue": name})
        self.declare_target(draw, name)

    # ------------------------------------------------------------------------------- deliberately wrong

    def publish_wrongly(self, draw: Draw) -> None:
        """What publishers may not do, mostly with confirms outstanding or a transaction begun."""
        channel = self.a_publisher(draw)
        state = self.state(channel)
        mistake = draw(_mistakes)
        if draw(flags):
            self.send(draw, channel, draw(some_target), in_flight=draw(flags))
        if mistake == "missing exchange":
            self.send(draw, channel, "k", "missing")
        elif mistake == "both modes":
            self.enter(channel, "confirm" if state is not None and state.transaction is not None else "transaction")
        elif mistake == "no transaction":
            channel = self.channel_with(draw, lambda each: each.transaction is None)
            self.issue(channel, "tx.commit" if draw(flags) else "tx.rollback", {})
        elif mistake == "expiration":
            self.send(draw, channel, draw(some_target), content=self.new_content({"expiration": "soon"}))
        elif mistake == "user":
            self.send(draw, channel, draw(some_target), content=self.new_content({"user_id": "nobody"}))
        elif mistake == "immediate":
            self.issue(channel, "basic.publish", {"routing_key": "q1", "immediate": True}, self.new_content())
        elif mistake == "further keys":
            self.send(draw, channel, "q1", content=self.new_content({"headers": {"CC": "q2"}}))


def reached_by_commit(channel: Channel) -> set[str]:
    """Names of the queues that get what the channel's transaction keeps."""
    kept = channel.transaction.publications if channel.transaction is not None else ()
    return {queue.name for publication in kept for queue in publication.routes.queues}


_mistakes = st.sampled_from(
    ("missing exchange", "both modes", "missing exchange", "no transaction", "expiration", "user", "immediate",
     "further keys", "user", "expiration", "user")
)  # fmt: skip
