"""The part of the theme consumers about limits of a whole channel, which take several steps to make a difference.

In dialects without them the same commands show that such a limit is one of each consumer.
"""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import QUEUES, Draw, Key, flags, picks, seldom
from amqpspec.conformance.search.consumers import ConsumerActions, limits
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Table

_channel_limits = st.sampled_from((2, 3, 1, 4, 0))
_orders = st.sampled_from(("channel", "consumer, channel", "channel, consumer", "consumer, channel"))
_many = st.integers(0, 6)


class LimitActions(ConsumerActions):
    """One action: messages that are out already, limits, consumers, more messages, and then what makes room or none."""

    def limit_the_channel(self, draw: Draw) -> None:
        channel = self.channel(draw)
        classic = [name for name in QUEUES if self.plan.queue(name) is None or self._type(name) is QueueType.CLASSIC]
        if not classic:
            self.change_limit(draw)
            return
        name = draw(st.sampled_from(classic))
        self.declare(channel, name, "classic")
        self._publish_many(draw, name)
        for _ in range(draw(picks) % 3 if draw(flags) else 0):
            self.issue(channel, "basic.get", {"queue": name})
        order = draw(_orders).split(", ")
        if draw(seldom):
            # its consumers come before the limit
            self._consume_some(draw, channel, name)
        for whose in order:
            arguments: Table = {"prefetch_count": draw(limits)}
            if whose == "channel":
                arguments = {"prefetch_count": draw(_channel_limits), "global_": True}
            self.issue(channel, "basic.qos", arguments)
        self._consume_some(draw, channel, name)
        self._publish_many(draw, name)
        self._go_on(draw, channel)

    def _publish_many(self, draw: Draw, name: str) -> None:
        channel = self.channel(draw)
        for _ in range(draw(_many)):
            self.issue(channel, "basic.publish", {"routing_key": name}, self.new_content())

    def _consume_some(self, draw: Draw, channel: Key, name: str) -> None:
        for _ in range(draw(st.sampled_from((2, 1, 3, 0)))):
            self.issue(channel, "basic.consume", {"queue": name, "consumer_tag": self.new_tag(draw)})

    def _go_on(self, draw: Draw, channel: Key) -> None:
        """Settle or cancel something of the channel, while others wait; or set another limit."""
        state = self.state(channel)
        if state is None or not state.unacknowledged:
            return
        pick = draw(picks)
        holding = sorted(tag for tag, consumer in state.consumers.items() if consumer.outstanding)
        if pick < 3 and holding:
            self.issue(channel, "basic.cancel", {"consumer_tag": draw(st.sampled_from(holding))})
        elif pick < 4:
            self.issue(channel, "basic.qos", {"prefetch_count": draw(_channel_limits), "global_": True})
        elif pick < 7:
            arguments: Table = {"delivery_tag": draw(st.sampled_from(list(state.unacknowledged)))}
            if draw(flags):
                arguments["multiple"] = True
            self.issue(channel, "basic.ack", arguments)
