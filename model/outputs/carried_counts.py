"""What a dead letter brings along of the deliveries that failed in the queues that it came from (DLX-010).

No text says which of them it keeps, nor whether these go on counting in its new queue: any number is right, from none
to all that it had. What its first delivery tells is known from then on, and whether that goes on counting when it is
handed over again.

Requirements:

* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import Int64

_ACQUIRED = "x-acquired-count"


def may_be_redelivered(queue: Queue, message: Message) -> bool:
    """Is it free whether the dead letter is handed over as a redelivery?"""
    return queue.type is not QueueType.STREAM and message.is_first_here and message.tries > 0


def counts_are_open(queue: Queue, message: Message) -> bool:
    """May its counts be others than those that the dialect has?"""
    if queue.type is not QueueType.QUORUM:
        return False
    return any(message.brought) or (message.is_first_here and message.tries > 0)


def possible_counts(message: Message) -> list[tuple[int, int, int]]:
    """What it may have brought along, and its failed and all deliveries: first the number that the dialect has."""
    if message.is_first_here:
        numbers = dict.fromkeys((message.failures, *range(message.tries + 1)))
        return [(number, goes_on, 0) for number in numbers for goes_on in sorted({0, number})]
    failed, acquired = message.brought
    return [
        (message.failures, message.delivery_count + of_failed, message.acquired_count + of_all)
        for of_failed in sorted({0, failed})
        for of_all in sorted({0, acquired})
    ]


def with_acquired_as_told(
    message: Message, expected: Mapping[str, Any], observed: Mapping[str, Any]
) -> Mapping[str, Any]:
    """How often a dead letter was handed to somebody at all may be told by its first delivery, or not."""
    told = _told(observed)
    if not message.is_first_here or told is None or told > message.tries + message.unseen:
        return expected
    headers = {name: value for name, value in (expected.get("headers") or {}).items() if name != _ACQUIRED}
    return {**expected, "headers": {**headers, _ACQUIRED: Int64(told)} if told else headers}


def note_brought(
    message: Message, counts: tuple[int, int, int], observed: Mapping[str, Any], *, is_first: bool
) -> None:
    """These of the possible counts are told by a delivery. `is_first`: it was the first in this queue."""
    brought, goes_on, _ = counts
    if is_first:
        # whether that goes on counting the next delivery tells
        message.brought = (0 if goes_on else brought), _told(observed) or 0
    else:
        # as long as nothing has failed here, what it brought along is what is told in either case
        message.brought = (0 if message.delivery_count else message.brought[0]), 0


def _told(observed: Mapping[str, Any]) -> int | None:
    told = (observed.get("headers") or {}).get(_ACQUIRED, 0)
    return told if isinstance(told, int) and told >= 0 else None
