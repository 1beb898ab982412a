"""The order of ready messages: by priority where a queue has priorities, else as they came (PRIORITY-003, QUORUM-005).

A queue's `messages` are kept in the order in which they will be delivered. Those in front that were given back to a
quorum queue (`Queue.returned`) go before every priority: `rabbit_fifo:take_next_msg` looks at its returns first. A
classic queue has no such place: what is given back goes among those of its priority (`rabbit_priority_queue:requeue`).

Requirements:

* ACK-016: Requeue position, classic. A requeued message goes back to its ORIGINAL position (by publish order) whatever
  the order of nacks. [rabbit_variable_queue:requeue]
* ACK-017: Requeue position, quorum 4.x. Requeued messages go to a returns queue in front of all ready messages, in the
  order the returns were APPLIED. One nack multiple or recover applies per consumer, oldest delivery first: the gets in
  tag order, then the consumers in the order of their tags. A channel's close returns consumers in the order in which
  they were created, then gets in the order of their tags as text (1, 10, 2). In rabbitmq-3: front when the queue has a
  delivery limit, which is not the default; otherwise see ACK-018. In rabbitmq-4.0: front, return order (when a delivery
  limit is set; default 20). In rabbitmq-4.3: front, return order (any limit incl. -1). [rabbit_fifo:return]
* ACK-018: Requeue position, quorum without delivery limit. Before 4.3 a quorum queue with no delivery limit (3.10
  default, 4.0 with x-delivery-limit=-1) re-appends nacked messages at the TAIL; channel/connection close returns go to
  the front (3.10: in the order of the consumer tags, those of gets as text). In rabbitmq-3: tail without
  x-delivery-limit, front with x-delivery-limit 10. In rabbitmq-4.0: tail only for -1. In rabbitmq-4.3: front.
  [rabbit_fifo handle_aux return/requeue]
* PRIORITY-003: Classic message priority. A classic queue with x-max-priority=n delivers higher priorities first, FIFO
  within one; values above n count as n, none as 0; whether n=0 knows 1 as well is left open. What is given back goes to
  its place among the messages of its priority. A queue without the argument pays no heed to priorities.
  [rabbit_priority_queue:priorities, priority, requeue]
* QUORUM-005: Message priority. Message priority on a quorum queue. 4.3: strict priorities 0..31 without argument, none
  is 4; 4.0: two classes (>4 high), 2:1 interleaved: every third message since the queue was made or purged is a normal
  one, unless the next high one is older; 3.10: FIFO. What is given back in front goes before all priorities, in the
  order of giving back; at the tail (4.0, without delivery limit) it is a normal one. In rabbitmq-3: FIFO. In
  rabbitmq-4.0: high/normal. In rabbitmq-4.3: strict. [rabbit_fifo_pq; rabbit_fifo_q:next; rabbit_fifo:take_next_msg,
  msg_priority, priority_tag]
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from amqpspec.model.broker.queues import Arrival, Message, Queue
from amqpspec.model.promises.choices import Dialect, QuorumPriorities
from amqpspec.model.promises.queue_types import QueueType

#: A quorum queue with strict priorities knows them up to this (MAX_PRIORITY in rabbit_fifo.hrl of 4.3) ...
HIGHEST = 31
#: ... and takes a message that names none as one of this (DEFAULT_PRIORITY, there).
USUAL = 4

#: Of each three messages a quorum queue of two classes gives the third to the lower one (WEIGHT in rabbit_fifo_q).
_LOW_TURN = 2
_HIGH, _NORMAL = 1, 0


def effective_priority(dialect: Dialect, queue: Queue, message: Message) -> int:
    """What the priority that the publisher named is worth in this queue; 0 for all where it is worth nothing."""
    if queue.type is QueueType.CLASSIC:
        arguments = queue.in_force if queue.meaningless else queue.arguments
        most: int | None = arguments.get("x-max-priority")
        if most is None:
            return 0
        # rabbit_priority_queue:priority
        return min(_named(message, 0), max(most, queue.least_max_priority))
    if queue.type is not QueueType.QUORUM or dialect.quorum_priorities is QuorumPriorities.NONE:
        return 0
    if dialect.quorum_priorities is QuorumPriorities.STRICT:
        # rabbit_fifo:msg_priority
        return min(_named(message, USUAL), HIGHEST)
    # rabbit_fifo:priority_tag
    return _HIGH if _named(message, USUAL) > USUAL else _NORMAL


def _named(message: Message, otherwise: int) -> int:
    priority: int | None = message.content.properties.get("priority")
    return otherwise if priority is None else priority


def _takes_turns(dialect: Dialect, queue: Queue) -> bool:
    return queue.type is QueueType.QUORUM and dialect.quorum_priorities is QuorumPriorities.TWO_CLASSES


# ------------------------------------------------------------------------------------------- messages come


def put_new(dialect: Dialect, queue: Queue, message: Message) -> None:
    """Put a new message where its priority says. Where no later one has less of it that is the end, at once."""
    message.priority = effective_priority(dialect, queue, message)
    messages = queue.messages
    if not messages or message.priority <= messages[-1].priority or len(messages) == queue.returned:
        messages.append(message)
    elif _takes_turns(dialect, queue):
        messages.insert(_next_high_turn(queue), message)
    else:
        first = _first_in_hand(queue)
        messages.insert(bisect_right(messages, -message.priority, lo=first, key=lambda other: -other.priority), message)


def _next_high_turn(queue: Queue) -> int:
    """Where the newest message of the higher class goes: behind the others of it, and at no turn of the lower one."""
    place = len(queue.messages) - sum(1 for _ in takewhile(_is_normal, reversed(queue.messages)))
    place = max(place, _first_in_hand(queue))
    return place + ((queue.turn + place - queue.returned) % (_LOW_TURN + 1) == _LOW_TURN)


def _is_normal(message: Message) -> bool:
    return message.priority == _NORMAL


def put_back_in_place(queue: Queue, message: Message) -> None:
    """ACK-016: to its original place in a classic queue, among the messages of its priority."""
    place = (-message.priority, message.position)
    index = bisect_left(queue.messages, place, key=lambda other: (-other.priority, other.position))
    queue.messages.insert(index, message)


def put_back_in_front(queue: Queue, message: Message) -> None:
    """ACK-017: in front of all ready messages of whatever priority, behind what was given back before."""
    queue.messages.insert(queue.returned, message)
    queue.returned += 1


def put_back_as_new(dialect: Dialect, queue: Queue, message: Message) -> None:
    """ACK-018: like a new message, but of the lower class where there are two (`rabbit_fifo:apply` of `#requeue{}`)."""
    message.priority = _NORMAL if _takes_turns(dialect, queue) else effective_priority(dialect, queue, message)
    message.position = queue.next_position
    queue.next_position += 1
    queue.messages.append(message)


# --------------------------------------------------------------------------------------------- messages go


def note_left(dialect: Dialect, queue: Queue, index: int) -> None:
    """The message that was at this place has been taken out of the ready ones."""
    if index < queue.returned:
        queue.returned -= 1
    elif _takes_turns(dialect, queue):
        # rabbit_fifo_q:out, whichever class it is of
        queue.turn = 0 if queue.turn == _LOW_TURN else queue.turn + 1
        if index > queue.returned and _has_both_classes(queue):
            _take_turns(queue)  # it went before others that had not come yet


def note_all_left(queue: Queue) -> None:
    """No message is ready any more; a purged queue begins anew (`rabbit_fifo:apply` of `#purge{}`)."""
    queue.messages.clear()
    queue.unproven.clear()
    queue.dropping.clear()
    queue.returned = queue.turn = 0


def _first_in_hand(queue: Queue) -> int:
    """The first place of which the queue still decides: those before are given back, or on their way to somebody."""
    first = queue.returned
    while first < len(queue.messages) and queue.messages[first].passed_over_by:
        first += 1
    return first


def _has_both_classes(queue: Queue) -> bool:
    """May there be messages of the higher class? They are never far from the front."""
    first = _first_in_hand(queue)
    return any(message.priority for message in islice(queue.messages, first, first + _LOW_TURN + 2))


def _take_turns(queue: Queue) -> None:
    """Put the messages of the two classes in the order in which they will be delivered (`rabbit_fifo_q:next`)."""
    first = _first_in_hand(queue)
    waiting = list(islice(queue.messages, first, None))
    turn = queue.turn + first - queue.returned
    while len(queue.messages) > first:
        queue.messages.pop()
    queue.messages.extend(_by_turns(waiting, turn))


def _by_turns(messages: Iterable[Message], turn: int) -> Iterator[Message]:
    oldest_last = sorted(messages, key=lambda message: -message.position)
    high = [message for message in oldest_last if message.priority == _HIGH]
    normal = [message for message in oldest_last if message.priority == _NORMAL]
    while high and normal:
        # the lower class has its turn, unless the other one's message is older
        is_low = turn % (_LOW_TURN + 1) == _LOW_TURN and high[-1].position > normal[-1].position
        yield (normal if is_low else high).pop()
        turn += 1
    yield from reversed(high or normal)


# ------------------------------------------------------------------------------- what a delivery shows of it


def may_come_later(queue: Queue, waiting: Message, delivered: Message) -> bool:
    """Is `waiting` ahead by its priority alone, and perhaps came to the queue when `delivered` had left it already?"""
    if waiting.priority == delivered.priority or waiting.position < delivered.position:
        return False
    return waiting.arrival is Arrival.PUBLISHED or waiting.position >= queue.at_rest


def priority_requirement(queue: Queue) -> str:
    return "PRIORITY-003" if queue.type is QueueType.CLASSIC else "QUORUM-005"


def is_broken_priority(queue: Queue, skipped: Message, delivered: Message, from_returned: bool) -> bool:
    """Is it by priorities that `skipped` should have come and not `delivered`? `from_returned`: it was in front."""
    if from_returned:
        return _named(delivered, 0) > _named(skipped, 0)
    if skipped.priority != delivered.priority:
        return True
    if delivered.redelivered or skipped.redelivered:
        return False
    # of one priority, or one that the queue ignores
    return "x-max-priority" in queue.arguments or _named(delivered, 0) > _named(skipped, 0)


def shows_priority(dialect: Dialect, queue: Queue, message: Message) -> bool:
    """Did it make a difference to this delivery what priorities are worth? The message is out of the queue."""
    messages = queue.messages
    if len(messages) == queue.returned:
        return False
    following = messages[queue.returned]
    if message.redelivered and queue.type is QueueType.QUORUM:
        return following.priority > message.priority
    if _takes_turns(dialect, queue):
        others = islice(messages, queue.returned, queue.returned + _LOW_TURN + 1)
        return any(_overtakes(message, other) or other.priority > message.priority for other in others)
    if messages[-1].priority < message.priority:
        lower = bisect_right(messages, -message.priority, lo=queue.returned, key=lambda other: -other.priority)
        return _overtakes(message, messages[lower])
    # it is ignored, or is worth no more than others
    return following.priority == message.priority and _named(following, 0) > _named(message, 0)


def _overtakes(message: Message, other: Message) -> bool:
    return message.priority > other.priority and message.position > other.position


def may_be_overtaken(queue: Queue, published: Message, returned: Message) -> bool:
    """What a channel gives back may come to a quorum queue before what it has published there: as in a transaction,
    both at once (rabbit_fifo_client:enqueue sends with low priority, settle and return do not). That both have come
    does not tell which was the first.
    """
    if queue.type is not QueueType.QUORUM:
        return False
    if published.arrival is Arrival.PUBLISHED and returned.arrival is Arrival.RETURNING:
        return True
    return published.transit_group == returned.transit_group and returned.redelivered and not published.redelivered
