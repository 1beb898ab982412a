"""The part of the theme consumers that is in mid-flight: commands that cross each other, and what the broker does.

Of the two the broker may process either first where they go different ways, and it may have done something that the
client has not seen yet: a message may be on its way to a consumer that is being cancelled.
"""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import QUEUES, Draw, Key, flags, queues, seldom
from amqpspec.conformance.search.consumers import DONE, ConsumerActions, kinds, limits
from amqpspec.conformance.search.traffic import CHOSEN
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Table

_crossings = st.sampled_from(
    (
        "delete, cancel", "publish, cancel", "cancel, delete", "cancel, consume", "consume, cancel", "settle, cancel",
        "publish, limit", "cancel, close", "consume, consume", "publish, delete", "publish, close", "settle, close",
        "settle, delete", "settle, cancel",
    )
)  # fmt: skip


class CrossingActions(ConsumerActions):
    """Each part of a crossing is a command about one consumer, which is sent `in_flight` or after another."""

    def cross(self, draw: Draw) -> None:
        """Two commands, the second sent before the first has been answered."""
        first, second = draw(_crossings).split(", ")
        consumer = self._some_consumer(draw, is_to_hold=first == "settle")
        if consumer is None:
            self.consume_shared(draw)
            return
        getattr(self, f"_{first}")(draw, consumer, in_flight=True)
        if self.plan.usable(*consumer.channel):
            getattr(self, f"_{second}")(draw, consumer, in_flight=False)
        else:
            # the first is refused, and what follows it on its channel would be about that: somebody else goes on
            other = next(each for each in self.channels() if each != consumer.channel)
            self.issue(other, "basic.qos", {"prefetch_count": draw(limits)})

    def register_at_once(self, draw: Draw) -> None:
        """Two consumers of a queue, one active only, come at one time from two connections (SAC-005)."""
        alone = [name for name in QUEUES if self._is(name, "x-single-active-consumer")]
        if not alone:
            self.consume_shared(draw)
            return
        name = draw(st.sampled_from(alone))
        first, second = self.channels()[draw(flags)], self.channels()[2]
        for channel in (first, second):
            self.make_room(draw, channel, self._type(name))
        self.consume_as_it_is(draw, first, name, self.new_tag(draw), in_flight=True)
        self.consume_as_it_is(draw, second, name, self.new_tag(draw), in_flight=False)
        self.issue(self.channel(draw), "basic.publish", {"routing_key": name}, self.new_content())

    def give_back_at_once(self, draw: Draw) -> None:
        """Two channels give back what they hold of one queue (ACK-023)."""
        idle = [name for name in QUEUES if not self._refuses_gets(name) and not self._is_consumed(name)]
        if not idle:
            self.consume_shared(draw)
            return
        name = draw(st.sampled_from(idle))
        holders = [self.channels()[draw(flags)], self.channels()[2]]
        for channel in holders:
            self._take_from(draw, name, channel)
        for channel in holders:
            state = self.state(channel)
            held = [tag for tag, each in state.unacknowledged.items() if each.queue.name == name] if state else []
            if held:
                arguments: Table = {"delivery_tag": held[-1], "requeue": True}
                self.issue(channel, "basic.reject", arguments, in_flight=channel == holders[0])
        self.issue(self.channel(draw), "queue.declare", {"queue": name, "passive": True})

    def leave_at_once(self, draw: Draw) -> None:
        """A consumer is cancelled before it is known to be one (CONSUME-005)."""
        channel, name, tag = self.channel(draw), self._queue_to_share(draw), self.new_tag(draw)
        if self._type(name) is QueueType.STREAM:
            return
        self.make_room(draw, channel, self._type(name))
        self.issue(channel, "basic.consume", {"queue": name, "consumer_tag": tag}, in_flight=True)
        self.issue(channel, "basic.cancel", {"consumer_tag": tag})

    def _is_consumed(self, name: str) -> bool:
        queue = self.plan.queue(name)
        return queue is not None and bool(queue.consumers)

    def _publish(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        channel = self.channel(draw)
        for _ in range(1 + draw(flags)):
            arguments: Table = {"routing_key": consumer.queue.name}
            self.issue(channel, "basic.publish", arguments, self.new_content(), in_flight=in_flight)

    def _cancel(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        arguments: Table = {"consumer_tag": consumer.tag}
        if draw(seldom):
            arguments["nowait"] = True
        self.issue(consumer.channel, "basic.cancel", arguments, in_flight=in_flight)

    def _consume(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        """The same tag, if it is free; sometimes from another queue."""
        state = self.state(consumer.channel)
        tag = consumer.tag if state is None or consumer.tag not in state.consumers else self.new_tag(draw)
        queue = draw(queues) if draw(seldom) else consumer.queue.name
        self.consume_as_it_is(draw, consumer.channel, queue, tag, in_flight=in_flight)

    def _delete(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        """From another channel, best of another connection; the queue is there again when the next action comes."""
        others = [each for each in self.channels() if each != consumer.channel]
        foreign = [each for each in others if each[0] != consumer.channel[0]]
        channel: Key = draw(st.sampled_from(others if draw(seldom) else foreign))
        self.issue(channel, "queue.delete", {"queue": consumer.queue.name}, in_flight=in_flight)
        if not in_flight:
            self.declare(channel, consumer.queue.name, draw(kinds))

    def _settle(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        held = self._held_by(consumer)
        if not held:
            self._publish(draw, consumer, in_flight=in_flight)
            return
        arguments: Table = {"delivery_tag": held[0]}
        method = "basic.ack"
        if draw(flags) and consumer.queue.type is not QueueType.STREAM:
            method, arguments["requeue"] = "basic.reject", True
        self.issue(consumer.channel, method, arguments, in_flight=in_flight)

    def _limit(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        self.issue(consumer.channel, "basic.qos", {"prefetch_count": draw(limits)}, in_flight=in_flight)

    def _close(self, draw: Draw, consumer: Consumer, *, in_flight: bool) -> None:
        self.issue(consumer.channel, "channel.close", dict(DONE), in_flight=in_flight)

    def _held_by(self, consumer: Consumer) -> list[int]:
        """The tags of the deliveries that it has not settled."""
        state = self.state(consumer.channel)
        return [tag for tag, each in state.unacknowledged.items() if each.consumer is consumer] if state else []

    def _some_consumer(self, draw: Draw, is_to_hold: bool = False) -> Consumer | None:
        """Best one that holds a delivery, where it is to."""
        everybody: list[Consumer] = [
            consumer
            for name in QUEUES
            if (queue := self.plan.queue(name)) is not None
            for consumer in queue.consumers
            if self.plan.usable(*consumer.channel) and not consumer.tag.startswith(CHOSEN)
        ]
        holding = [each for each in everybody if self._held_by(each)] if is_to_hold else []
        return draw(st.sampled_from(holding or everybody)) if everybody else None
