"""Asking again until it is settled: numbers of queues that come to be the model's, queues that come to be gone.

Each goes on until the answer is what it should be, or the deadline has passed: then what is missing is overdue.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from amqpspec.conformance.session.asking import answering, ask, ask_once, askers, can_be_asked, is_over_in_time
from amqpspec.conformance.session.conversation import Conversation


def await_clean_up(conversation: Conversation) -> None:
    """Ask for queues whose connection was lost until they are gone (CONN-021), or the deadline has passed."""
    is_over = is_over_in_time(conversation)
    connections = answering(conversation)
    while connections and not conversation.over and (queue := conversation.questions.left_behind()) is not None:
        ask(conversation, connections[0].name, queue)
        if is_over():
            conversation.mark("overdue", conversation.patience.deadline)
            ask(conversation, connections[0].name, queue)  # what it says now is the verdict
            return


def await_auto_delete(conversation: Conversation, queue: str) -> None:
    """An auto-delete queue that goes with its last consumer takes its bindings with it some time after cancel-ok, and
    the answer to a passive declare comes after that.
    """
    if not conversation.questions.is_deleting_itself(queue) or conversation.over:
        return
    connections = [each for each in answering(conversation) if each.has_channels_to_spare]
    if connections:
        ask(conversation, connections[0].name, queue)


def compare_counts(conversation: Conversation, queues: Iterable[str]) -> None:
    """Ask for the numbers of messages and consumers until they are the model's, or the deadline has passed.

    Queues are asked in turn, as a message may still be on its way from one of them to another.
    """
    is_over = is_over_in_time(conversation)
    began = time.monotonic()
    left = [queue for queue in queues if conversation.questions.is_to_be_counted(queue)]
    if not left:
        return
    while left and not conversation.over:
        left = [queue for queue in left if not _is_as_counted(conversation, queue)]
        if left and is_over():
            # if a known defect explains it, what it drives out of the queue may have come to another one
            for queue in conversation.questions.unproven_elsewhere():
                ask_once(conversation, queue)
            conversation.mark("overdue", conversation.patience.deadline)
            return
    if not conversation.over:
        conversation.patience.waited(time.monotonic() - began)


def _is_as_counted(conversation: Conversation, queue: str) -> bool:
    """Ask once. Are the numbers the model's, or is there nobody to ask?"""
    connections = askers(conversation, queue)
    if not connections:
        return True
    ask(conversation, connections[0], queue)
    return conversation.questions.is_as_counted(queue)


def clear_doubts(conversation: Conversation) -> None:
    """Where it is not known which messages have expired, or which deliveries have timed out: ask for all that these may
    have come to, until it is there.
    """
    is_over = is_over_in_time(conversation)
    while conversation.questions.is_doubtful() and not conversation.over:
        queues = [queue for queue in conversation.questions.unproven() if can_be_asked(conversation, queue)]
        if not queues:
            return
        if is_over():
            conversation.mark("overdue", conversation.patience.deadline)
            return
        for queue in queues:
            ask_once(conversation, queue)
