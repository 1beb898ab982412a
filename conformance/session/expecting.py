"""Waiting for what a line of a command file expects (`conformance.verdicts.expectations`)."""

from __future__ import annotations

import time
from collections.abc import Callable

from amqpspec.conformance.language.command import EXPECT, EXPECT_FRAME, EXPECT_READY, Command
from amqpspec.conformance.session.asking import ask, ask_once, can_be_asked, is_over_in_time
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.opening import open_connection


def await_expected(conversation: Conversation, line: Command, is_met: Callable[[], bool]) -> None:
    """A frame has until the deadline to come, and a queue to have so many messages; silence was waited for before."""
    if line.method == EXPECT_FRAME:
        _await_frame(conversation, is_met)
    elif line.method == EXPECT_READY:
        queue = line.arguments["queue"]
        known_as = queue if queue.startswith("amq.") else conversation.prefix + queue
        _await_count(conversation, known_as, is_met)


def _await_frame(conversation: Conversation, is_met: Callable[[], bool]) -> None:
    until = time.monotonic() + conversation.patience.deadline
    while not is_met() and not conversation.over and (left := until - time.monotonic()) > 0:
        conversation.receive(left)


def _await_count(conversation: Conversation, queue: str, is_met: Callable[[], bool]) -> None:
    if conversation.over or not conversation.nodes.any_answers:
        return
    by_whom = None
    if not can_be_asked(conversation, queue):
        by_whom = EXPECT  # nobody is left who may ask
        open_connection(conversation, by_whom, {})
    is_over = is_over_in_time(conversation)
    conversation.mark("barrier")
    while not conversation.over:
        if by_whom is None:
            ask_once(conversation, queue)
        else:
            ask(conversation, by_whom, queue)
        if is_met() or is_over():
            break
    conversation.drain()
    conversation.collect()
    conversation.mark("quiescent")
