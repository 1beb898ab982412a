"""Barriers: how the suite knows that a broker is quiet, by round trips and not by waiting.

A channel on which what was sent may not have been processed, or may have ended it, is asked first: what is asked on
another one overtakes an error, or a `basic.cancel` of a queue that is deleted there.
After a command and what it owed have come, for each queue that it touched: `basic.get` on the channel that touched it
where the model says that nothing is ready (it goes the way of the acknowledgements, and its answer comes after the
deliveries that they caused); else a passive declare, again until the numbers are the model's. Then `basic.qos` with the
present value on every channel concerned, which flushes the channel, unless it has just answered and nothing comes
there unasked; where one has certainly ended, a round trip of its connection on a channel of the suite's own. Only
what the command touched takes part.
All of this is judged like any other traffic, but counts as exercise of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.asking import ask_connection, ask_once, flush, is_open, may_be_open
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.settling import await_auto_delete, await_clean_up, clear_doubts, compare_counts
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.protocol.patterns import UNKNOWN_NAME

#: The queues that were touched, and the channels that did.
Touched = Sequence[tuple[ChannelKey, str]]


def complete_barrier(conversation: Conversation, commands: Sequence[Command]) -> None:
    """Run the barrier after these commands; at its end the model's broker and the target are both at rest."""
    questions = conversation.questions
    conversation.mark("barrier")
    for command in commands:
        channel = (command.connection, command.channel)
        if command.arguments.get("nowait") and is_open(conversation, channel):
            # no answer shows that the broker has processed it, and other channels are asked about what it did
            flush(conversation, channel)
    for channel in questions.unprocessed():
        if may_be_open(conversation, channel):
            flush(conversation, channel)
    touched = questions.touched()
    queues = list(dict.fromkeys(queue for _, queue in touched))
    await_clean_up(conversation)
    _get_what_is_not_there(conversation, touched)
    for queue in questions.unproven_elsewhere():
        ask_once(conversation, queue)
    for queue in queues:
        await_auto_delete(conversation, queue)
    compare_counts(conversation, queues)
    for queue in questions.perhaps_expired():
        ask_once(conversation, queue)
    clear_doubts(conversation)
    _flush_all(conversation, _channels(conversation, commands, touched))
    conversation.drain()
    conversation.collect()  # what that had us answer may be answered in turn
    conversation.mark("quiescent")


def _get_what_is_not_there(conversation: Conversation, touched: Touched) -> None:
    for channel, queue in touched:
        if conversation.over or not is_open(conversation, channel):
            continue
        if conversation.questions.may_get(channel, queue):
            # a name that the broker has not told yet (queue.declare with nowait) is the channel's last one
            told = "" if queue.startswith(UNKNOWN_NAME) else queue
            conversation.request(Method(*channel, "basic.get", {"queue": told}, sent=True))


def _channels(conversation: Conversation, commands: Sequence[Command], touched: Touched) -> list[ChannelKey]:
    """Those that touched a queue, those of the commands, and those that consume from a queue that was touched."""
    channels = dict.fromkeys(channel for channel, _ in touched)
    channels.update(dict.fromkeys((command.connection, command.channel) for command in commands))
    for _, queue in touched:
        channels.update(dict.fromkeys(conversation.questions.consuming(queue)))
    return list(channels)


def _flush_all(conversation: Conversation, channels: Sequence[ChannelKey]) -> None:
    """A round trip of each channel that has not answered yet; then of the connection, where one has ended."""
    ended: dict[str, None] = {}
    for channel in channels:
        if not channel[1] or conversation.over:
            continue
        if is_open(conversation, channel) or may_be_open(conversation, channel):
            if not conversation.last_sent.is_answered(channel):
                flush(conversation, channel)
        else:
            ended[channel[0]] = None
    for channel in conversation.questions.served_elsewhere():
        if not conversation.over and is_open(conversation, channel):
            flush(conversation, channel)
    for connection in ended:
        ask_connection(conversation, connection)
