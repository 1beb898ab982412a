"""One sequence of commands on one target: each command is sent, and what follows is the pacing's business.

What is sent or received is written to the trace, then judged (`conformance.session.conversation`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from amqpspec.conformance.language.command import EXPECT, Command
from amqpspec.conformance.language.faults import breaks_broker, broken_connections
from amqpspec.conformance.language.names import on_the_broker
from amqpspec.conformance.session import cleanup
from amqpspec.conformance.session.barrier import complete_barrier
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.expecting import await_expected
from amqpspec.conformance.session.handshake_steps import STEPS
from amqpspec.conformance.session.opening import is_over, open_connection, take_step
from amqpspec.conformance.session.operating import operate, undo
from amqpspec.conformance.session.pacing import Lockstep, Pace
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.verdicts.events import CommandIssued, Listener, tell
from amqpspec.conformance.verdicts.judge import SequenceJudge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, erred, write_end
from amqpspec.model.protocol.methods import OPERATOR, event_of
from amqpspec.targets.codec.field_values import EncodingError
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import line_of

#: The user that every RabbitMQ is delivered with; the name is no secret, and is recorded.
KNOWN_USER = "guest"


class UnsendableCommand(Exception):
    """No octets can express the command; the message names it and what is wrong."""


#: What is no error of this suite: whoever carries out sequences knows what it means.
PASSED_ON = (TargetError, TraceError, UnsendableCommand)


class Session:
    """Use as a context manager: at its end everything that the sequence made is deleted.

    Raises `targets.errors.TargetError` when the target cannot be reached, `UnsendableCommand`, and `TraceError` where
    the trace cannot be written. An error of this suite ends the sequence, which is undecided.
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
        planned: Sequence[Command] | None = None,
        listeners: Iterable[Listener] = (),
        pace: Pace = Lockstep,
        patience: Patience | None = None,
        cleaner: cleanup.Cleaner | None = None,
    ) -> None:
        self.target = target
        self.sequence = sequence
        self._trace = trace
        self._listeners = tuple(listeners)
        self._pacing = pace()
        self._made: dict[tuple[str, str], None] = {}
        self._cleaner = cleaner
        described = target.description
        self.judge = SequenceJudge(
            trace.start(
                sequence,
                target=described.label,
                product=described.product,
                version=described.version,
                dialect=described.dialect,
                mode=self._pacing.mode,
                virtual_host=target.address.vhost,
                user=target.address.user if target.address.user == KNOWN_USER else None,
                requirement=requirement,
                seed=seed,
                repeats=repeats,
                planned=None if planned is None else map(str, planned),
                driver=None if target.library is None else str(target.library),
            ),
            expected=sum(each.connection == EXPECT for each in planned or ()),
        )
        #: what it made, and the broker did not delete: (kind, name)
        self.left_behind: tuple[cleanup.Made, ...] = ()
        self._finished: SequenceJudgement | None = None
        #: a command was left out, as nothing more can be judged; commands that were not waited for
        self._left_out = False
        self._in_flight: list[Command] = []
        self._conversation = Conversation(
            target, trace, sequence, self.judge, self._listeners, patience, broken_connections(planned or ())
        )
        # another sequence may share its faults, and go on with them when this one is over
        self._conversation.nodes.touched = planned is not None and breaks_broker(planned)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        conversation = self._conversation
        try:
            self.finish(complete=kind is None)
        finally:
            conversation.stop_judging()
            try:
                try:
                    with self._breaking_late():
                        undo(conversation)
                finally:
                    with self._breaking_late():
                        cleanup.part(conversation.carrier, conversation.closed)
                    conversation.end_network()
                    with self._breaking_late():
                        self._clean_up()
            except KeyboardInterrupt:
                # interrupted in the middle of it: a run leaves nothing behind all the same
                conversation.close()  # a connection that is open keeps its exclusive queues
                try:
                    undo(conversation)
                finally:
                    self._clean_up()
                raise

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """What is raised in it, and is nobody else's doing, ends the judging of this sequence, and goes no further."""
        try:
            yield
        except PASSED_ON:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this sequence only
            self.judge.broke(error)

    @contextmanager
    def _breaking_late(self) -> Iterator[None]:
        """The same when the sequence has been judged: what it made may not be deleted then."""
        try:
            yield
        except PASSED_ON:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            with suppress(Exception):  # it may be what is broken
                self._conversation.close()
            if self._finished is not None:
                self._finished = erred(self._finished, line_of(error))

    def _clean_up(self) -> None:
        declared = self._conversation.declared.names
        made = {**self._made, **declared}
        if self._cleaner is not None:
            left = self._cleaner.clean_up(self.target.present_address, made, self._conversation.patience)
        else:
            left = cleanup.clean_up(self.target.present_address, made)
        never_made = self._conversation.declared.never_made | self._conversation.declared.unanswered
        self.left_behind = tuple(each for each in left if each not in never_made)
        if let_go := self._conversation.declared.let_go:
            cleanup.put_back(self.target.present_address, let_go)

    def run(self, command: Command) -> None:
        """Carry out one command, and what the pacing has follow it."""
        with self._breaking():
            self._run(command)

    def _run(self, command: Command) -> None:
        if command.connection == EXPECT:
            self._expect(command)
            return
        if self.over:
            self._left_out = True
            return
        text = str(command)
        self._trace.command(self.sequence, text, self._conversation.now())
        self.judge.command(text)
        tell(self._listeners, CommandIssued(self.sequence, text))
        made = self._made.copy()
        try:
            self._send(command)
        except EncodingError as error:
            self._made = made
            raise UnsendableCommand(f"{text}: {error}") from None
        self._pacing.after(command, self._conversation)
        self._in_flight = [*self._in_flight, command] if command.in_flight else []

    def _expect(self, command: Command) -> None:
        """A line that expects something of what was done last. Where the model can follow no more, it may have come."""
        if self._left_out:
            return
        if self._in_flight and not self.over:
            self._conversation.collect()
            if self._conversation.can_be_asked and not self.over:
                complete_barrier(self._conversation, self._in_flight)
            self._in_flight = []
        text = str(command)
        self._trace.command(self.sequence, text, self._conversation.now())
        self.judge.command(text)
        tell(self._listeners, CommandIssued(self.sequence, text))
        expectations = self.judge.expectations
        await_expected(self._conversation, command, lambda: bool(expectations and expectations.is_met))

    def would_come_under(self, command: Command, rules: Collection[str]) -> bool:
        """Would one of these rules make a difference, were the command carried out now?"""
        with self._breaking():
            return self._would_come_under(command, rules)
        return False

    def _would_come_under(self, command: Command, rules: Collection[str]) -> bool:
        conversation = self._conversation
        if self.over:
            return False
        explanation = self.judge.acceptor.explanations[0]
        plan = Plan.behind(explanation.broker, explanation.pending, conversation.now())
        return plan.comes_under(self._on_the_broker(command), rules)

    def _on_the_broker(self, command: Command) -> Command:
        conversation = self._conversation
        return on_the_broker(command, conversation.prefix, conversation.reply_address, conversation.last_headers)

    @property
    def over(self) -> bool:
        """Nothing more can be judged in this sequence."""
        return self._conversation.over

    @property
    def overdue(self) -> int:
        """How often a deadline passed without what was owed."""
        return self._conversation.overdue

    @property
    def answered(self) -> frozenset[str]:
        """Methods that the broker has answered."""
        return frozenset(self._conversation.answered)

    def finish(self, complete: bool = True) -> SequenceJudgement:
        """Close the sequence in the trace, once, and give what was found."""
        if self._finished is None:
            if complete and not self.over:
                with self._breaking():
                    self._pacing.at_end(self._conversation)
            self._finished = self.judge.judgement(complete)
            write_end(self._trace, self._finished)
        return self._finished

    def _send(self, command: Command) -> None:
        conversation = self._conversation
        prefix = conversation.prefix
        if command.connection == OPERATOR:
            operate(conversation, on_the_broker(command, prefix))
            return
        if not conversation.is_usable(command.connection) and not conversation.can_answer(command.connection):
            return  # nobody is there to connect to
        if command.method in STEPS and not command.channel:
            take_step(conversation, on_the_broker(command, prefix))
            return
        name = command.connection
        if not conversation.is_usable(name) or is_over(conversation, name):
            if conversation.questions.connection(name) is not None:
                return  # it was closed: nothing can be sent on it any more
            open_connection(conversation, name, {})
        if command.method == "socket.abort":
            if name in conversation.cut_off:
                return  # the broker would hear of it when the network is healed, and nobody knows when that is
            conversation.carrier.abort(name)
            return
        if command.method == "socket.silence":
            conversation.carrier.silence(name)
            return
        if command.channel and not command.as_it_stands and command.method != "channel.open":
            conversation.ensure_channel((name, command.channel))
        sent = self._on_the_broker(command)
        if command.method in ("queue.declare", "exchange.declare"):
            kind = command.method.partition(".")[0]
            name = sent.arguments.get(kind, "")
            if not name.startswith("amq."):
                self._made[(kind, name)] = None
        conversation.send(
            event_of(sent.connection, sent.channel, sent.method, dict(sent.arguments), sent=True, content=sent.content),
            more=command.in_flight,
        )
