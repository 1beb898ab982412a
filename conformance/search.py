"""Stateful search: Hypothesis makes command sequences, the target carries them out, the model judges.

Commands are chosen with a view to the planning broker (`conformance.plan`) only. Right ones and deliberately wrong
ones are made; how often which, is `tests/conformance/test_search_distribution.py`'s business to show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from conformance.command import Command
from conformance.plan import Plan
from conformance.session import Session
from model.alphabet import Content, Table
from model.dialects import Dialect
from model.state import Channel
from model.verdict import Failure
from targets.errors import TargetError

#: The channels that sequences use: two on one connection, one on another.
CHANNELS = (("a", 1), ("a", 2), ("b", 1))
QUEUES = ("q1", "q2")
SETTLING = ("basic.ack", "basic.reject", "basic.nack")

#: How often each action is tried, in parts of the whole. Without messages and consumers nothing else is interesting;
#: what ends a channel is rare, so that sequences live long enough.
WEIGHTS = {
    "publish_confirmed": 10, "publish": 6, "publish_through_exchange": 2, "consume": 8, "get": 6, "cancel": 3,
    "ack": 14, "nack": 8, "reject": 4, "recover": 2, "settle_everything": 1, "close_channel": 4,
    "close_connection": 3, "purge": 1, "delete_and_declare": 2, "look": 2, "make_a_mistake": 2,
}  # fmt: skip

#: Draws from a strategy.
Draw = Callable[[st.SearchStrategy[Any]], Any]

_actions = st.sampled_from([action for action, weight in WEIGHTS.items() for _ in range(weight)])
_channels = st.sampled_from(CHANNELS)
_queues = st.sampled_from(QUEUES)
_types = st.sampled_from(("classic", "quorum"))
_picks = st.integers(0, 7)
_prefetches = st.sampled_from((0, 1, 1, 2, 3))
_flags = st.booleans()
_seldom = st.sampled_from((False, False, False, True))
_mistakes = st.sampled_from(
    ("unknown tag", "settled tag", "used consumer tag", "missing queue", "missing exchange", "other properties")
)


class Deviation(AssertionError):
    """A sequence showed a failure that was not known yet. One subclass for each identity, so that each is shrunk."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.identity)
        self.failure = failure


_deviations: dict[str, type[Deviation]] = {}


def deviation(failure: Failure) -> Deviation:
    kind = _deviations.get(failure.identity)
    if kind is None:
        kind = _deviations[failure.identity] = type(f"Deviation{len(_deviations) + 1}", (Deviation,), {})
    return kind(failure)


class CommandSearch(RuleBasedStateMachine):
    """One sequence. Subclassed for each run, with `open_session`, `finished`, `dialect` and what is known already."""

    dialect: ClassVar[Dialect]
    #: identities of failures that need not be reported again
    known: ClassVar[set[str]]
    #: the first new failure, with the sequence that showed it and its commands
    failure: ClassVar[Failure | None]
    failing_sequence: ClassVar[str]
    failing: ClassVar[tuple[Command, ...]]
    #: the target was lost in some sequence: nothing that follows is carried out
    lost: ClassVar[TargetError | None] = None

    @classmethod
    def open_session(cls) -> Session | None:
        """A session for the next sequence; None when there is to be none any more."""
        raise NotImplementedError

    @classmethod
    def finished(cls, session: Session, commands: list[Command]) -> None:
        """Told of every finished sequence and its commands."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan(self.dialect)
        self.commands: list[Command] = []
        self.bodies = 0
        self.tags = 0
        # None when the time is up: the remaining sequences are empty
        self.session = type(self).open_session()

    # -------------------------------------------------------------------------------------- what is drawn

    @initialize(first=_types, second=_types)
    def declare_queues(self, first: str, second: str) -> None:
        for queue, kind in zip(QUEUES, (first, second), strict=True):
            self.declare(("a", 1), queue, kind)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One action. A single rule, as Hypothesis leaves out some of several in every sequence."""
        getattr(self, data.draw(_actions))(data.draw)

    # ------------------------------------------------------------------------------------------- publishing

    def publish(self, draw: Draw) -> None:
        self.publish_to(draw(_channels), draw(_queues), confirming=draw(_flags), mandatory=draw(_seldom))

    def publish_confirmed(self, draw: Draw) -> None:
        self.publish_to(draw(_channels), draw(_queues), confirming=True, mandatory=False)

    def publish_to(self, channel: tuple[str, int], queue: str, *, confirming: bool, mandatory: bool) -> None:
        if confirming and self.dialect.extensions and not self.is_confirming(channel):
            self.issue(channel, "confirm.select", {})
        arguments: Table = {"routing_key": queue}
        if mandatory:
            arguments["mandatory"] = True
        self.issue(channel, "basic.publish", arguments, self.new_content())

    def publish_through_exchange(self, draw: Draw) -> None:
        channel, queue, kind = draw(_channels), draw(_queues), draw(st.sampled_from(("fanout", "direct")))
        exchange = f"x-{kind}"
        self.issue(channel, "exchange.declare", {"exchange": exchange, "type": kind})
        for key in ("k", "l")[: 2 if draw(_seldom) else 1]:
            self.issue(channel, "queue.bind", {"queue": queue, "exchange": exchange, "routing_key": key})
        self.issue(channel, "basic.publish", {"exchange": exchange, "routing_key": "k"}, self.new_content())

    # -------------------------------------------------------------------------------------------- consuming

    def consume(self, draw: Draw) -> None:
        channel = draw(_channels)
        self.issue(channel, "basic.qos", {"prefetch_count": draw(_prefetches)})
        self.tags += 1
        arguments: Table = {"queue": draw(_queues), "consumer_tag": f"t{self.tags}"}
        if draw(_seldom):
            arguments["no_ack"] = True
        self.issue(channel, "basic.consume", arguments)

    def cancel(self, draw: Draw) -> None:
        channel = draw(self.channels_with(lambda state: bool(state.consumers)))
        state = self.state(channel)
        tags = list(state.consumers) if state else []
        self.issue(channel, "basic.cancel", {"consumer_tag": tags[draw(_picks) % len(tags)] if tags else "t0"})

    def get(self, draw: Draw) -> None:
        arguments: Table = {"queue": draw(_queues)}
        if draw(_seldom):
            arguments["no_ack"] = True
        self.issue(draw(_channels), "basic.get", arguments)

    # --------------------------------------------------------------------------------------------- settling

    def ack(self, draw: Draw) -> None:
        self.settle(draw, "basic.ack", multiple=draw(_flags))

    def nack(self, draw: Draw) -> None:
        if not self.dialect.extensions:
            self.reject(draw)
            return
        self.settle(draw, "basic.nack", multiple=draw(_flags), requeue=draw(_flags))

    def reject(self, draw: Draw) -> None:
        self.settle(draw, "basic.reject", requeue=draw(_flags))

    def recover(self, draw: Draw) -> None:
        method = "basic.recover" if draw(_flags) else "basic.recover-async"
        channel = draw(self.channels_with(lambda state: bool(state.unacknowledged)))
        # without requeue it is an error of the connection
        self.issue(channel, method, {} if draw(_seldom) and draw(_seldom) else {"requeue": True})

    def settle_everything(self, draw: Draw) -> None:
        """Tag 0: everything with `multiple`, an error without."""
        channel = draw(self.channels_with(lambda state: bool(state.unacknowledged)))
        arguments: Table = {"delivery_tag": 0}
        if not draw(_seldom):
            arguments["multiple"] = True
        if self.dialect.extensions and draw(_flags):
            self.issue(channel, "basic.nack", {**arguments, "requeue": True})
        else:
            self.issue(channel, "basic.ack", arguments)

    # ----------------------------------------------------------------------------------------------- ending

    def close_channel(self, draw: Draw) -> None:
        channel = draw(self.channels_with(lambda state: bool(state.unacknowledged)))
        self.issue(channel, "channel.close", {"reply_code": 200, "reply_text": "done"})

    def close_connection(self, draw: Draw) -> None:
        """Only the second connection: with the first one gone little is left to do."""
        if self.plan.channel("b", 1) is None:
            return
        if draw(_flags):
            self.issue(("b", 0), "socket.abort", {})
        else:
            self.issue(("b", 0), "connection.close", {"reply_code": 200, "reply_text": "done"})

    def purge(self, draw: Draw) -> None:
        self.issue(draw(_channels), "queue.purge", {"queue": draw(_queues)})

    def delete_and_declare(self, draw: Draw) -> None:
        channel, queue = draw(_channels), draw(_queues)
        self.issue(channel, "queue.delete", {"queue": queue})
        self.declare(channel, queue, draw(_types))

    def look(self, draw: Draw) -> None:
        self.issue(draw(_channels), "queue.declare", {"queue": draw(_queues), "passive": True})

    # ------------------------------------------------------------------------------------- deliberately wrong

    def make_a_mistake(self, draw: Draw) -> None:
        channel, pick, mistake = draw(_channels), draw(_picks), draw(_mistakes)
        state = self.state(channel)
        if mistake == "unknown tag":
            self.issue(channel, SETTLING[pick % (3 if self.dialect.extensions else 2)], {"delivery_tag": 40 + pick})
        elif mistake == "settled tag":
            tag = state.settled[-1] if state and state.settled else 1
            self.issue(channel, SETTLING[pick % (3 if self.dialect.extensions else 2)], {"delivery_tag": tag})
        elif mistake == "used consumer tag" and state and state.consumers:
            self.issue(channel, "basic.consume", {"queue": "q1", "consumer_tag": next(iter(state.consumers))})
        elif mistake == "missing queue":
            method = ("basic.get", "basic.consume", "queue.purge")[pick % 3]
            self.issue(channel, method, {"queue": "missing"})
        elif mistake == "missing exchange":
            self.issue(channel, "basic.publish", {"exchange": "missing"}, Content())
        elif mistake == "other properties":
            self.issue(channel, "queue.declare", {"queue": "q1", "durable": True, "auto_delete": True})

    # ------------------------------------------------------------------------------------------------ steps

    def state(self, channel: tuple[str, int]) -> Channel | None:
        return self.plan.channel(*channel)

    def is_confirming(self, channel: tuple[str, int]) -> bool:
        state = self.state(channel)
        return state is not None and state.confirming

    def new_content(self) -> Content:
        """A body of its own for every message, so that a delivery tells which one it is."""
        self.bodies += 1
        return Content({}, f"m{self.bodies}".encode())

    def channels_with(self, wanted: Callable[[Channel], bool]) -> st.SearchStrategy[tuple[str, int]]:
        """The channels of which that is true; all of them where it is true of none."""
        states = ((key, self.state(key)) for key in CHANNELS)
        fitting = [key for key, state in states if state is not None and wanted(state)]
        return st.sampled_from(fitting or CHANNELS)

    def settle(self, draw: Draw, method: str, **flags: bool) -> None:
        """One of the outstanding deliveries. Where there are none, a publish: mistakes are made elsewhere."""
        channel = draw(self.channels_with(lambda state: bool(state.unacknowledged)))
        state = self.state(channel)
        if state is None or not state.unacknowledged:
            self.publish_confirmed(draw)
            return
        tags = list(state.unacknowledged)
        arguments = {"delivery_tag": tags[draw(_picks) % len(tags)], **{name: True for name, on in flags.items() if on}}
        self.issue(channel, method, arguments)

    def declare(self, channel: tuple[str, int], queue: str, kind: str) -> None:
        arguments: Table = {"queue": queue, "durable": True}
        if kind != "classic" and self.dialect.extensions:
            arguments["arguments"] = {"x-queue-type": kind}
        if self.plan.queue(queue) is None:
            self.issue(channel, "queue.declare", arguments)

    def issue(self, channel: tuple[str, int], method: str, arguments: Table, content: Content | None = None) -> None:
        """Carry out one command on plan and target; a channel that was closed is opened again first."""
        connection, number = channel
        if not self.plan.connected(connection):
            return
        if number and not self.plan.usable(connection, number):
            self._carry_out(Command(connection, number, "channel.open"))
        self._carry_out(Command(connection, number, method, arguments, content))

    def _carry_out(self, command: Command) -> None:
        # the plan always, whatever became of the target: what is drawn next may depend on nothing else
        self.plan.carry_out(command)
        if self.session is None or self.session.over or self.lost is not None:
            return
        self.commands.append(command)
        try:
            self.session.run(command)
        except TargetError as error:
            type(self).lost = error
            return
        for failure in self.session.judge.acceptor.failures:
            if failure.identity not in self.known:
                raise deviation(failure)

    def teardown(self) -> None:
        if self.session is not None:
            with self.session:
                pass
            type(self).finished(self.session, self.commands)
