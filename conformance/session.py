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
from conformance.opening import STEPS, is_over, open_connection, take_step
from conformance.trace import TraceWriter
from model.alphabet import OPERATOR, Frame
from model.reply_addresses import ADDRESS
from model.state import ChannelState, Connection, ConnectionState, Queue
from targets.address import Address
from targets.errors import OperatorMissing
from targets.field_values import EncodingError
from targets.operator import Operator, Peer
from targets.wire import WireClient

Mark = Literal["barrier", "quiescent", "overdue"]

#: The user that every RabbitMQ is delivered with; his name is no secret, and is recorded.
KNOWN_USER = "guest"

#: Seconds that an owed frame may take.
DEFAULT_DEADLINE = 5.0

#: After so many deadlines what is owed is overdue, though other frames come all the time.
MOST_DEADLINES = 5

#: So many deadlines may pass before the broker reads on while a frame is being written.
WRITE_DEADLINES = 6

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
    #: the server capabilities that it advertises; None: not known, so all of them
    capabilities: frozenset[str] | None = None


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
        self._reply_address = ""
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
                virtual_host=target.address.vhost,
                user=target.address.user if target.address.user == KNOWN_USER else None,
                requirement=requirement,
                seed=seed,
            )
        )
        #: what the operator did
        self._operated: list[Frame] = []
        self._finished: SequenceJudgement | None = None
        self._is_judged = True
        #: connections that the broker closed
        self._closed: set[str] = set()
        #: how often a deadline passed without what was owed
        self.overdue = 0
        self._began = time.monotonic()
        self.client = WireClient(
            target.address, observer=self._observe, write_patience=WRITE_DEADLINES * target.deadline
        )

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
                try:
                    self._undo()
                finally:
                    part(self.client, self._closed)
                    clean_up(self.target.address, self._made)
            except KeyboardInterrupt:
                # interrupted in the middle of it: a run leaves nothing behind all the same
                self._undo()
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
        if command.method in STEPS and not command.channel:
            take_step(self, on_the_broker(command, self._prefix))
            return
        if not self.is_usable(command.connection) or is_over(self, command.connection):
            if command.connection in self.judge.acceptor.broker.connections:
                return  # it was closed: nothing can be sent on it any more
            open_connection(self, command.connection, {})
        if command.method == "socket.abort":
            self.client.abort(command.connection)
            return
        if command.method == "socket.silence":
            self.client.silence(command.connection)
            return
        if command.channel and not command.as_it_stands and command.method != "channel.open":
            self.ensure_channel(command.connection, command.channel)
        sent = on_the_broker(command, self._prefix, self._reply_address)
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
        if command.method == "operator.set-permissions":
            frame.arguments.setdefault("virtual_host", self.target.address.vhost)
        self.client.note(frame)
        self._operated.append(frame)
        self.target.operator.carry_out([frame], lambda name: Peer(self.client.local_port(name), self.known_as(name)))

    def known_as(self, name: str) -> str:
        """What the broker is told that a connection is called."""
        return self._prefix + name

    def _undo(self) -> None:
        """Take away what the operator made, first of all alarms, which keep everything else from being answered."""
        if self._operated and self.target.operator is not None:
            self.target.operator.undo(self._operated)

    def connect(self, name: str) -> None:
        """Make the TCP connection of that name, in place of one that is over. Raises `TargetUnreachable`."""
        if name in self.judge.acceptor.broker.connections:
            self.client.leave(name)
        self._closed.discard(name)
        self.client.connect(name)

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
        """Receive until nothing is owed, or the deadline has passed without a frame, or several with other frames."""
        acceptor = self.judge.acceptor
        began = time.monotonic()
        while acceptor.owes():
            patience = self.target.deadline + acceptor.patience
            if self.receive(patience) is None or time.monotonic() - began > MOST_DEADLINES * patience:
                self.mark("overdue", patience)
                return

    def drain(self) -> None:
        """Take what is there already; of a broker that goes on and on, what it sends for some time."""
        until = time.monotonic() + MOST_DEADLINES * self.target.deadline
        while not self.over and time.monotonic() < until and self.receive(0) is not None:
            pass

    def receive(self, timeout: float) -> Frame | None:
        """The next frame; closes that the broker sends are answered."""
        frame = self.client.receive(timeout)
        if frame is None:
            return None
        if frame.content is not None and frame.content.properties.get("reply_to", "").startswith(ADDRESS):
            self._reply_address = frame.content.properties["reply_to"]
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
            if connection.state is ConnectionState.OPEN and self._answers(connection)
        ]

    def channel_is_open(self, key: tuple[str, int]) -> bool:
        broker = self.judge.acceptor.broker
        channel = broker.channels.get(key)
        if channel is None or channel.state is not ChannelState.OPEN or channel.assembly is not None:
            return False
        return self._answers(broker.connections[key[0]])

    def _answers(self, connection: Connection) -> bool:
        """May it be asked questions? The broker does not read a blocked connection, and takes what follows a lie about
        a frame's size for something else.
        """
        return self.is_usable(connection.name) and not connection.blocked and not connection.out_of_step

    def may_ask_about(self, connection: str, queue: Queue) -> bool:
        """May whoever has the connection ask about the queue?"""
        broker = self.judge.acceptor.broker
        asking = broker.connections[connection]
        return queue.owner in (None, connection) and asking.vhost == queue.vhost and asking.user not in broker.users
