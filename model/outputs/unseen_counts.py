"""What counts a delivery carries whose message has been handed out unseen, or may have been.

Requirements:

* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import as_seen
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.reply_addresses import agree
from amqpspec.model.outputs.carried_counts import (
    counts_are_open,
    note_brought,
    possible_counts,
    with_acquired_as_told,
)
from amqpspec.model.outputs.expected_properties import expected_properties
from amqpspec.model.outputs.free_properties import as_free
from amqpspec.model.promises.choices import CarriedFailures


def counted_unseen(
    broker: Broker, queue: Queue, message: Message, observed: Mapping[str, Any], by_get: bool
) -> Mapping[str, Any]:
    """The properties by that number of unseen deliveries which fits what is observed; known from then on. The same for
    what a dead letter has brought along.
    """
    first = expected_properties(broker, queue, message, by_get)
    is_open, is_first = counts_are_open(queue, message), message.is_first_here
    usual = message.failures, message.delivery_count, message.acquired_count
    spared = int(message.may_have_timed_out)
    # of a dead letter: in the queue that it came from, or in this one
    places = (False, True) if is_first else (True,)
    ways = product(
        possible_counts(message) if is_open else [usual],
        range(message.unseen + 1), range(message.recalled + 1), range(spared + 1), places,
    )  # fmt: skip
    for counts, times, back, less, is_here in ways:
        message.failures, message.delivery_count, message.acquired_count = counts
        _count_unseen(broker, message, times, is_here=is_here)
        _count_failed(message, -less)
        _count_recalled(broker, message, back)
        expected = expected_properties(broker, queue, message, by_get)
        if is_open and broker.dialect.quorum_acquired_count:
            expected = with_acquired_as_told(message, expected, observed)
        if agree(broker, as_free(broker.dialect, queue, message, as_seen(expected, observed), observed), observed):
            if is_open:
                note_brought(message, counts, observed, is_first=is_first)
            break
    else:
        message.failures, message.delivery_count, message.acquired_count = usual
        expected = first
    message.unseen = message.recalled = 0
    message.may_have_timed_out = False
    return expected


def _count_unseen(broker: Broker, message: Message, times: int, *, is_here: bool) -> None:
    """Add so many deliveries that failed with their connection, in this queue or in the one that it came from."""
    carried = broker.dialect.carried_failures
    if carried is not CarriedFailures.NONE:
        message.failures += times
    if is_here or carried is CarriedFailures.OF_ALL_QUEUES:
        message.delivery_count += times
    if is_here:
        message.acquired_count += times


def _count_failed(message: Message, times: int) -> None:
    """Add so many failures, or take them away: its time was up, and it is not counted as failed (QUORUM-002)."""
    message.delivery_count += times
    message.failures = max(message.failures + times, 0)


def _count_recalled(broker: Broker, message: Message, times: int) -> None:
    """Add so many deliveries to a consumer that was cancelled, given back as by basic.nack (QUORUM-002)."""
    message.acquired_count += times
    if not broker.dialect.quorum_nack_has_not_failed:
        message.delivery_count += times
