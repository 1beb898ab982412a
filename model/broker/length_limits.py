"""Limits on a queue's ready messages, and what becomes of those beyond (area OVERFLOW; guide: queue length limit).

A classic queue looks before it takes a message (rabbit_amqqueue_process:will_overflow) or drops after it
(maybe_drop_head). A quorum queue checks its limits after every command (rabbit_fifo:evaluate_limit). It drops from its
head; or it tells the channels that publish to it to refuse, and to accept again once it has room. So it is one message
over its limit before a channel refuses (CONFIRM-014).

Requirements:

* CONFIRM-008: Unroutable is acked. An unroutable message is acked as soon as routing found no queue. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms; rabbit_channel.erl:process_routing_confirm]
* CONFIRM-011: Any rejecting queue makes it a nack. If one target queue rejects (overflow reject-publish) the message is
  nacked although other queues keep their copy. The nack does not wait for these; CONFIRM-006 and CONFIRM-007 say how it
  looks. [rabbit_confirms:reject]
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
* OVERFLOW-003: max-length 0. With x-max-length 0 every message is dropped, still acked, that no consumer waits for. A
  classic queue with reject-publish refuses those as well. [LavinMQ specs]
* OVERFLOW-004: max-length-bytes. x-max-length-bytes limits as x-max-length does, counting body octets and not
  properties; if both are given, each holds. In rabbitmq-4.3: broken: a quorum queue counts properties, two octets for
  none. [guide: queue length limit; rabbit_amqqueue_process:over_max_length]
* OVERFLOW-006: reject-publish-dlx. Classic: rejected publishes are dead-lettered (reason maxlen) and nacked.
  [rabbit_amqqueue_process]
* QOS-012: Quorum queue or stream with global qos. consume on a quorum queue or a stream while a channel limit is active
  is hard 540 (<=4.2). In rabbitmq-3: 540. In rabbitmq-4.0: 540. [rabbit_quorum_queue:consume,
  rabbit_stream_queue:consume, limiter_active]
* QUORUM-007: reject-publish-dlx. Accepted as overflow value by quorum declare on all three versions.
  [rabbit_quorum_queue]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Admission, Channel
from amqpspec.model.broker.dispatch import contenders
from amqpspec.model.broker.limits import counted, own_limit_holds, shared_limit_holds
from amqpspec.model.broker.policies import BEYOND_LENGTH
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.time_to_live import over_in_front
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey

LENGTH, BYTES, OVERFLOW = "x-max-length", "x-max-length-bytes", "x-overflow"
#: The requirements by which a queue drops what is too much.
BEYOND_LIMIT = frozenset({"OVERFLOW-001", "OVERFLOW-002", "OVERFLOW-003", "OVERFLOW-004"}) | BEYOND_LENGTH


class Overflow(Enum):
    """What becomes of what is too much; the values are those of `x-overflow`."""

    DROP_HEAD = "drop-head"
    REJECT = "reject-publish"
    #: what is refused is dead-lettered (OVERFLOW-006)
    REJECT_AND_DEAD_LETTER = "reject-publish-dlx"


def has_length_limit(broker: BrokerState, queue: Queue) -> bool:
    arguments = queue.in_force
    if not arguments or queue.type is QueueType.STREAM:
        return False  # what a stream drops is a matter of its retention
    return any(name in arguments and broker.dialect.has(name) for name in (LENGTH, BYTES))


def overflow(queue: Queue) -> Overflow:
    """QUORUM-007: a quorum queue takes reject-publish-dlx for drop-head (rabbit_quorum_queue:overflow)."""
    chosen = Overflow(queue.in_force.get(OVERFLOW, Overflow.DROP_HEAD.value))
    if chosen is Overflow.REJECT_AND_DEAD_LETTER and queue.type is QueueType.QUORUM:
        return Overflow.DROP_HEAD
    return chosen


# ---------------------------------------------------------------------------------------------- what counts


def size(broker: BrokerState, queue: Queue, messages: Iterable[Message]) -> int:
    """OVERFLOW-004: octets of bodies, not of properties."""
    return sum(_weight(broker, queue, message) for message in messages)


def _weight(broker: BrokerState, queue: Queue, message: Message) -> int:
    return len(message.content.body)


def handed_over(broker: BrokerState, queue: Queue, freed: int = 0) -> int:
    """How many of the ready messages are on their way to consumers: these do not count (OVERFLOW-002).

    `freed`: so much of the room that the consumers have is not to be counted.
    """
    if queue not in broker.deliverable:
        return 0
    room: dict[ChannelKey, float] = {}
    for consumer in _served(broker, queue):
        if not shared_limit_holds(broker, consumer):
            room[consumer.channel] = room.get(consumer.channel, 0) + _own_room(consumer)
    whole = sum(min(own, _shared_room(broker, broker.channels[key], queue)) for key, own in room.items())
    return int(min(max(whole - freed, 0), len(queue.messages)))


def _served(broker: BrokerState, queue: Queue) -> list[Consumer]:
    """Those that are handed messages, as far as their own limits go."""
    consumers = contenders(broker, queue)
    return [each for each in consumers if not each.timed_out and not own_limit_holds(each)]


def _own_room(consumer: Consumer) -> float:
    return float("inf") if consumer.no_ack or not consumer.prefetch else consumer.prefetch - consumer.outstanding


def handed_over_at_once(broker: BrokerState, queue: Queue) -> int:
    """How many go to consumers before a quorum queue looks at its limits. To one without acknowledgements it hands no
    more than the limit of that one's channel, until the channel has settled these (rabbit_fifo_client:handle_delivery).
    """
    away = handed_over(broker, queue)
    if not away or queue.type is not QueueType.QUORUM:
        return away
    served = _served(broker, queue)
    if not all(consumer.unheeded_prefetch for consumer in served):
        return away
    return min(away, sum(consumer.unheeded_prefetch for consumer in served))


def _shared_room(broker: BrokerState, channel: Channel, queue: Queue) -> float:
    """QOS-012: only consumers of classic queues heed the limit of their channel."""
    if not channel.channel_prefetch or queue.type is not QueueType.CLASSIC:
        return float("inf")
    return max(channel.channel_prefetch - counted(broker, channel), 0)


def exceeded(queue: Queue, waiting: int, octets: int) -> str:
    """The requirement by which so many waiting messages, of so many octets, are too much; "" if they are not."""
    length, most_octets = queue.in_force.get(LENGTH), queue.in_force.get(BYTES)
    if length is not None and waiting > length:
        return queue.blamed("OVERFLOW-001" if length else "OVERFLOW-003", LENGTH)
    if most_octets is not None and octets > most_octets:
        return queue.blamed("OVERFLOW-004", BYTES)
    return ""


def waiting_in(broker: BrokerState, queue: Queue, first: int) -> tuple[int, int]:
    octets = size(broker, queue, islice(queue.messages, first, None)) if BYTES in queue.in_force else 0
    return len(queue.messages) - first, octets


# -------------------------------------------------------------------------------------------- reject-publish


def refusal(queue: Queue) -> str:
    """The requirement by which the queue refuses messages."""
    if overflow(queue) is Overflow.REJECT_AND_DEAD_LETTER:
        otherwise = "OVERFLOW-006"
    else:
        otherwise = "CONFIRM-014" if queue.type is QueueType.QUORUM else "CONFIRM-013"
    return queue.blamed(otherwise, OVERFLOW, LENGTH, BYTES)


def hear_whether_refused(broker: BrokerState, queue: Queue, publisher: ChannelKey) -> bool:
    """rabbit_fifo_client:enqueue; the first publish asks the queue (rabbit_fifo: #register_enqueuer{}).

    What the queue has told of late the channel may not know yet (`BrokerState.deciding_otherwise`).
    """
    admissions = broker.channels[publisher].admissions
    if queue not in admissions:
        is_over = bool(exceeded(queue, *waiting_in(broker, queue, handed_over(broker, queue))))
        was_asked_before = queue is broker.deciding_otherwise  # it had not become too much yet when the queue was asked
        refused = Admission.TOLD_TO_REFUSE if was_asked_before else Admission.REFUSED
        admissions[queue] = refused if is_over else Admission.ADMITTED
    told = admissions[queue]
    # a commit publishes all at once (rabbit_channel:handle_method, tx.commit), and hears of nothing meanwhile
    is_busy = broker.channels[publisher].transaction is not None
    if queue is broker.deciding_otherwise or (is_busy and told is not told.heard):
        return told is Admission.TOLD_TO_GO_ON
    admissions[queue] = told.heard
    return told.heard is Admission.REFUSED


def hear(channel: Channel) -> None:
    """The channel has heard of all that it was told before."""
    for queue, told in channel.admissions.items():
        channel.admissions[queue] = told.heard


def tell_publishers(broker: BrokerState, queue: Queue) -> None:
    """rabbit_fifo:evaluate_limit: beyond its limits the queue has all refuse, and lets them go on at four fifths."""
    if queue.type is not QueueType.QUORUM or overflow(queue) is Overflow.DROP_HEAD:
        return
    if not has_length_limit(broker, queue):
        return
    first = handed_over(broker, queue)
    waiting, octets = waiting_in(broker, queue, first)
    if exceeded(queue, *_waiting_alive(broker, queue, first)):
        told = Admission.TOLD_TO_REFUSE
    elif _is_below_soft_limit(queue, waiting, octets):
        told = Admission.TOLD_TO_GO_ON
    else:
        return
    for channel in broker.channels.values():
        if queue in channel.admissions and channel.admissions[queue].heard is not told.heard:
            channel.admissions[queue] = told


def _waiting_alive(broker: BrokerState, queue: Queue, first: int) -> tuple[int, int]:
    """As `waiting_in`, without what is removed before a quorum queue looks at its limits: it has expired. What a
    channel gives back may be so (rabbit_fifo:checkout).
    """
    over = over_in_front(broker.dialect, queue, broker.now)
    if not over:
        return waiting_in(broker, queue, first)
    alive = [message for message in queue.messages if message not in over][first:]
    return len(alive), size(broker, queue, alive)


def may_be_contrary(broker: BrokerState, channel: Channel) -> Iterator[Queue]:
    """Queues that may take what they should refuse by all that is known, or the other way round.

    A quorum queue if the channel does not know yet what it is told; a classic one if another channel deals with it at
    the same time, and so a quorum queue that the channel has to ask first.
    """
    yield from (queue for queue, told in channel.admissions.items() if told is not told.heard)
    for queue in {queue: None for key, queue in broker.touched if key != channel.key}:
        if queue.type is QueueType.STREAM or queue in channel.admissions:
            continue
        if has_length_limit(broker, queue) and overflow(queue) is not Overflow.DROP_HEAD:
            yield queue


def _is_below_soft_limit(queue: Queue, waiting: int, octets: int) -> bool:
    """LOW_LIMIT in rabbit_fifo.hrl."""
    limits = ((queue.in_force.get(LENGTH), waiting), (queue.in_force.get(BYTES), octets))
    return all(most is None or number <= int(most * 0.8) for most, number in limits)


# ------------------------------------------------------------------------------------------------ confirms

Copies = tuple[tuple[Queue, Message], ...]


def refusal_of(copies: Copies) -> str:
    """The requirement by which the publish of these copies is refused: as soon as one queue refuses its own."""
    for _, message in copies:
        if message.refused_by:
            break
    else:
        return ""  # by far the most
    refused = [message.refused_by for _, message in copies if message.refused_by]
    return refused[0] if len(refused) == len(copies) == 1 else "CONFIRM-011"


def refused_for_nothing(copies: Copies) -> str:
    """The requirement that the refusal of a publish breaks which all its queues had room for, if it has any."""
    if not copies:
        return "CONFIRM-008"
    for queue, _ in copies:
        if LENGTH in queue.in_force or BYTES in queue.in_force:
            return "OVERFLOW-001" if overflow(queue) is Overflow.DROP_HEAD else refusal(queue)
    return "CONFIRM-011"


def tells_of_arrival(copies: Copies, queue: Queue, message: Message) -> bool:
    """Does the confirm of these copies tell that this one has come to its queue?

    A nack does not wait for the queues that take theirs (rabbit_confirms:reject), and that of a quorum queue is said
    by the channel itself.
    """
    if message.refused_by:
        return queue.type is QueueType.CLASSIC
    return not any(other.refused_by for _, other in copies)
