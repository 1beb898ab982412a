"""The opening of a connection, one step at a time, each judged before the next is made.

A broker that refuses, or says something else than what is due, is the judge's business: the steps end there. Only a
TCP connection that cannot be made is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.handshake_steps import STEPS, step
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.model.rules.connection.handshake import DUE


def take_step(conversation: Conversation, command: Command) -> None:
    """A step of a handshake, or all of them; a connection that is over makes room for a new one of its name.

    `connection.open` on an open connection changes nothing, and with a `!` it is that method alone. A step that a new
    connection is not ready for is made after those before it. Raises `TargetUnreachable`.
    """
    name, method, wishes = command.connection, command.method, command.arguments
    is_whole = method == STEPS[-1] and not command.as_it_stands
    makes_anew = is_whole or method == STEPS[0]
    if makes_anew:
        conversation.collect()  # perhaps it is about to be over
    if conversation.is_usable(name) and not (makes_anew and is_over(conversation, name)):
        if not makes_anew:
            conversation.send(_step(conversation, name, method, wishes))
    elif is_whole:
        open_connection(conversation, name, wishes)
    elif method == STEPS[0]:
        conversation.connect(name)
    elif conversation.questions.connection(name) is None:
        open_connection(conversation, name, {}, until=method)
        if conversation.is_usable(name) and not conversation.over:
            conversation.send(_step(conversation, name, method, wishes))


def is_over(conversation: Conversation, name: str) -> bool:
    """Was everything said on the connection? Its TCP connection is for the client to end then."""
    connection = conversation.questions.connection(name)
    return connection is not None and connection.is_over


def open_connection(conversation: Conversation, name: str, wishes: Mapping[str, Any], until: str = "") -> None:
    """Make all steps, or those before the step `until`. Raises `TargetUnreachable`."""
    if until == STEPS[0]:
        return
    conversation.connect(name)
    for state, method in DUE.items():
        if method == until or not _is_in(conversation, name, state):
            return
        conversation.request(_step(conversation, name, method, wishes))


def _is_in(conversation: Conversation, name: str, state: ConnectionState) -> bool:
    """Is the connection in that state, as far as the judge knows, and can the sequence go on?"""
    connection = conversation.questions.connection(name)
    if connection is None or connection.state is not state:
        return False
    return conversation.is_usable(name) and not conversation.over


def _step(conversation: Conversation, name: str, method: str, wishes: Mapping[str, Any]) -> TraceEvent:
    """The frame of one step on that connection."""
    connection = conversation.questions.connection(name)
    target = conversation.target
    # by its name the operator finds a connection that is to be closed
    known_as = conversation.known_as(name) if target.operator is not None else ""
    return step(target.address, name, connection.offered if connection else {}, method, wishes, known_as)
