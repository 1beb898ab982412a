"""One sequence of commands on one target, in lockstep: each command is followed by its replies and a barrier.

Everything that is sent or received is written to the trace, then judged; the session itself decides nothing about
right and wrong. It asks the judge what is still owed, and waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count
from types import TracebackType
from typing import Literal, Self

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.names import new_prefix, on_the_broker
from amqpspec.conformance.session.barrier import complete_barrier
from amqpspec.conformance.session.opening import STEPS, is_over, open_connection, take_step
from amqpspec.conformance.session.operating import operate, undo
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.events import CommandIssued, FrameObserved, Listener, tell
from amqpspec.conformance.verdicts.judge import SequenceJudge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, write_end
from amqpspec.model.broker.reply_addresses import ADDRESS
from amqpspec.model.protocol.methods import OPERATOR, Frame
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.codec.field_values import EncodingError

Mark = Literal["barrier", "quiescent", "overdue"]

#: The user that every RabbitMQ is delivered with; his name is no secret, and is recorded.
KNOWN_USER = "guest"

#: After so many deadlines what is owed is overdue, though other frames come all the time.
MOST_DEADLINES = 5

#: But not before so many other frames have come: with fewer it is the judge who takes the time.
LEAST_FRAMES = 100

#: Seconds after which more may have come that nobody has looked at: a judge on a busy machine takes its time.
UNREAD = 0.1

#: So many deadlines may pass before the broker reads on while a frame is being written.
WRITE_DEADLINES = 6


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
        repeats: str | None = None,
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
                repeats=repeats,
            )
        )
        #: what the operator did (`conformance.session.operating`)
        self.operated: list[Frame] = []
        self._finished: SequenceJudgement | None = None
        self._is_judged = True
        #: connections that the broker closed
        self._closed: set[str] = set()
        #: how often a deadline passed without what was owed
        self.overdue = 0
        self._began = target.clock.now()
        #: when what had come was last looked at (of `Frame.time`)
        self._looked = 0.0
        self.client = WireClient(
            target.address,
            observer=self._observe,
            write_patience=WRITE_DEADLINES * target.deadline,
            clock=target.clock,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from amqpspec.conformance.session.cleanup import clean_up, part

        try:
            self.finish(complete=kind is None)
        finally:
            self._is_judged = False
            try:
                try:
                    undo(self)
                finally:
                    part(self.client, self._closed)
                    clean_up(self.target.address, self._made)
            except KeyboardInterrupt:
                # interrupted in the middle of it: a run leaves nothing behind all the same
                undo(self)
                clean_up(self.target.address, self._made)
                raise

    # --------------------------------------------------------------------------------------- commands

    def run(self, command: Command) -> None:
        """Carry out one command, wait for what it brings about, and complete a barrier (unless it is in flight)."""
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
            write_end(self._trace, self._finished)
        return self._finished

    def _send(self, command: Command) -> None:
        if command.connection == OPERATOR:
            operate(self, on_the_broker(command, self._prefix))
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
        self.send(
            Frame(sent.connection, sent.channel, sent.method, dict(sent.arguments), sent=True, content=sent.content),
            more=command.in_flight,
        )

    def known_as(self, name: str) -> str:
        """What the broker is told that a connection is called."""
        return self._prefix + name

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

    def send(self, frame: Frame, more: bool = False) -> None:
        """As `WireClient.send`. What has come while nobody looked is taken first: it is not an answer to this."""
        if not more and self._now() - self._looked > UNREAD:
            self.drain()
        self.client.send(frame, more=more)

    def request(self, frame: Frame) -> None:
        """Send a frame of the suite's own, and wait for what is owed."""
        self.send(frame)
        self.collect()

    def collect(self) -> None:
        """Receive until nothing is owed, or the deadline has passed without a frame, or several with other frames."""
        acceptor = self.judge.acceptor
        began, frames = time.monotonic(), count(1)
        while acceptor.owes():
            patience = self.target.deadline + acceptor.patience
            is_flood = next(frames) > LEAST_FRAMES and time.monotonic() - began > MOST_DEADLINES * patience
            if is_flood or self.receive(patience) is None:
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
        self._looked = self._now()
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
        return self.target.clock.now() - self._began
