"""The theme consumers: several consumers on shared queues, their limits and priorities, and everything that ends them.

Queues of every kind, with a backlog or without; consumers on three channels of two connections; and then what makes a
difference between them: settling, other limits, cancels and deletions in mid-flight, channels and connections that end
with messages out.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import QUEUES, Draw, Key, flags, picks, queues, seldom
from amqpspec.conformance.search.traffic import TrafficActions
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Table

#: How often each action is tried, in parts of the whole.
CONSUMERS = {
    "publish_confirmed": 5, "publish_some": 6, "publish_with_priority": 4, "consume_shared": 15, "change_limit": 4,
    "limit_the_channel": 6, "ack": 8, "settle_all_so_far": 5, "nack": 4, "reject": 3, "return_again": 4,
    "return_some": 4, "recover": 2, "settle_everything": 3, "get_what_can_be_got": 2, "cancel": 4, "cross": 10,
    "delete_consumed": 4, "register_at_once": 2, "give_back_at_once": 2, "leave_at_once": 1,
    "end_active_consumer": 6, "close_channel": 3, "close_connection": 2, "reconnect_as_wished": 2, "look": 2,
    "purge_what_can_be_purged": 1, "make_a_mistake": 2, "consume_wrongly": 3,
    "meet_seldom": 5,
}  # fmt: skip

#: Kinds of queues (`conformance.search.actions.KINDS`), the frequent ones more than once.
SHARED_KINDS = (
    *("classic", "quorum") * 3, *("single active", "single active quorum", "stream") * 2,
    "priorities", "priorities", "few returns", "few returns", "any returns", "dead letters",
    "dead letters of few returns",
)  # fmt: skip

kinds = st.sampled_from(SHARED_KINDS)
limits = st.sampled_from((1, 2, 1, 0, 2, 3, 1, 5))
_some = st.integers(2, 4)
_message_priorities = st.sampled_from((0, 1, 2, 3, 4, 5, 9, 200))
_consumer_priorities = st.sampled_from((-1, 1, 5, 10))
_offsets = st.sampled_from(
    (
        "first",
        "first",
        "first",
        "next",
        "last",
        "last",
        "last",
        0,
        1,
        1,
        2,
        3,
        9,
        -1,
        "1h",
        "1s",
        None,
        None,
        None,
        "0h",
    )
)
#: Tags begin with either, so that their order is not that in which the consumers were made.
_tag_stems = st.sampled_from("st")
_told = st.sampled_from((True, False, False))
#: Of the three channels (`conformance.search.actions.ROLES`), by their places.
PAIRS_OF_ROLES = ((0, 2), (0, 1), (1, 2), (2, 0), (2, 1))
DONE: Table = {"reply_code": 200, "reply_text": "done"}


class ConsumerActions(TrafficActions):
    """Each action draws who acts and on what, and issues its commands; those it shares are the traffic's."""

    def set_the_stage(self, draw: Draw) -> None:
        """What is there before anything happens: who wants to be told of what, a backlog, consumers, or none of it."""
        if draw(flags):
            self._connect_as_wished(draw)
        if draw(flags):
            self.publish_some(draw)
        for _ in range(draw(st.integers(0, 3))):
            self.consume_shared(draw)

    # ------------------------------------------------------------------------------------------- publishing

    def publish_some(self, draw: Draw) -> None:
        """Several messages, one by one or all at once."""
        channel, queue, many, at_once = self.channel(draw), draw(queues), draw(_some), draw(flags)
        for number in range(many):
            in_flight = at_once and number < many - 1
            self.issue(channel, "basic.publish", {"routing_key": queue}, self.new_content(), in_flight=in_flight)

    def publish_with_priority(self, draw: Draw) -> None:
        """To a queue that knows priorities, mostly; what is published there last shall not always be first."""
        ranking = [name for name in QUEUES if self._is(name, "x-max-priority") or self._type(name) is QueueType.QUORUM]
        channel, queue = self.channel(draw), draw(st.sampled_from(ranking or QUEUES))
        for _ in range(draw(_some) if draw(flags) else 1):
            content = self.new_content({"priority": draw(_message_priorities)})
            self.issue(channel, "basic.publish", {"routing_key": queue}, content)

    # -------------------------------------------------------------------------------------------- consuming

    def consume_shared(self, draw: Draw) -> None:
        self.consume_from(draw, self.channel(draw), self._queue_to_share(draw), self.new_tag(draw))

    def new_tag(self, draw: Draw) -> str:
        self.tags += 1
        return f"{draw(_tag_stems)}{self.tags}"

    def consume_from(self, draw: Draw, channel: Key, queue: str, tag: str) -> None:
        """A consumer as the queue can have it, with a limit perhaps; mistakes are seldom."""
        self.make_room(draw, channel, self._type(queue))
        self.consume_as_it_is(draw, channel, queue, tag, in_flight=False)

    def consume_as_it_is(self, draw: Draw, channel: Key, queue: str, tag: str, *, in_flight: bool) -> None:
        arguments: Table = {"queue": queue, "consumer_tag": tag}
        is_named = in_flight or not (draw(seldom) and draw(seldom))
        if not is_named:
            del arguments["consumer_tag"]
        kind = self._type(queue)
        if kind is QueueType.STREAM:
            offset = draw(_offsets)
            if offset is not None:
                arguments["arguments"] = {"x-stream-offset": offset}
        else:
            if draw(seldom) and draw(flags):
                arguments["no_ack"] = True
            if self.dialect.has("consumer_priorities") and draw(flags):
                arguments["arguments"] = {"x-priority": draw(_consumer_priorities)}
            if draw(seldom) and draw(seldom):
                arguments["exclusive"] = True
        if is_named and draw(seldom) and draw(seldom):
            arguments["nowait" if draw(flags) else "no_local"] = True
        self.issue(channel, "basic.consume", arguments, in_flight=in_flight)

    def make_room(self, draw: Draw, channel: Key, kind: QueueType) -> None:
        """Give the consumer to come a limit; streams want one, and no queue but classic ones bears the channel's."""
        state = self.state(channel)
        if kind is not QueueType.CLASSIC and state is not None and state.channel_prefetch and not draw(seldom):
            self.issue(channel, "basic.qos", {"prefetch_count": 0, "global_": True})
        limit = draw(limits)
        if kind is QueueType.STREAM:
            limit = limit or 2
        elif state is not None and state.prefetch and draw(seldom):
            return  # the one that the channel's last consumer has
        self.issue(channel, "basic.qos", {"prefetch_count": limit})

    def change_limit(self, draw: Draw) -> None:
        """While deliveries are out, mostly."""
        arguments: Table = {"prefetch_count": draw(limits)}
        if draw(flags):
            arguments["global_"] = True
        self.issue(self.channel_with(draw, lambda state: bool(state.unacknowledged)), "basic.qos", arguments)

    def get_what_can_be_got(self, draw: Draw) -> None:
        name = draw(queues)
        if not self._refuses_gets(name) or (draw(seldom) and draw(seldom)):
            self.issue(self.channel(draw), "basic.get", {"queue": name})

    def purge_what_can_be_purged(self, draw: Draw) -> None:
        name = draw(queues)
        if self._type(name) is not QueueType.STREAM:
            self.issue(self.channel(draw), "queue.purge", {"queue": name})

    # --------------------------------------------------------------------------------------------- settling

    def return_again(self, draw: Draw) -> None:
        """Give the same message back a few times, whoever gets it: best one of a queue that counts that."""
        method = "basic.nack" if self.dialect.has("basic.nack") and draw(seldom) else "basic.reject"
        counting = [name for name in QUEUES if self._is(name, "x-delivery-limit")]
        found = self._some_delivery(draw, lambda each: each.queue.name in counting)
        if counting and (found is None or found[2].queue.name not in counting):
            self._take_from(draw, counting[0])
            found = self._some_delivery(draw, lambda each: each.queue.name in counting)
        if found is None:
            self.reject(draw)
            return
        message = found[2].message
        for _ in range(draw(_some)):
            held = self._some_delivery(draw, lambda each: each.message is message)
            if held is None or held[2].message is not message:
                return
            self.issue(held[0], method, {"delivery_tag": held[1], "requeue": True})
            if message in held[2].queue.messages:
                self._take_from(draw, held[2].queue.name)

    def _take_from(self, draw: Draw, name: str, channel: Key | None = None) -> None:
        """Get a message, which need not have been there before, on that channel or any."""
        queue = self.plan.queue(name)
        if queue is None or not queue.messages:
            self.issue(self.channel(draw), "basic.publish", {"routing_key": name}, self.new_content())
        self.issue(channel or self.channel(draw), "basic.get", {"queue": name})

    def return_some(self, draw: Draw) -> None:
        names = [name for name in QUEUES if not self._refuses_gets(name)]
        ranking = [name for name in names if self._is(name, "x-max-priority")]
        if names:
            self.return_several_to(draw, ranking or names)

    def _refuses_gets(self, name: str) -> bool:
        kind = self._type(name)
        alone = self._is(name, "x-single-active-consumer")
        return kind is QueueType.STREAM or (kind is QueueType.QUORUM and alone)

    def _some_delivery(
        self, draw: Draw, wanted: Callable[[Unacknowledged], bool]
    ) -> tuple[Key, int, Unacknowledged] | None:
        """One of which that is true; any one where it is true of none. Channel, tag, and what it stands for."""
        held = [
            (key, tag, each)
            for key in self.channels()
            if (state := self.state(key)) is not None and self.plan.usable(*key)
            for tag, each in state.unacknowledged.items()
        ]
        fitting = [each for each in held if wanted(each[2])]
        return draw(st.sampled_from(fitting or held)) if held else None

    # ----------------------------------------------------------------------------------------------- ending

    def delete_consumed(self, draw: Draw) -> None:
        """A queue with consumers, mostly; the next one of that name may be of another kind."""
        consumed = [name for name in QUEUES if (queue := self.plan.queue(name)) is not None and queue.consumers]
        name = draw(st.sampled_from(consumed or QUEUES))
        channel = self.channel(draw)
        self.issue(channel, "queue.delete", {"queue": name})
        if draw(flags):
            self.declare(channel, name, draw(kinds))
        # a consumer that the broker has ended can be cancelled, and its tag is free
        gone = self.channel_with(draw, lambda state: bool(state.ended_consumers))
        state = self.state(gone)
        tags = list(state.ended_consumers) if state else []
        if tags and draw(flags):
            self.issue(gone, "basic.cancel", {"consumer_tag": tags[-1]})
        self.declare(channel, name, draw(kinds))
        if tags and draw(flags):
            self.consume_from(draw, gone, name, tags[-1])

    def end_active_consumer(self, draw: Draw) -> None:
        """Of a queue on which others wait, by all that can end it."""
        waited_for = [queue for queue in self._shared() if queue.single_active_consumer]
        alone = [name for name in QUEUES if self._is(name, "x-single-active-consumer")]
        if alone and not waited_for:
            # two, on different channels: so that one can go
            for channel in draw(st.sampled_from(PAIRS_OF_ROLES)):
                self.consume_from(draw, self.channels()[channel], alone[0], self.new_tag(draw))
            return
        waited_for = waited_for or self._shared()
        if not waited_for:
            self.consume_shared(draw)
            return
        queue: Queue = draw(st.sampled_from(waited_for))
        consumer = queue.consumers[0]
        connection = consumer.channel[0]
        pick = draw(picks)
        if pick < 4:
            self.issue(consumer.channel, "basic.cancel", {"consumer_tag": consumer.tag})
        elif pick < 6 or connection == self.connection_of(0):
            self.issue(consumer.channel, "channel.close", dict(DONE))
        elif pick == 6:
            self.issue((connection, 0), "socket.abort", {})
        else:
            self.issue((connection, 0), "connection.close", dict(DONE))
        if draw(flags):
            self.publish_to(self.channel(draw), queue.name, confirming=draw(flags), mandatory=False)

    def reconnect_as_wished(self, draw: Draw) -> None:
        """The second client comes back, to be told of cancelled consumers or not, and consumes."""
        connection = self.connection_of(1)
        if self.plan.channel(connection, 1) is not None:
            self.issue((connection, 0), "connection.close", dict(DONE))
        self._connect_as_wished(draw)
        self.consume_from(draw, (self.connection_of(1), 1), self._queue_to_share(draw), self.new_tag(draw))

    def _connect_as_wished(self, draw: Draw) -> None:
        connection = self.connection_of(1)
        if self.plan.connected(connection):
            wishes: Table = {"capabilities": {"consumer_cancel_notify": draw(_told)}}
            self.carry_out(Command(connection, 0, "connection.open", wishes))

    # ------------------------------------------------------------------------------------------------ parts

    def _type(self, name: str) -> QueueType:
        queue = self.plan.queue(name)
        return QueueType.CLASSIC if queue is None else queue.type

    def _is(self, name: str, argument: str) -> bool:
        queue = self.plan.queue(name)
        return queue is not None and bool(queue.arguments.get(argument))

    def _queue_to_share(self, draw: Draw) -> str:
        """One that has a consumer already, more often than not; it is declared again where it is gone."""
        consumed = [name for name in QUEUES if (queue := self.plan.queue(name)) is not None and queue.consumers]
        name: str = draw(st.sampled_from(consumed if consumed and draw(flags) else QUEUES))
        self.declare(self.channels()[0], name, draw(kinds))
        return name

    def _shared(self) -> list[Queue]:
        found = [queue for name in QUEUES if (queue := self.plan.queue(name)) is not None]
        return [queue for queue in found if len(queue.consumers) > 1]
