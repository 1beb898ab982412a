"""The theme traffic: publishing, consuming, settling and ending, with some mistakes in between."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import QUEUES, Actions, Draw, Key, flags, picks, queues, seldom, types
from amqpspec.model.broker.channels import Channel
from amqpspec.model.protocol.methods import Content, Table

#: How tags begin that brokers choose (CONSUME-002).
CHOSEN = "amq.ctag-"
SETTLING = ("basic.ack", "basic.reject", "basic.nack")

#: How often each action is tried, in parts of the whole. Without messages and consumers nothing else is interesting;
#: what ends a channel is rare, so that sequences live long enough.
TRAFFIC = {
    "publish_confirmed": 10, "publish": 6, "publish_through_exchange": 4, "consume": 8, "get": 6, "cancel": 3,
    "ack": 12, "nack": 8, "reject": 4, "recover": 2, "settle_everything": 3, "settle_all_so_far": 4,
    "return_several": 2, "close_channel": 4, "close_connection": 3, "purge": 1, "delete_and_declare": 2, "look": 2,
    "make_a_mistake": 4, "meet_seldom": 6,
}  # fmt: skip

_prefetches = st.sampled_from((0, 1, 1, 2, 3))
#: The largest that there are, by the guide and on the wire.
_huge_tags = st.sampled_from((2**63 - 1, 2**64 - 1))
_mistakes = st.sampled_from(
    ("unknown tag", "settled tag", "used consumer tag", "missing queue", "missing exchange", "other properties")
)


class TrafficActions(Actions):
    """Each action draws who acts and on what, and issues its commands."""

    # ------------------------------------------------------------------------------------------- publishing

    def publish(self, draw: Draw) -> None:
        self.publish_to(self.channel(draw), draw(queues), confirming=draw(flags), mandatory=draw(seldom))

    def publish_confirmed(self, draw: Draw) -> None:
        self.publish_to(self.channel(draw), draw(queues), confirming=True, mandatory=False)

    def publish_to(self, channel: Key, queue: str, *, confirming: bool, mandatory: bool) -> None:
        if confirming and self.dialect.has("publisher_confirms") and not self.has_mode(channel):
            self.issue(channel, "confirm.select", {})
        arguments: Table = {"routing_key": queue}
        if mandatory:
            arguments["mandatory"] = True
        self.issue(channel, "basic.publish", arguments, self.new_content())

    def publish_through_exchange(self, draw: Draw) -> None:
        channel, queue, kind = self.channel(draw), draw(queues), draw(st.sampled_from(("fanout", "direct")))
        exchange = f"x-{kind}"
        self.issue(channel, "exchange.declare", {"exchange": exchange, "type": kind})
        for key in ("k", "l")[: 2 if draw(seldom) else 1]:
            self.issue(channel, "queue.bind", {"queue": queue, "exchange": exchange, "routing_key": key})
        self.issue(channel, "basic.publish", {"exchange": exchange, "routing_key": "k"}, self.new_content())

    # -------------------------------------------------------------------------------------------- consuming

    def consume(self, draw: Draw) -> None:
        channel = self.channel(draw)
        self.issue(channel, "basic.qos", {"prefetch_count": draw(_prefetches)})
        self.tags += 1
        arguments: Table = {"queue": draw(queues), "consumer_tag": f"t{self.tags}"}
        if draw(seldom):
            arguments["no_ack"] = True
        self.issue(channel, "basic.consume", arguments)

    def cancel(self, draw: Draw) -> None:
        channel = self.channel_with(draw, lambda state: bool(state.consumers))
        tags = self.known_tags(self.state(channel))
        self.issue(channel, "basic.cancel", {"consumer_tag": tags[draw(picks) % len(tags)] if tags else "t0"})

    def get(self, draw: Draw) -> None:
        arguments: Table = {"queue": draw(queues)}
        if draw(seldom):
            arguments["no_ack"] = True
        self.issue(self.channel(draw), "basic.get", arguments)

    # --------------------------------------------------------------------------------------------- settling

    def ack(self, draw: Draw) -> None:
        self.settle(draw, "basic.ack", multiple=draw(seldom))

    def nack(self, draw: Draw) -> None:
        if not self.dialect.has("basic.nack"):
            self.reject(draw)
            return
        self.settle(draw, "basic.nack", multiple=draw(flags), requeue=draw(flags))

    def reject(self, draw: Draw) -> None:
        self.settle(draw, "basic.reject", requeue=draw(flags))

    def return_several(self, draw: Draw) -> None:
        self.return_several_to(draw, QUEUES)

    def return_several_to(self, draw: Draw, names: Sequence[str]) -> None:
        """Take some messages and give them back together: best where nobody else gets them at once, so that their
        order shows.
        """
        idle = [each for each in names if (queue := self.plan.queue(each)) is not None and not queue.consumers]
        name: str = draw(st.sampled_from(idle or names))
        channel = self.channel(draw)
        queue = self.plan.queue(name)
        for _ in range(draw(st.integers(2, 3)) - (len(queue.messages) if queue is not None else 0)):
            ranks = queue is not None and "x-max-priority" in queue.arguments
            properties: Table = {"priority": draw(picks)} if ranks or draw(seldom) else {}
            self.issue(channel, "basic.publish", {"routing_key": name}, self.new_content(properties))
        for _ in range(2):
            self.issue(channel, "basic.get", {"queue": name})
        if self.dialect.has("basic.nack") and draw(flags):
            self.issue(channel, "basic.nack", {"delivery_tag": 0, "multiple": True, "requeue": True})
        else:
            self.issue(channel, "basic.recover", {"requeue": True})
        self.issue(channel, "basic.get", {"queue": name})

    def recover(self, draw: Draw) -> None:
        method = "basic.recover" if draw(flags) else "basic.recover-async"
        channel = self.channel_with(draw, lambda state: bool(state.unacknowledged))
        # without requeue it is an error of the connection
        self.issue(channel, method, {} if draw(seldom) and draw(seldom) else {"requeue": True})

    def settle_everything(self, draw: Draw) -> None:
        """Tag 0: everything with `multiple`, an error without."""
        channel = self.channel_with(draw, lambda state: bool(state.unacknowledged))
        arguments: Table = {"delivery_tag": 0}
        if not draw(seldom):
            arguments["multiple"] = True
        if self.dialect.has("basic.nack") and draw(flags):
            self.issue(channel, "basic.nack", {**arguments, "requeue": True})
        else:
            self.issue(channel, "basic.ack", arguments)

    def settle_all_so_far(self, draw: Draw) -> None:
        """What a client does that settles now and then: everything up to a late delivery."""
        channel = self.channel_with(draw, lambda state: len(state.unacknowledged) > 1)
        state = self.state(channel)
        if state is None or len(state.unacknowledged) < 2:
            self.publish_confirmed(draw)
            return
        late = list(state.unacknowledged)[1:]
        arguments: Table = {"delivery_tag": draw(st.sampled_from(late)), "multiple": True}
        method = "basic.ack"
        if self.dialect.has("basic.nack") and draw(flags):
            method, arguments["requeue"] = "basic.nack", True
        self.issue(channel, method, arguments)
        left = list(state.unacknowledged) if state else []
        if left and draw(flags):
            self.issue(channel, "basic.ack", {"delivery_tag": left[0]})

    # ----------------------------------------------------------------------------------------------- ending

    def close_channel(self, draw: Draw) -> None:
        channel = self.channel_with(draw, lambda state: bool(state.unacknowledged))
        self.issue(channel, "channel.close", {"reply_code": 200, "reply_text": "done"})

    def close_connection(self, draw: Draw) -> None:
        """Mostly the second client's: with the first one's gone, little of what it did is left."""
        connection = self.connection_of(0 if draw(seldom) and draw(seldom) else 1)
        if self.plan.channel(connection, 1) is None:
            return
        if draw(flags):
            self.issue((connection, 0), "socket.abort", {})
        else:
            self.issue((connection, 0), "connection.close", {"reply_code": 200, "reply_text": "done"})

    def purge(self, draw: Draw) -> None:
        self.issue(self.channel(draw), "queue.purge", {"queue": draw(queues)})

    def delete_and_declare(self, draw: Draw) -> None:
        channel, queue = self.channel(draw), draw(queues)
        self.issue(channel, "queue.delete", {"queue": queue})
        self.declare(channel, queue, draw(types))

    def look(self, draw: Draw) -> None:
        self.issue(self.channel(draw), "queue.declare", {"queue": draw(queues), "passive": True})

    # ------------------------------------------------------------------------------------- deliberately wrong

    def make_a_mistake(self, draw: Draw) -> None:
        channel, pick, mistake = self.channel(draw), draw(picks), draw(_mistakes)
        state = self.state(channel)
        if mistake == "unknown tag":
            tag = draw(_huge_tags) if draw(seldom) else 40 + pick
            self.issue(channel, SETTLING[pick % (3 if self.dialect.has("basic.nack") else 2)], {"delivery_tag": tag})
        elif mistake == "settled tag":
            channel = self.channel_with(draw, lambda each: bool(each.over))
            state = self.state(channel)
            tag = state.over[-1].tag if state and state.over else 1
            self.issue(channel, SETTLING[pick % (3 if self.dialect.has("basic.nack") else 2)], {"delivery_tag": tag})
        elif mistake == "used consumer tag" and state and state.consumers:
            self.issue(channel, "basic.consume", {"queue": "q1", "consumer_tag": next(iter(state.consumers))})
        elif mistake == "missing queue":
            method = ("basic.get", "basic.consume", "queue.purge")[pick % 3]
            self.issue(channel, method, {"queue": "missing"})
        elif mistake == "missing exchange":
            self.issue(channel, "basic.publish", {"exchange": "missing"}, Content())
        elif mistake == "other properties":
            self.issue(channel, "queue.declare", {"queue": "q1", "durable": True, "auto_delete": True})

    # --------------------------------------------------------------------------------------------- parts

    def known_tags(self, state: Channel | None) -> list[str]:
        """Of the channel's consumers, without those that the target has chosen: the plan chooses others."""
        return [tag for tag in state.consumers if not tag.startswith(CHOSEN)] if state is not None else []

    def has_mode(self, channel: Key) -> bool:
        """Is the channel in confirm mode, or in transactions?"""
        state = self.state(channel)
        return state is not None and (state.confirming or state.transaction is not None)

    def settle(self, draw: Draw, method: str, **bits: bool) -> None:
        """One of the outstanding deliveries. Where there are none, a publish: mistakes are made elsewhere."""
        channel = self.channel_with(draw, lambda state: bool(state.unacknowledged))
        state = self.state(channel)
        if state is None or not state.unacknowledged:
            self.publish_confirmed(draw)
            return
        tags = list(state.unacknowledged)
        arguments = {"delivery_tag": tags[draw(picks) % len(tags)], **{name: True for name, on in bits.items() if on}}
        self.issue(channel, method, arguments)
