"""How long messages live in a queue, and which of them the queue looks at (area TTL; RabbitMQ's guide "TTL").

A message lives as long as its `expiration` and its queue's `x-message-ttl` both let it. Only the ready message that is
next is looked at: those behind one that lives on are counted until it is their turn. RabbitMQ:
rabbit_amqqueue_process:drop_expired_msgs; rabbit_fifo:expire_msgs, and expire_batch of 4.3.

Requirements:

* TTL-001: Per-message expiration. A ready message older than its expiration (ms, string) at the queue head is removed,
  never delivered. [rabbit_amqqueue_process:drop_expired_msgs]
* TTL-002: Queue TTL. x-message-ttl applies to all messages; the minimum of both holds. [RabbitMQ Java client test
  PerQueueVsPerMessageTTL]
* TTL-003: Expired behind a live head. Messages expire only at the head: they are still counted while a live message is
  in front. get-ok.message_count: classic already drops the expired follower (0), quorum still counts it (1). A quorum
  queue of 4.3 has a head of each priority, and one of the messages that were given back. In rabbitmq-4.3: quorum
  queues: behind a live message of the same priority. [rabbit_amqqueue_process:fetch; rabbit_fifo:expire_msgs,
  expire_batch (4.3)]
* TTL-004: expiration "0". Delivered if a consumer can take it at once, else removed; confirmed either way.
  [rabbit_amqqueue_process]
* TTL-005: Unacked messages do not expire. Expiry is checked again on requeue: an over-age message nacked with requeue
  vanishes. [LavinMQ specs "expires messages with TTL on requeue"]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import is_whole_number

ARGUMENT = "x-message-ttl"

#: Of a message's own expiration; of its queue's, or where both are set; of no time at all; of one that came back.
OWN, OF_QUEUE, NONE_AT_ALL, GIVEN_BACK = "TTL-001", "TTL-002", "TTL-004", "TTL-005"
#: Messages behind one that lives on are still there.
BEHIND = "TTL-003"


def begin_time_to_live(dialect: Dialect, queue: Queue, message: Message, since: float, by: float) -> bool:
    """The message has come to the queue, in the time between `since` and `by`. Will its time be up one day?"""
    milliseconds = time_to_live(dialect, queue, message)
    if milliseconds is None:
        return False
    message.deadline = Deadline(milliseconds / 1000, since, by)
    is_own = not is_whole_number(queue.in_force.get(ARGUMENT))
    message.ttl_from = NONE_AT_ALL if milliseconds == 0 else OWN if is_own else queue.blamed(OF_QUEUE, ARGUMENT)
    if queue.messages[0] is message:
        message.in_front_by = by
    return True


def time_to_live(dialect: Dialect, queue: Queue, message: Message) -> int | None:
    """Milliseconds that the message, as it was published, may live in the queue; None: any time."""
    if queue.type is QueueType.STREAM or queue.reply_address:
        return None
    own = message.content.properties.get("expiration") if dialect.has("expiration") else None
    of_queue = queue.in_force.get(ARGUMENT) if dialect.has(ARGUMENT) else None
    if own is None and of_queue is None:
        return None  # by far the most
    times = (int(own) if own is not None and own.isdecimal() else None, of_queue)
    return min((each for each in times if is_whole_number(each)), default=None)


def row_of(dialect: Dialect, queue: Queue, index: int) -> int:
    """Of which row of messages, each with a front of its own, is the one at that place?

    From 4.3 on a quorum queue looks at the first of those given back, and of each priority (rabbit_fifo:timer_effect).
    """
    if queue.type is not QueueType.QUORUM or not dialect.quorum_expires_by_priority:
        return 0
    return -1 if index < queue.returned else queue.messages[index].priority


def exposed(dialect: Dialect, queue: Queue, away: float) -> Iterator[Message]:
    """The messages that may be in front, if up to `away` of those ahead may be on their way to consumers."""
    ahead: dict[int, int] = {}
    for index, message in enumerate(queue.messages):
        row = row_of(dialect, queue, index)
        before = ahead.get(row, 0)
        if before <= away:
            ahead[row] = before + 1
            yield message
        elif row == 0 and not queue.returned and not queue.messages[-1].priority:
            return


def may_go(dialect: Dialect, queue: Queue, away: float) -> Iterator[Message]:
    """The messages that the queue may remove next when their time is up.

    That only the one in front is looked at is RabbitMQ's way: others may as well remove the one whose time is up first.
    """
    yield from exposed(dialect, queue, away)
    if not dialect.extensions:
        timed = ((message.deadline.earliest, message) for message in queue.messages if message.deadline is not None)
        first = min(timed, key=lambda pair: pair[0], default=None)
        if first is not None and first[1] not in islice(queue.messages, int(away) + 1):
            yield first[1]


def over_in_front(dialect: Dialect, queue: Queue, moment: float) -> list[Message]:
    """The messages that are certainly removed if the queue looks at its fronts at that moment."""
    over: list[Message] = []
    living: set[int] = set()
    for index, message in enumerate(queue.messages):
        row = row_of(dialect, queue, index)
        if row not in living and is_due(message, moment):
            over.append(message)
        else:
            living.add(row)
    return over


def looks_behind(queue: Queue, no_ack: bool) -> bool:
    """Does the queue look at what is next when basic.get has taken a message, before it counts?

    A classic queue does; a quorum queue counts first, but where the message is settled at once (rabbit_fifo:apply,
    #checkout{spec = {dequeue, settled}}).
    """
    return queue.type is QueueType.CLASSIC or no_ack


def dropped_by_fetch(queue: Queue, index: int, now: float, sent: float, *, no_ack: bool) -> tuple[int, int]:
    """How many of those behind the one at that place go with it, at least and at most, before they are counted
    (TTL-003). `now`: when that is known. `sent`: when it was asked for.
    """
    if not looks_behind(queue, no_ack):
        return 0, 0
    least = most = 0
    for message in islice(queue.messages, index + 1, None):
        if message.deadline is None or message.deadline.earliest > now:
            break
        most += 1
        if least == most - 1 and is_due(message, sent):
            least += 1
    return least, most


def is_due(message: Message, moment: float) -> bool:
    """Was its time certainly up at that moment, so that a queue that looked at it then removed it?"""
    return message.deadline is not None and message.deadline.due < moment


def is_long_over(message: Message, moment: float) -> bool:
    """Was its time certainly up, and looked at, before that moment?"""
    return message.deadline is not None and message.deadline.latest < moment


def missed(queue: Queue, now: float) -> str | None:
    """The requirement that is broken if a message of the queue is missed now: that it is not yet time for it to go."""
    for index, message in enumerate(queue.messages):
        if message.deadline is not None:
            return BEHIND if index and message.deadline.earliest <= now else message.ttl_from
    return None


def front_known_by(dialect: Dialect, queue: Queue, now: float) -> bool:
    """All is at rest: what is in the queue has come, and what is in front is so. Will anything of it expire?"""
    ages = False
    for message in queue.messages:
        if message.deadline is not None:
            message.deadline = message.deadline.begun_by(now)
            ages = True
    if ages:
        for message in exposed(dialect, queue, 0):
            message.in_front_by = min(message.in_front_by, now)
    return ages


def certain_by(message: Message) -> float:
    """From when on it is certainly gone, as long as it stays in front."""
    if message.deadline is None or message.in_front_by == NEVER:
        return NEVER
    return max(message.deadline.latest, message.in_front_by + message.deadline.latest - message.deadline.due)
