"""The theme timeouts: deliveries that are not settled in time, together with everything that consumers do.

Quorum queues mostly, whose consumers have little time by their own argument, by that of the queue, or much of it; and
then time passes. Waits are so long that a short time is certainly over and a long one certainly not, or that both are
(`model.broker.deadlines`); few are shorter than either. What is out at one time is little: otherwise it could time out
in more orders than a judge can tell apart. Sequences spend most of their time waiting, so they are carried out side by
side, after they have been made (`conformance.session.side_by_side`).
"""

from __future__ import annotations

from hypothesis import strategies as st

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.search.actions import QUEUES, Draw, Key, flags, picks, queues, seldom
from amqpspec.conformance.search.consumers import ConsumerActions
from amqpspec.conformance.search.traffic import SETTLING
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.delivery_timeouts import ARGUMENT
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import CLOCK_WAIT, OPERATOR, Table

#: How often each action is tried, in parts of the whole.
TIMEOUTS = {
    "publish_few": 10, "consume_timed": 12, "let_time_pass": 18, "settle_late": 10, "ack": 4,
    "nack": 3, "reject": 3, "settle_all_so_far": 4, "settle_everything": 2, "recover_late": 3,
    "get_what_can_be_got": 5, "cancel": 2, "cancel_timed_out": 4, "consume_again": 4, "limit_next": 2,
    "settle_late_in_transaction": 3, "delete_timed": 3, "close_channel": 2, "close_connection": 1,
    "reconnect_as_wished": 2, "look": 2, "purge_what_can_be_purged": 1, "end_active_consumer": 2, "make_a_mistake": 1,
}  # fmt: skip

#: Milliseconds that a delivery may take.
SHORT, LONG = 500, 2500
#: Kinds of queues (`conformance.search.actions.KINDS`), the frequent ones more than once. None that expires: by its own
#: clock the broker finds that it is not used, and by the time that it is gone somebody may consume from it.
TIMED_KINDS = (
    "quorum", "quorum", "quorum", "timed quorum", "timed quorum", "slowly timed quorum", "single active quorum",
    "single active quorum", "timed single active quorum", "timed single active quorum", "few returns",
    "timed few returns", "classic", "stream",
)  # fmt: skip
kinds = st.sampled_from(TIMED_KINDS)

#: Milliseconds: a short time is over and a long one is not, both are, or neither.
_waits = st.sampled_from((SHORT + 50, SHORT + 50, SHORT + 50, LONG + 50, LONG + 50, 150))
#: Milliseconds in which a broker has certainly done what it does by its clock (`model.broker.deadlines`).
_SURELY = 1050
#: Milliseconds that a sequence waits, at least: then it is over.
_ENOUGH = 8000
#: Most deliveries whose time runs when it passes.
_MOST = 3

_times = st.sampled_from((None, None, SHORT, SHORT, SHORT, LONG, LONG, 600_000))
_limits = st.sampled_from((1, 1, 1, 2, 2, 0))
_ends = st.sampled_from(("tx.commit", "tx.commit", "tx.rollback"))


class TimeoutActions(ConsumerActions):
    """Each action draws who acts and on what, and issues its commands; those it shares are the consumers'."""

    def __init__(self) -> None:
        super().__init__()
        #: milliseconds that have been waited
        self.waited = 0

    def set_the_clocks(self, draw: Draw) -> None:
        """What is there before time passes: who wants to be told of what, a backlog, consumers, or none of it."""
        if draw(flags):
            self._connect_as_wished(draw)
        for _ in range(draw(st.integers(0, 2))):
            self.publish_few(draw)
        for _ in range(draw(st.integers(1, 3))):
            self.consume_timed(draw)

    def let_time_pass(self, draw: Draw) -> None:
        """With something out whose time runs, if need be of a consumer that is made for it."""
        if not self._timing():
            self.consume_timed(draw)
        if not self._timing():
            self.publish_few(draw)
        settled = None
        # one that is still out was kept out of a window
        while len(timing := self._timing()) > _MOST and timing[0] != settled:
            settled = timing[0]
            self.issue(settled[0], "basic.ack", {"delivery_tag": settled[1]})
        milliseconds = draw(_waits)
        self._wait(milliseconds)
        if milliseconds < SHORT:
            return
        before = None
        # what timed out may be with somebody else by now, whose time is short as well
        while (late := self._late()) != before:
            self._wait(_SURELY)
            before = late
        if draw(flags):
            self.look(draw)

    def _wait(self, milliseconds: int) -> None:
        self.waited += milliseconds
        self.carry_out(Command(OPERATOR, 0, CLOCK_WAIT, {"milliseconds": milliseconds}))

    @property
    def is_over(self) -> bool:
        return self.waited >= _ENOUGH

    def publish_few(self, draw: Draw) -> None:
        """As many as may be out, and those that stay in the queue."""
        channel, name = self.channel(draw), draw(queues)
        for _ in range(draw(st.integers(1, 3))):
            if len(self._timing()) < _MOST:
                self.publish_to(channel, name, confirming=draw(seldom), mandatory=False)

    # -------------------------------------------------------------------------------------------- consuming

    def consume_timed(self, draw: Draw) -> None:
        """Best from a queue that others consume from, or that has something to hand over."""
        waiting = [name for name in QUEUES if (queue := self.plan.queue(name)) is not None and queue.messages]
        name = draw(st.sampled_from(waiting)) if waiting and draw(flags) else draw(queues)
        self.declare(self.channels()[0], name, draw(kinds))
        self._consume_for_a_time(draw, self.channel(draw), name, self.new_tag(draw))

    def _consume_for_a_time(self, draw: Draw, channel: Key, queue: str, tag: str) -> None:
        state = self.state(channel)
        if state is None or not state.prefetch or not draw(seldom):
            limit = draw(_limits)
            known = self.plan.queue(queue)
            if known is not None and (known.type is QueueType.STREAM or len(known.messages) > 2):
                limit = limit or 2
            self.issue(channel, "basic.qos", {"prefetch_count": limit})
        arguments: Table = {"queue": queue, "consumer_tag": tag}
        table = self._consumer_arguments(draw, queue)
        if table:
            arguments["arguments"] = table
        if draw(seldom) and draw(seldom) and self._type(queue) is not QueueType.STREAM:
            arguments["no_ack"] = True
        self.issue(channel, "basic.consume", arguments)

    def _consumer_arguments(self, draw: Draw, queue: str) -> Table:
        kind = self._type(queue)
        if kind is QueueType.STREAM:
            return {"x-stream-offset": "first"}
        table: Table = {}
        time = draw(_times)
        if kind is QueueType.QUORUM and time is not None:
            table[ARGUMENT] = time
        if draw(seldom):
            table["x-priority"] = draw(st.sampled_from((-1, 5)))
        return table

    def limit_next(self, draw: Draw) -> None:
        """The limit of the consumers to come."""
        self.issue(self.channel(draw), "basic.qos", {"prefetch_count": draw(_limits)})

    def consume_again(self, draw: Draw) -> None:
        """Beside a consumer that has timed out, or in its place: with its tag or another one."""
        found = self._timed_out_consumer(draw)
        if found is None:
            self.consume_timed(draw)
            return
        pick = draw(picks)
        if pick < 5:
            self.issue(found.channel, "basic.cancel", {"consumer_tag": found.tag})
        # to consume with a tag that is in use ends the connection
        tag = found.tag if pick < 4 or pick == 7 else self.new_tag(draw)
        self._consume_for_a_time(draw, found.channel, found.queue.name, tag)

    def cancel_timed_out(self, draw: Draw) -> None:
        found = self._timed_out_consumer(draw)
        if found is None:
            self.cancel(draw)
            return
        self.issue(found.channel, "basic.cancel", {"consumer_tag": found.tag})
        if draw(flags):
            self.settle_late(draw)

    # --------------------------------------------------------------------------------------------- settling

    def settle_late(self, draw: Draw) -> None:
        """Something that has timed out; with all before it, or what is present as well, now and then."""
        channel = self._late_channel(draw)
        state = self.state(channel)
        if state is None or not state.timed_out:
            self.ack(draw)
            return
        tag = draw(st.sampled_from(list(state.timed_out)))
        self._settle_somehow(draw, channel, state, tag)

    def _settle_somehow(self, draw: Draw, channel: Key, state: Channel, tag: int) -> None:
        method = draw(st.sampled_from(("basic.ack", *SETTLING)))
        arguments: Table = {"delivery_tag": tag}
        if method != "basic.reject" and draw(seldom):
            arguments["multiple"] = True
            if draw(flags):
                arguments["delivery_tag"] = draw(st.sampled_from([0, *state.outstanding_tags]))
        if method != "basic.ack" and draw(flags):
            arguments["requeue"] = True
        self.issue(channel, method, arguments)

    def recover_late(self, draw: Draw) -> None:
        method = "basic.recover" if draw(flags) else "basic.recover-async"
        self.issue(self._late_channel(draw), method, {"requeue": True})

    def settle_late_in_transaction(self, draw: Draw) -> None:
        """What has timed out or not is settled on condition; its time may be up before the commit."""
        channel = self.channel_with(draw, lambda each: bool(each.outstanding_tags) and not each.confirming)
        state = self.state(channel)
        if state is None or not state.outstanding_tags or state.confirming:
            self.let_time_pass(draw)
            return
        if state.transaction is None:
            self.issue(channel, "tx.select", {})
        for _ in range(1 + draw(flags)):
            if state.outstanding_tags:
                self._settle_somehow(draw, channel, state, draw(st.sampled_from(state.outstanding_tags)))
        if draw(seldom):
            self.let_time_pass(draw)
        self.issue(channel, draw(_ends), {})

    # ----------------------------------------------------------------------------------------------- ending

    def delete_timed(self, draw: Draw) -> None:
        """Best a queue one of whose consumers has timed out; the next one of that name may be of another kind."""
        found = self._timed_out_consumer(draw)
        name = found.queue.name if found is not None and draw(picks) < 6 else draw(queues)
        channel = self.channel(draw)
        self.issue(channel, "queue.delete", {"queue": name})
        self.declare(channel, name, draw(kinds))

    # ------------------------------------------------------------------------------------------------ parts

    def _timing(self) -> list[tuple[Key, int]]:
        """What is out and will time out soon."""
        return [
            (key, tag)
            for key in self.channels()
            if (state := self.state(key)) is not None and self.plan.usable(*key) and state.transaction is None
            for tag, entry in state.unacknowledged.items()
            if entry.deadline is not None and entry.deadline.seconds <= LONG / 1000
        ]

    def _late(self) -> list[tuple[Key, int]]:
        """What has timed out."""
        return [(key, tag) for key, channel in self.plan.broker.channels.items() for tag in channel.timed_out]

    def _late_channel(self, draw: Draw) -> Key:
        """One with something that has timed out."""
        return self.channel_with(draw, lambda state: bool(state.timed_out))

    def _timed_out_consumer(self, draw: Draw) -> Consumer | None:
        found: list[Consumer] = [
            consumer
            for name in QUEUES
            if (queue := self.plan.queue(name)) is not None
            for consumer in self._consumers_of(queue)
            if consumer.timed_out
        ]
        return draw(st.sampled_from(found)) if found else None

    def _consumers_of(self, queue: Queue) -> list[Consumer]:
        return [consumer for consumer in queue.consumers if self.plan.usable(*consumer.channel)]
