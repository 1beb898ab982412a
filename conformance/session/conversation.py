"""The frames of one sequence: sending, receiving, and waiting for what is owed.

Every frame, sent or received, is written to the trace, then judged. The conversation decides nothing about right and
wrong: it asks the judge what is still owed, and waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

from amqpspec.conformance.language.names import new_prefix
from amqpspec.conformance.session.declared import Declared
from amqpspec.conformance.session.last_sent import LastSent
from amqpspec.conformance.session.nodes import Nodes, node_of
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import Mark, TraceWriter
from amqpspec.conformance.verdicts.events import EventObserved, Listener, tell
from amqpspec.model.broker.reply_addresses import looks_like_address
from amqpspec.model.judging.questions import Questions
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import NO_HEARTBEAT, ChannelKey, Method, OperatorAction, TraceEvent
from amqpspec.targets.client.network import Network
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.codec.single_frames import as_understood

#: After so many deadlines what is owed is overdue, though other frames come all the time.
MOST_DEADLINES = 5

#: But not before so many other frames have come: with fewer it is the judge who takes the time.
LEAST_FRAMES = 100

#: Seconds after which more may have come that nobody has looked at: a judge on a busy machine takes its time.
UNREAD = 0.1

#: Seconds in which a broker ends a TCP connection that was closed by both sides.
END_OF_STREAM = 1.0

#: So many deadlines may pass before the broker reads on while a frame is being written.
WRITE_DEADLINES = 6


_ENDS_HANDSHAKE = frozenset({"connection.open-ok", "connection.close", "socket.closed", "socket.garbage"})


class Judge(Protocol):
    """Judges the frames of one sequence as they come, and answers questions about it.

    `conformance.verdicts.judge.SequenceJudge` is one.
    """

    @property
    def questions(self) -> Questions: ...

    def event(self, event: TraceEvent) -> None:
        """A frame was sent or received."""
        ...

    def mark(self, mark: Mark) -> None:
        """A barrier begins, or is complete, or the time for what is owed has passed."""
        ...


class Conversation:
    """All connections of one sequence with one target. Raises `targets.errors.TargetError`."""

    def __init__(
        self,
        target: TargetUnderTest,
        trace: TraceWriter,
        sequence: str,
        judge: Judge,
        listeners: Iterable[Listener] = (),
        patience: Patience | None = None,
        through_network: Collection[str] = (),
    ) -> None:
        """`through_network`: connections that go through a network which can fail."""
        self.target = target
        self.patience = patience or Patience(target.deadline, target.login_time)
        self.sequence = sequence
        self.questions = judge.questions
        #: what names on the broker begin with
        self.prefix = new_prefix()
        self._dialect = dialect_named(target.description.dialect)
        #: the latest address of direct replies that a message has carried
        self.reply_address = ""
        #: all that no queue is to be asked for by: that addresses can be declared is RabbitMQ's way (REPLY-002)
        self.not_declarable: set[str] = set()
        #: the headers of the latest message that has come to a consumer or by a get
        self.last_headers: Mapping[str, Any] = {}
        #: what the operator did (`conformance.session.operating`)
        self.operated: list[OperatorAction] = []
        #: the nodes of the broker, to which faults are done (`conformance.session.faults`)
        self.nodes = Nodes(target.faults.nodes if target.faults is not None else (1,))
        #: connections that go through a network of their own, and those of them that are cut off
        self._network: Network | None = None
        self.through_network = frozenset(through_network)
        self.cut_off: set[str] = set()
        #: connections that the broker closed
        self.closed: set[str] = set()
        #: connections whose handshake goes on
        self._logging_in: set[str] = set()
        #: connections whose close the broker has answered, and whose end has not come yet
        self._leaving: set[str] = set()
        #: how often a deadline passed without what was owed
        self.overdue = 0
        #: what the broker says that it has declared
        self.declared = Declared()
        #: methods that the broker has answered
        self.answered: set[str] = set()
        #: whether channels have answered all that they were sent
        self.last_sent = LastSent()
        self._trace = trace
        self._judge = judge
        self._listeners = tuple(listeners)
        self._is_observed = True
        self._began = target.clock.now()
        #: when what had come was last looked at (of `TraceEvent.time`)
        self._looked = 0.0
        self.carrier = target.driver(
            target.address,
            self._observe,
            write_patience=WRITE_DEADLINES * target.deadline,
            clock=target.clock,
        )

    @property
    def over(self) -> bool:
        """Nothing more can be judged in this sequence."""
        return self.questions.finished

    def now(self) -> float:
        """Seconds since the sequence began, by the target's clock."""
        return self.target.clock.now() - self._began

    # ------------------------------------------------------------------------------------- connections

    def known_as(self, name: str) -> str:
        """What the broker is told that a connection is called."""
        return self.prefix + name

    def connect(self, name: str) -> None:
        """Make the TCP connection of that name, in place of one that is over. Raises `TargetUnreachable`."""
        if self.questions.connection(name) is not None:
            self.carrier.leave(name)
        self.closed.discard(name)
        self._leaving.discard(name)
        self._logging_in.add(name)
        faults = self.target.faults
        address = None if faults is None else faults.address_of(node_of(name))
        if name in self.through_network:
            address = address or self.target.address
            address = replace(address, way=self.network.way_to(name, address))
        self.carrier.connect(name, address)

    def is_usable(self, connection: str) -> bool:
        """Is it open, and has the broker not closed it? Its socket may live on a little longer."""
        return connection not in self.closed and self.carrier.is_open(connection)

    def can_answer(self, connection: str) -> bool:
        """Does what is sent on it reach a broker that does something, as far as is known?"""
        return self.nodes.answers(connection) and connection not in self.cut_off

    @property
    def mute(self) -> list[str]:
        """Connections that are open, and on which nobody answers for now."""
        if self.nodes.all_answer and not self.cut_off:
            return []
        return [name for name in self.carrier.open_names() if not self.can_answer(name)]

    @property
    def can_be_asked(self) -> bool:
        """Can it be asked whether all is at rest? Not while something is on its way that cannot arrive."""
        return self.nodes.any_answers and not self.mute

    def port_of(self, name: str) -> int:
        """The port that the broker sees the connection come from. Raises ValueError for one that was never opened."""
        if name in self.through_network:
            return self.network.port_of(name)
        return self.carrier.local_port(name)

    @property
    def network(self) -> Network:
        if self._network is None:
            self._network = Network()
            if isinstance(self.target.clock, FastForwardClock):
                self.target.clock.attend(self._network.settle)
        return self._network

    def close(self) -> None:
        """End all connections, without a word."""
        self.carrier.close()
        self.end_network()

    def end_network(self) -> None:
        """Nothing goes through it any more."""
        if self._network is not None:
            self._network.close()
            self._network = None

    def ensure_channel(self, channel: ChannelKey) -> None:
        """Open a channel that was never open in this sequence."""
        if not self.questions.was_opened(channel):
            self.request(Method(*channel, "channel.open", {}, sent=True))

    # ------------------------------------------------------------------------------------------ frames

    def send(self, event: TraceEvent, more: bool = False) -> None:
        """As `Carrier.send`. What has come while nobody looked is taken first: it is not an answer to this."""
        if not more and self.now() - self._looked > UNREAD:
            self.drain()
        understood = as_understood(event)
        self.declared.sent(understood)
        self.last_sent.sent(understood)
        self.carrier.send(event, more=more)

    def request(self, event: TraceEvent) -> None:
        """Send a frame of the suite's own, and wait for what is owed."""
        self.send(event)
        self.collect()

    def collect(self) -> None:
        """Receive until nothing is owed, or the deadline has passed without a frame, or several with other frames."""
        began, frames = time.monotonic(), count(1)
        while self._is_awaited():
            until_rule = self.questions.patience
            is_login = bool(self._logging_in)
            deadline = (self.patience.login_deadline if is_login else self.patience.deadline) + until_rule
            asked = time.monotonic()
            is_flood = next(frames) > LEAST_FRAMES and asked - began > MOST_DEADLINES * deadline
            if is_flood or (event := self.receive(deadline)) is None:
                self.mark("overdue", deadline)
                return
            is_answer = event.arguments.get("reason") != NO_HEARTBEAT  # where the client gives up, nothing was answered
            if is_answer and not until_rule:
                waited = self.patience.waited_for_login if is_login else self.patience.waited
                waited(time.monotonic() - asked)
        self._await_ends()

    def _is_awaited(self) -> bool:
        """Is some frame owed that can come?"""
        if not self.nodes.any_answers:
            return False
        mute = self.mute
        return self.questions.owes_others(mute) if mute else self.questions.owes()

    def _await_ends(self) -> None:
        """Receive until no connection is left that both sides have closed. Some brokers give back what it held then."""
        until = time.monotonic() + min(END_OF_STREAM, self.patience.deadline)
        while self._leaving and (left := until - time.monotonic()) > 0 and not self.over:
            self.receive(left)
        self._leaving.clear()

    def drain(self) -> None:
        """Take what is there already; of a broker that goes on and on, what it sends for some time."""
        until = time.monotonic() + MOST_DEADLINES * self.patience.deadline
        while not self.over and time.monotonic() < until and self.receive(0) is not None:
            pass

    def receive(self, timeout: float) -> TraceEvent | None:
        """The next frame; closes that the broker sends are answered."""
        event = self.carrier.receive(timeout)
        self._looked = self.now()
        if event is None:
            return None
        told = event.content.properties.get("reply_to", "") if event.content is not None else ""
        if looks_like_address(self._dialect, told):
            self.reply_address = told
            if not self._dialect.extensions:
                self.not_declarable.add(told)
        if event.content is not None and event.name in ("basic.deliver", "basic.get-ok"):
            self.last_headers = event.content.properties.get("headers") or {}
        self.declared.received(event)
        if event.name.endswith("-ok"):
            self.answered.add(event.name.removesuffix("-ok"))
        if event.name in _ENDS_HANDSHAKE:
            self._logging_in.discard(event.connection)
        if event.name == "channel.close":
            self._answer(event, "channel.close-ok")
        elif event.name == "connection.close":
            self._answer(event, "connection.close-ok")
        elif event.name == "connection.close-ok":
            # "... it is safe to release resources for the connection and close the socket" (0-9-1, close-ok)
            self.carrier.end_output(event.connection)
            self._leaving.add(event.connection)
        elif event.name == "socket.closed":
            self._leaving.discard(event.connection)
        return event

    def _answer(self, event: TraceEvent, method: str) -> None:
        if self.is_usable(event.connection):
            self.carrier.send(Method(event.connection, event.channel, method, {}, sent=True))
        if method == "connection.close-ok":
            self.closed.add(event.connection)

    # ------------------------------------------------------------------------------------------ judging

    def mark(self, mark: Mark, waited: float | None = None) -> None:
        """Tell the trace and the judge where a barrier begins and ends, and what did not come in time."""
        if mark == "quiescent":
            self.carrier.settle()
        if mark == "overdue":
            self.overdue += 1
            self.patience.waited_in_vain()
        self._trace.mark(self.sequence, mark, self.now(), waited)
        self._judge.mark(mark)

    def stop_judging(self) -> None:
        """What is sent and received from now on belongs to the sequence no more."""
        self._is_observed = False

    def _observe(self, event: TraceEvent) -> None:
        if not self._is_observed:
            return
        self._trace.event(self.sequence, event)
        self._judge.event(event)
        if self._listeners:
            tell(self._listeners, EventObserved(self.sequence, event))
