"""Stateful search: Hypothesis makes command sequences, the target carries them out, the model judges.

Commands are chosen with a view to the planning broker (`conformance.plan`) only. Right ones and deliberately wrong
ones are made; how often which, is `tests/conformance/test_search_distribution.py`'s business to show.
"""

from __future__ import annotations

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

_channels = st.sampled_from(CHANNELS)
_queues = st.sampled_from(QUEUES)
_picks = st.integers(0, 7)
_prefetches = st.sampled_from((0, 1, 2, 3))
_flags = st.booleans()
_seldom = st.sampled_from((False, False, False, True))


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

    # -------------------------------------------------------------------------------------- the beginning

    @initialize(first=st.sampled_from(("classic", "quorum")), second=st.sampled_from(("classic", "quorum")))
    def declare_queues(self, first: str, second: str) -> None:
        for queue, kind in zip(QUEUES, (first, second), strict=True):
            self.declare("a", 1, queue, kind)

    # ------------------------------------------------------------------------------------------- publishing

    @rule(channel=_channels, queue=_queues, confirming=_flags, mandatory=_seldom)
    def publish(self, channel: tuple[str, int], queue: str, confirming: bool, mandatory: bool) -> None:
        self.publish_to(channel, queue, confirming, mandatory)

    def publish_to(self, channel: tuple[str, int], queue: str, confirming: bool, mandatory: bool) -> None:
        if confirming and not self.is_confirming(channel):
            self.issue(channel, "confirm.select", {})
        self.bodies += 1
        arguments: Table = {"routing_key": queue}
        if mandatory:
            arguments["mandatory"] = True
        self.issue(channel, "basic.publish", arguments, Content({}, f"m{self.bodies}".encode()))

    @rule(channel=_channels, queue=_queues)
    def publish_confirmed(self, channel: tuple[str, int], queue: str) -> None:
        """Again, for its weight: without messages nothing else is interesting."""
        self.publish_to(channel, queue, True, False)

    @rule(channel=_channels, queue=_queues, kind=st.sampled_from(("fanout", "direct")), twice=_seldom)
    def publish_through_exchange(self, channel: tuple[str, int], queue: str, kind: str, twice: bool) -> None:
        exchange = f"x-{kind}"
        self.issue(channel, "exchange.declare", {"exchange": exchange, "type": kind})
        for key in ("k", "l")[: 2 if twice else 1]:
            self.issue(channel, "queue.bind", {"queue": queue, "exchange": exchange, "routing_key": key})
        self.bodies += 1
        arguments = {"exchange": exchange, "routing_key": "k"}
        self.issue(channel, "basic.publish", arguments, Content({}, f"m{self.bodies}".encode()))

    # -------------------------------------------------------------------------------------------- consuming

    @rule(channel=_channels, queue=_queues, prefetch=_prefetches, no_ack=_seldom)
    def consume(self, channel: tuple[str, int], queue: str, prefetch: int, no_ack: bool) -> None:
        self.issue(channel, "basic.qos", {"prefetch_count": prefetch})
        self.tags += 1
        arguments: Table = {"queue": queue, "consumer_tag": f"t{self.tags}"}
        if no_ack:
            arguments["no_ack"] = True
        self.issue(channel, "basic.consume", arguments)

    @rule(channel=_channels, pick=_picks)
    def cancel(self, channel: tuple[str, int], pick: int) -> None:
        state = self.state(channel)
        tags = list(state.consumers) if state else []
        tag = tags[pick % len(tags)] if tags else "t0"
        self.issue(channel, "basic.cancel", {"consumer_tag": tag})

    @rule(channel=_channels, queue=_queues, no_ack=_seldom)
    def get(self, channel: tuple[str, int], queue: str, no_ack: bool) -> None:
        arguments: Table = {"queue": queue}
        if no_ack:
            arguments["no_ack"] = True
        self.issue(channel, "basic.get", arguments)

    # --------------------------------------------------------------------------------------------- settling

    @rule(channel=_channels, pick=_picks, multiple=_flags)
    def ack(self, channel: tuple[str, int], pick: int, multiple: bool) -> None:
        self.settle(channel, "basic.ack", pick, {"multiple": True} if multiple else {})

    @rule(channel=_channels, pick=_picks, multiple=_flags, requeue=_flags)
    def nack(self, channel: tuple[str, int], pick: int, multiple: bool, requeue: bool) -> None:
        flags = {name: True for name, on in (("multiple", multiple), ("requeue", requeue)) if on}
        self.settle(channel, "basic.nack", pick, flags)

    @rule(channel=_channels, pick=_picks, requeue=_flags)
    def reject(self, channel: tuple[str, int], pick: int, requeue: bool) -> None:
        self.settle(channel, "basic.reject", pick, {"requeue": True} if requeue else {})

    @rule(channel=_channels, requeue=st.sampled_from((True, True, True, False)), answered=_flags)
    def recover(self, channel: tuple[str, int], requeue: bool, answered: bool) -> None:
        method = "basic.recover" if answered else "basic.recover-async"
        self.issue(channel, method, {"requeue": True} if requeue else {})

    @rule(channel=_channels, multiple=_flags, nack=_flags)
    def settle_everything(self, channel: tuple[str, int], multiple: bool, nack: bool) -> None:
        """Tag 0: everything with `multiple`, an error without."""
        arguments: Table = {"delivery_tag": 0}
        if multiple:
            arguments["multiple"] = True
        self.issue(channel, "basic.nack" if nack else "basic.ack", {**arguments, **({"requeue": True} if nack else {})})

    # ----------------------------------------------------------------------------------------------- ending

    @rule(channel=_channels)
    def close_channel(self, channel: tuple[str, int]) -> None:
        self.issue(channel, "channel.close", {"reply_code": 200, "reply_text": "done"})

    @rule(abruptly=_flags)
    def close_connection(self, abruptly: bool) -> None:
        """Only the second connection: with the first one gone little is left to do."""
        if self.plan.channel("b", 1) is not None:
            method = "socket.abort" if abruptly else "connection.close"
            self.issue(("b", 0), method, {} if abruptly else {"reply_code": 200, "reply_text": "done"})

    @rule(channel=_channels, queue=_queues)
    def purge(self, channel: tuple[str, int], queue: str) -> None:
        self.issue(channel, "queue.purge", {"queue": queue})

    @rule(channel=_channels, queue=_queues, kind=st.sampled_from(("classic", "quorum")))
    def delete_and_declare(self, channel: tuple[str, int], queue: str, kind: str) -> None:
        self.issue(channel, "queue.delete", {"queue": queue})
        self.declare(*channel, queue, kind)

    @rule(channel=_channels, queue=_queues)
    def look(self, channel: tuple[str, int], queue: str) -> None:
        self.issue(channel, "queue.declare", {"queue": queue, "passive": True})

    # ------------------------------------------------------------------------------------- deliberately wrong

    @rule(
        channel=_channels,
        pick=_picks,
        mistake=st.sampled_from(
            ("unknown tag", "settled tag", "used consumer tag", "missing queue", "missing exchange", "other properties")
        ),
    )
    def make_a_mistake(self, channel: tuple[str, int], pick: int, mistake: str) -> None:
        state = self.state(channel)
        if mistake == "unknown tag":
            self.issue(channel, ("basic.ack", "basic.nack", "basic.reject")[pick % 3], {"delivery_tag": 40 + pick})
        elif mistake == "settled tag":
            tag = state.settled[-1] if state and state.settled else 1
            self.issue(channel, ("basic.ack", "basic.nack", "basic.reject")[pick % 3], {"delivery_tag": tag})
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

    def settle(self, channel: tuple[str, int], method: str, pick: int, flags: dict[str, Any]) -> None:
        """One of the outstanding deliveries; where there are none, nothing: mistakes are made elsewhere."""
        state = self.state(channel)
        if state is not None and state.unacknowledged:
            tags = list(state.unacknowledged)
            self.issue(channel, method, {"delivery_tag": tags[pick % len(tags)], **flags})

    def declare(self, connection: str, number: int, queue: str, kind: str) -> None:
        arguments: Table = {"queue": queue, "durable": True}
        if kind != "classic":
            arguments["arguments"] = {"x-queue-type": kind}
        if self.plan.queue(queue) is None:
            self.issue((connection, number), "queue.declare", arguments)

    def issue(self, channel: tuple[str, int], method: str, arguments: Table, content: Content | None = None) -> None:
        """Carry out one command on plan and target; a channel that was closed is opened again first."""
        connection, number = channel
        if not self.plan.connected(connection) or self.session is None:
            return
        if number and not self.plan.usable(connection, number):
            self._carry_out(Command(connection, number, "channel.open"))
        self._carry_out(Command(connection, number, method, arguments, content))

    def _carry_out(self, command: Command) -> None:
        assert self.session is not None
        if self.session.over or self.lost is not None:
            return
        self.plan.carry_out(command)
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
