"""One sequence of commands on one target, in lockstep: each command is followed by its replies and a barrier.

Everything that is sent or received is written to the trace, then judged; the session itself decides nothing about
right and wrong. It asks the judge what is still owed, and waits for that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from conformance.command import Command
from conformance.events import CommandIssued, FrameObserved, Listener, tell
from conformance.judge import SequenceJudge
from conformance.judgement import SequenceJudgement, TargetDescription
from conformance.names import new_prefix, on_the_broker
from conformance.trace import TraceWriter
from model.alphabet import OPERATOR, Frame, Table
from model.state import ChannelState, ConnectionState
from targets.address import Address
from targets.errors import OperatorMissing
from targets.field_values import EncodingError
from targets.operator import Operator
from targets.wire import WireClient

Mark = Literal["barrier", "quiescent", "overdue"]

#: Seconds that an owed frame may take.
DEFAULT_DEADLINE = 5.0

#: The channel on which the suite itself looks at queues and cleans up.
SERVICE_CHANNEL = 2000


@dataclass(frozen=True, slots=True)
class TargetUnderTest:
    """A broker that can be reached, and how it is judged. `deadline`: seconds that an owed frame may take."""

    address: Address
    description: TargetDescription
    deadline: float = DEFAULT_DEADLINE
    #: who can do what only the operator of the broker can; None where nobody may
    operator: Operator | None = None


class UnsendableCommand(Exception):
    """No octets can express the command; the message names it and what is wrong."""


class Session:
    """Use as a context manager: at its end everything that the sequence made is deleted.

    Raises `targets.errors.TargetError` when the target cannot be reached, and `UnsendableCommand`.
    """

    def __init__(
        self,
        target: TargetUnderTest,
        trace: TraceWriter,
        sequence: str,
        *,
        requirement: str | None = None,
        seed: int | None = None,
        listeners: Iterable[Listener] = (),
    ) -> None:
        self.target = target
        self.sequence = sequence
        self._trace = trace
        self._listeners = tuple(listeners)
        self._prefix = new_prefix()
        self._made: dict[tuple[str, str], None] = {}
        described = target.description
        self.judge = SequenceJudge(
            trace.start(
                sequence,
                target=described.label,
                product=described.product,
                version=described.version,
                dialect=described.dialect,
                mode="lockstep",
                requirement=requirement,
                seed=seed,
            )
        )
        self._finished: SequenceJudgement | None = None
        self._is_judged = True
        #: connections that the broker closed
        self._closed: set[str] = set()
        #: how often a deadline passed without what was owed
        self.overdue = 0
        self._began = time.monotonic()
        self.client = WireClient(target.address, observer=self._observe)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from conformance.cleanup import clean_up, part

        try:
            self.finish(complete=kind is None)
        finally:
            self._is_judged = False
            try:
                part(self.client)
                clean_up(self.target.address, self._made)
            except KeyboardInterrupt:
                # interrupted in the middle of it: a run leaves nothing behind all the same
                clean_up(self.target.address, self._made)
                raise

    # --------------------------------------------------------------------------------------- commands

    def run(self, command: Command) -> None:
        """Carry out one command, wait for what it brings about, and complete a barrier (unless it is in flight)."""
        from conformance.barrier import complete_barrier

        if self.over:
            return
        text = str(command)
        self._trace.command(self.sequence, text, self._now())
        self.judge.command(text)
        tell(self._listeners, CommandIssued(self.sequence, text))
        made = self._made.copy()
        try:
            self._send(command)
        except EncodingError as error:
            self._made = made
            raise UnsendableCommand(f"{text}: {error}") from None
        if not command.in_flight:
            self.collect()
            if not self.over:
                complete_barrier(self, command)

    @property
    def over(self) -> bool:
        """Nothing more can be judged in this sequence."""
        return self.judge.acceptor.finished

    def finish(self, complete: bool = True) -> SequenceJudgement:
        """Close the sequence in the trace, once, and give what was found."""
        if self._finished is None:
            self._finished = self.judge.judgement(complete)
            self._trace.end(self._finished)
        return self._finished

    def _send(self, command: Command) -> None:
        if command.connection == OPERATOR:
            self._operate(on_the_broker(command, self._prefix))
            return
        if command.method == "connection.open":
            self._open_connection(command.connection, command.arguments)
            return
        if not self.is_usable(command.connection):
            if command.connection in self.judge.acceptor.broker.connections:
                return  # it was closed: nothing can be sent on it any more
            self._open_connection(command.connection, {})
        if command.method == "socket.abort":
            self.client.abort(command.connection)
            return
        if command.channel and not command.as_it_stands and command.method != "channel.open":
            self.ensure_channel(command.connection, command.channel)
        sent = on_the_broker(command, self._prefix)
        if command.method in ("queue.declare", "exchange.declare"):
            kind = command.method.partition(".")[0]
            self._made[(kind, sent.arguments.get(kind, ""))] = None
        self.client.send(
            Frame(sent.connection, sent.channel, sent.method, dict(sent.arguments), sent=True, content=sent.content)
        )

    def _operate(self, command: Command) -> None:
        """What the operator does, and the passing of time. Raises `OperatorError` (a `TargetError`)."""
        frame = Frame(OPERATOR, 0, command.method, dict(command.arguments), sent=True)
        if command.method == "clock.wait":
            until = time.monotonic() + command.arguments.get("milliseconds", 0) / 1000
            while (left := until - time.monotonic()) > 0:
                if self.receive(left) is None and not self.client.open_names():
                    threading.Event().wait(left)  # nobody is there who could send anything
            self.client.note(frame)
            return
        if self.target.operator is None:
            raise OperatorMissing(f"{command}: this target has no operator")
        self.client.note(frame)
        self.target.operator.carry_out(frame)

    def _open_connection(self, name: str, arguments: Table) -> None:
        if self.client.is_open(name) or name in self.judge.acceptor.broker.connections:
            return
        capabilities = arguments.get("capabilities")
        properties = None
        if capabilities is not None:
            properties = {"product": "amqpspec", "capabilities": dict(capabilities)}
        vhost = arguments.get("virtual_host")
        self.client.open(name, client_properties=properties, vhost=vhost)

    def ensure_channel(self, connection: str, number: int) -> None:
        """Open a channel that was never open in this sequence."""
        if (connection, number) not in self.judge.acceptor.broker.channels:
            self.request(Frame(connection, number, "channel.open", {}, sent=True))

    # ------------------------------------------------------------------------------------------ frames

    def request(self, frame: Frame) -> None:
        """Send a frame of the suite's own, and wait for what is owed."""
        self.client.send(frame)
        self.collect()

    def collect(self) -> None:
        """Receive until nothing is owed, or until the deadline has passed without a frame."""
        acceptor = self.judge.acceptor
        while acceptor.owes():
            if self.receive(self.target.deadline) is None:
                self.mark("overdue", self.target.deadline)
                return

    def receive(self, timeout: float) -> Frame | None:
        """The next frame; closes that the broker sends are answered."""
        frame = self.client.receive(timeout)
        if frame is None:
            return None
        if frame.method == "channel.close":
            self._answer(frame, "channel.close-ok")
        elif frame.method == "connection.close":
            self._answer(frame, "connection.close-ok")
        return frame

    def _answer(self, frame: Frame, method: str) -> None:
        if self.is_usable(frame.connection):
            self.client.send(Frame(frame.connection, frame.channel, method, {}, sent=True))
        if method == "connection.close-ok":
            self._closed.add(frame.connection)

    def is_usable(self, connection: str) -> bool:
        """Is it open, and has the broker not closed it? Its socket may live on a little longer."""
        return connection not in self._closed and self.client.is_open(connection)

    def mark(self, mark: Mark, waited: float | None = None) -> None:
        if mark == "overdue":
            self.overdue += 1
        self._trace.mark(self.sequence, mark, self._now(), waited)
        self.judge.mark(mark)

    def _observe(self, frame: Frame) -> None:
        if not self._is_judged:
            return
        self._trace.frame(self.sequence, frame)
        self.judge.frame(frame)
        if self._listeners:
            tell(self._listeners, FrameObserved(self.sequence, frame))

    def _now(self) -> float:
        return time.monotonic() - self._began

    # ---------------------------------------------------------------------------- what the barrier asks

    def open_connections(self) -> list[str]:
        broker = self.judge.acceptor.broker
        return [
            name
            for name, connection in broker.connections.items()
            if connection.state is ConnectionState.OPEN and self.is_usable(name)
        ]

    def channel_is_open(self, key: tuple[str, int]) -> bool:
        channel = self.judge.acceptor.broker.channels.get(key)
        return channel is not None and channel.state is ChannelState.OPEN and self.is_usable(key[0])


