"""What a queue does about its limits: it drops from its head, or refuses what is new (`model.broker.length_limits`).

Requirements:

* CONFIRM-013: reject-publish exact sequence, classic. x-max-length=n, reject-publish: messages 1..n acked, n+1.. nacked
  until space is free. [rabbit_amqqueue_process:maybe_deliver_or_enqueue]
* CONFIRM-014: reject-publish exact sequence, quorum. A quorum queue tells the channels that publish to it to refuse
  when it is beyond its limit, and to go on when it has at most four fifths of it: n+1 messages are taken before nacks
  start, and more of those that are on their way. A channel that begins to publish is refused only if the queue is
  beyond its limit then. [rabbit_fifo:evaluate_limit; rabbit_fifo_client queue_status]
* OVERFLOW-001: drop-head. By default a queue beyond its limit drops from its head what is ready (or dead-letters it,
  reason maxlen), which is the oldest message, or where the queue has priorities the one that it would deliver next; all
  publishes are acked. [rabbit_amqqueue_process:maybe_drop_head; rabbit_fifo:evaluate_limit; guide: queue length limit]
* OVERFLOW-002: max-length counts ready only. Unacknowledged messages do not count, nor does what a waiting consumer is
  handed at once. What is given back may be too much, and then the head is dropped; by a classic queue before, by a
  quorum queue after waiting consumers are served. [rabbit_amqqueue_process:requeue_and_run; rabbit_fifo:checkout]
* OVERFLOW-005: reject-publish without confirms. With reject-publish and no confirm mode, messages over the limit are
  silently discarded; so are dead letters by a classic queue, and by a quorum queue never. What is given back always
  stays. [rabbit test suite confirms_rejects_SUITE]
* OVERFLOW-006: reject-publish-dlx. Classic: rejected publishes are dead-lettered (reason maxlen) and nacked.
  [rabbit_amqqueue_process]
* TTL-004: expiration "0". Delivered if a consumer can take it at once, else removed; confirmed either way.
  [rabbit_amqqueue_process]
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.length_limits import (
    BEYOND_LIMIT,
    BYTES,
    LENGTH,
    OVERFLOW,
    Overflow,
    exceeded,
    handed_over,
    handed_over_at_once,
    has_length_limit,
    hear_whether_refused,
    overflow,
    refusal,
    size,
    waiting_in,
)
from amqpspec.model.broker.message_order import note_left
from amqpspec.model.broker.policies import CLEARED
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey


def drop_excess(
    broker: Broker, queue: Queue, *, given_back: bool = False, away: Collection[Message] = ()
) -> list[Message]:
    """Take out of the queue what is too much, the next to be delivered first (OVERFLOW-001).

    `given_back`: it is so by what came back. A classic queue drops before it serves who waits
    (rabbit_amqqueue_process:requeue_and_run); it had handed out before what is `away`.
    """
    if queue.policies and len(queue.messages) > queue.policies.cleared.get(LENGTH, len(queue.messages)):
        queue.reason = CLEARED
        broker.fired(CLEARED)
    if not has_length_limit(broker, queue) or overflow(queue) is not Overflow.DROP_HEAD:
        return []
    first = 0 if given_back and queue.type is QueueType.CLASSIC else handed_over_at_once(broker, queue)
    waiting, octets = waiting_in(broker, queue, first)
    if away:
        waiting, octets = waiting - len(away), octets - size(broker, queue, away)
    dropped: list[Message] = []
    while waiting and (requirement := exceeded(queue, waiting, octets)):
        while queue.messages[first] in away:
            first += 1
        message = queue.messages[first]
        del queue.messages[first]
        queue.unproven.pop(message, None)
        note_left(broker.dialect, queue, first)
        waiting, octets = waiting - 1, octets - size(broker, queue, [message])
        by_policies = queue.decided(LENGTH, BYTES)
        if requirement in by_policies:
            broker.fired(*by_policies[by_policies.index(requirement) + 1 :])
        requirement = "OVERFLOW-002" if given_back else requirement
        message.had_no_room = True
        broker.note_gone(queue, message, requirement)
        broker.fired(requirement)
        dropped.append(message)
    if not given_back:
        _note_closeness(broker, queue, waiting, octets)
    return dropped


def _note_closeness(broker: Broker, queue: Queue, waiting: int, octets: int) -> None:
    """What lets the newest message stay where nothing more, or nothing that was held as well, would be let."""
    held = [
        entry.message
        for channel in broker.channels.values()
        for entry in channel.unacknowledged.values()
        if entry.queue is queue
    ]
    if held and exceeded(queue, waiting + len(held), octets + size(broker, queue, held)):
        queue.reason = "OVERFLOW-002"
        broker.fired("OVERFLOW-002")
    elif queue.reason not in BEYOND_LIMIT:
        queue.reason = exceeded(queue, waiting + 1, octets + 1) or queue.reason


def refuses(broker: Broker, queue: Queue, message: Message, publisher: ChannelKey | None) -> bool:
    """Does the queue refuse the new message? `publisher`: None if no channel sends it, but another queue."""
    if not has_length_limit(broker, queue) or overflow(queue) is Overflow.DROP_HEAD:
        return False
    if queue.type is QueueType.QUORUM:
        # what other queues send is never refused (rabbit_fifo_client:untracked_enqueue)
        return publisher is not None and hear_whether_refused(broker, queue, publisher)
    waiting, octets = waiting_in(broker, queue, handed_over(broker, queue) + _gone_at_once(queue))
    is_too_much = bool(exceeded(queue, waiting + 1, octets + size(broker, queue, [message])))
    return is_too_much is not (queue is broker.deciding_otherwise)


def _gone_at_once(queue: Queue) -> int:
    """How many have no time at all: a classic queue removes them before it takes the next one (TTL-004)."""
    timeless = (message.deadline is not None and message.deadline.seconds == 0 for message in queue.messages)
    return sum(1 for _ in takewhile(bool, timeless))


def refuse(broker: Broker, queue: Queue, message: Message, *, confirming: bool) -> None:
    """The message never comes into the queue. With confirms it is nacked: CONFIRM-013 (classic), CONFIRM-014 (quorum),
    OVERFLOW-006 (dead-lettered as well).
    """
    message.position = queue.next_position - 1  # what was published before it has a lower one
    message.refused_by = refusal(queue)
    requirement = message.refused_by if confirming else "OVERFLOW-005"
    broker.note_gone(queue, message, requirement)
    broker.fired(*dict.fromkeys((requirement, *queue.decided(OVERFLOW, LENGTH, BYTES))))
