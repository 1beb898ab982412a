"""Pacing: what happens between one command and the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.at_rest import ask_at_rest
from amqpspec.conformance.session.barrier import complete_barrier
from amqpspec.conformance.session.conversation import Conversation


class Pacing(Protocol):
    """Decides what is waited for, in one sequence."""

    @property
    def mode(self) -> str:
        """Its name in traces and reports."""
        ...

    def after(self, command: Command, conversation: Conversation) -> None:
        """The command has just been sent."""
        ...

    def at_end(self, conversation: Conversation) -> None:
        """There are no more commands: the sequence is judged after this."""
        ...


#: Makes the pacing of a sequence.
Pace = Callable[[], Pacing]


class Lockstep:
    """What a command brings about is waited for, and a barrier follows, unless the command is in flight."""

    mode = "lockstep"

    def after(self, command: Command, conversation: Conversation) -> None:
        if command.in_flight:
            return
        conversation.collect()
        if not conversation.can_be_asked:
            conversation.drain()
        elif not conversation.over:
            complete_barrier(conversation, [command])

    def at_end(self, conversation: Conversation) -> None:
        """Wait for what the last commands owe, if they did not. What is in the queues now must stay."""
        conversation.collect()
        if not conversation.over and conversation.can_be_asked:
            ask_at_rest(conversation)
