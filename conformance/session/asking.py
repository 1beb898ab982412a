"""Asking the broker about queues and channels: who can be asked what, and how often.

Queues are asked about by a passive declare on a channel of the suite's own, which an error may close.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from amqpspec.conformance.session.conversation import Conversation
from amqpspec.model.judging.questions import KnownConnection
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.protocol.patterns import UNKNOWN_NAME

#: Rounds of questions about numbers that there are at least, however long the judge takes over the answers.
LEAST_ROUNDS = 5

#: The channel on which the suite itself looks at queues, or the highest but one that there may be.
SERVICE_CHANNEL = 2000

#: An exchange of the suite's own, declared again and again where none is there from the beginning.
OWN_EXCHANGE = "round-trip"


def is_over_in_time(conversation: Conversation) -> Callable[[], bool]:
    """Is the time up, asked once a round? Not before some rounds: where there are many explanations it is the judge who
    takes the time, and the broker has answered long ago.
    """
    latest = time.monotonic() + conversation.patience.deadline
    rounds = count(1)
    return lambda: next(rounds) > LEAST_ROUNDS and time.monotonic() > latest


def is_open(conversation: Conversation, channel: ChannelKey) -> bool:
    """Can the channel be asked something?"""
    return conversation.is_usable(channel[0]) and conversation.questions.is_open(channel)


def may_be_open(conversation: Conversation, channel: ChannelKey) -> bool:
    """Can it by some explanation? Where an input may be refused or not, the channel's own answer tells which."""
    return conversation.is_usable(channel[0]) and conversation.questions.may_be_open(channel)


def flush(conversation: Conversation, channel: ChannelKey) -> None:
    """A round trip of the channel."""
    conversation.request(conversation.questions.flush(channel, conversation.known_as(OWN_EXCHANGE)))


def answering(conversation: Conversation) -> list[KnownConnection]:
    """The connections on which the broker can be asked something."""
    connections = conversation.questions.connections()
    return [each for each in connections if each.answers and conversation.is_usable(each.name)]


def askers(conversation: Conversation, queue: str, by_any: bool = False) -> list[str]:
    """The connections on which the queue can be asked for its numbers (`Questions.who_may_ask`)."""
    if queue in conversation.not_declarable:
        return []
    return [name for name in conversation.questions.who_may_ask(queue, by_any) if conversation.is_usable(name)]


def can_be_asked(conversation: Conversation, queue: str) -> bool:
    """Is there a connection on which the queue can be asked for, by whichever explanation it is there?"""
    return bool(askers(conversation, queue, by_any=True)) and not queue.startswith(UNKNOWN_NAME)


def ask_once(conversation: Conversation, queue: str) -> None:
    """Ask for the numbers of messages and consumers: they say which of several explanations is right."""
    connections = askers(conversation, queue, by_any=True)
    if connections and not queue.startswith(UNKNOWN_NAME) and not conversation.over:
        ask(conversation, connections[0], queue)


def service_channel(conversation: Conversation, connection: str) -> ChannelKey:
    """The suite's own channel of the connection: within what was agreed upon in connection.tune-ok."""
    known = conversation.questions.connection(connection)
    most = known.channel_max if known is not None else 0
    # the very highest is one that sequences try
    return connection, min(SERVICE_CHANNEL, max(most - 1, 1)) if most else SERVICE_CHANNEL


def ask(conversation: Conversation, connection: str, queue: str) -> None:
    """Declare the queue passively, on the service channel, which an error may have closed before."""
    service = service_channel(conversation, connection)
    if not is_open(conversation, service):
        conversation.request(Method(*service, "channel.open", {}, sent=True))
    flags = conversation.questions.declared_as(queue)
    conversation.request(Method(*service, "queue.declare", {"queue": queue, "passive": True, **flags}, sent=True))


def ask_connection(conversation: Conversation, name: str) -> None:
    """A round trip of a connection, on the service channel: what the broker says after a channel's end comes first."""
    can_be = any(each.name == name and each.has_channels_to_spare for each in answering(conversation))
    if conversation.over or not can_be:
        return
    service = service_channel(conversation, name)
    if is_open(conversation, service):
        flush(conversation, service)
    else:
        conversation.request(Method(*service, "channel.open", {}, sent=True))
