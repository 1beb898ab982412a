"""Where a message goes that is given back to its queue (ACK-016, ACK-017, ACK-018; QUORUM-002, QUORUM-003).

The count shows as x-delivery-count and x-acquired-count (`model.outputs.expected_properties`). What comes back too
often becomes a dead letter (`model.rules.extensions.dead_letter`); limits of length and time are looked at after it
(`model.rules.extensions.message_expiry`). Who gives back says whether the delivery has failed: for nack and recover the
dialect decides (`quorum_nack_has_not_failed`), for reject and the end of a channel it always has.

Requirements:

* ACK-015: redelivered flag. false on first delivery of a message from this queue, true on every later delivery after
  requeue by nack, reject, recover, cancel+close, channel/connection close, timeout - whether or not the client saw the
  first delivery. [AMQP 0-9-1 basic.deliver; rabbit_channel.erl]
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
* ACK-019: Requeue to which consumer. A message that is given back goes to one of the consumers that have room, which
  may be the one that gave it back. Which one is not promised: with two idle consumers classic was seen to prefer the
  same one (then to alternate), quorum the next in its service queue. [observed; rabbit_queue_consumers]
* ACK-020: Closed holder: immediate redelivery. When a channel closes, its unacked messages are offered to remaining
  consumers; the Deliver on another channel can precede or follow Channel.CloseOk. [rabbit_channel.erl]
* CANCEL-014: Unacked after queue deletion. Unacked deliveries of a deleted queue are discarded; ack is accepted
  silently. [rabbit_channel.erl]
* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* GET-004: Unacked get is requeued at channel close. An unacked get returns to its queue (redelivered=true) when the
  channel's process ends, which is just after close-ok; before close-ok only on a classic queue that the channel also
  consumes from. After a server-sent channel.close this waits for the client's close-ok.
  [rabbit_channel.erl:notify_queues]
* QUORUM-001: x-delivery-count header. Counts earlier failed deliveries; absent on the first delivery from 4.0 on, 0 on
  basic.get in 3.10. A client's own header of that name comes through as long as the broker has no count. Classic queues
  count nothing. The counts are long-long-ints (l). In rabbitmq-3: 0 or absent on first get, as versions differ (absent
  from 3.12.0 on), absent on first deliver. In rabbitmq-4.0: absent first, then 1,2.. In rabbitmq-4.3: absent unless
  failed; x-acquired-count counts every return. [rabbit_fifo_client:add_delivery_count_header]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
* QUORUM-003: Delivery limit. With x-delivery-limit=L a message is removed (dead-lettered with reason delivery_limit, or
  dropped) when its count of returns would exceed L: where each return counts, L=2 gives 3 deliveries. In rabbitmq-3:
  every return counts; default none. In rabbitmq-4.0: every return counts; default 20. In rabbitmq-4.3: reject and the
  end of the channel count, nack with requeue and recover do not (QUORUM-002), so there may be more deliveries than L+1;
  default 20. [rabbit_fifo:return_one]
* QUORUM-004: delivery-limit -1. x-delivery-limit=-1 is accepted and means unlimited (4.0+). In rabbitmq-3: accepted,
  and a message is removed at its first return. In rabbitmq-4.0: unlimited, requeue to tail. In rabbitmq-4.3: unlimited,
  requeue to front. [rabbit_quorum_queue]
* RECOVER-005: recover on quorum counts like nack. 4.0: x-delivery-count +1; 4.3: only x-acquired-count +1. In
  rabbitmq-3: x-delivery-count 1, message to tail. In rabbitmq-4.0: x-delivery-count 1. In rabbitmq-4.3:
  x-acquired-count 1. [rabbit_fifo]
* TIMEOUT-013: Return does not count as a delivery failure. A timed-out message gets x-acquired-count +1 but no
  x-delivery-count, so timeouts alone never hit the delivery limit. [rabbit_fifo return_multiple delivery_failed=false]
* TIMEOUT-019: Late settlement is accepted silently. To settle a timed-out tag is no error, alone, with multiple or by
  tx.commit, even if the message was meanwhile delivered to, or acked by, another consumer; it does not settle that
  delivery. With multiple it settles all outstanding deliveries of the channel up to and including that tag, as ever.
  [RabbitMQ guide: consumer timeouts (timed-out messages are settled by the client yet); RabbitMQ guide: consumer
  acknowledgements (multiple: all outstanding tags up to and including it)]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.internal_events import DeliveryLimitExcess
from amqpspec.model.broker.length_limits import handed_over, has_length_limit
from amqpspec.model.broker.message_order import put_back_as_new, put_back_in_front, put_back_in_place
from amqpspec.model.broker.policies import AT_THAT_MOMENT, BEYOND_RETURNS, LIMIT
from amqpspec.model.broker.queues import Arrival, Consumer, Message, Queue
from amqpspec.model.promises.choices import CarriedFailures, QuorumRequeue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import ChannelKey
from amqpspec.model.rules.common.steps import Step

#: These messages are in the queue again, from that channel. The last ones were on their way to consumers before.
given_back: Step[Broker, Queue, Sequence[Message], ChannelKey, Collection[Message]] = Step()
#: The message came back to the queue, from that channel, over the delivery limit; the queue has dropped it.
dropped_at_limit: Step[Broker, Queue, Message, ChannelKey | None] = Step()

#: The requirements by which a message goes that has come back too often.
AT_LIMIT = frozenset({"QUORUM-003", "QUORUM-004"}) | BEYOND_RETURNS

#: Another client, for which the delivery had timed out, has settled it: that is no reason for it not to come back.
SETTLED_LATE = "TIMEOUT-019"


def delivery_limit(broker: Broker, queue: Queue) -> int | None:
    """Most failed deliveries before a quorum queue drops a message; None: no limit (QUORUM-003, QUORUM-004)."""
    limit = queue.in_force.get(LIMIT)
    if not is_whole_number(limit):
        return broker.dialect.quorum_delivery_limit  # rabbit_quorum_queue:get_delivery_limit
    return None if limit < 0 and queue.negative_limit_is_none else limit


def _has_negative_limit(queue: Queue) -> bool:
    limit = queue.in_force.get(LIMIT)
    return is_whole_number(limit) and limit < 0


def was_dropped_at_limit(message: Message) -> bool:
    """Has its queue dropped the message when it came back?"""
    return message.reason in AT_LIMIT


def give_back(
    broker: Broker,
    queue: Queue,
    messages: Sequence[Message],
    requirement: str,
    *,
    failed: bool,
    holder: ChannelKey,
    lost_holder: bool = False,
    freed: int = 0,
) -> None:
    """Give deliveries of the channel `holder` back to their queue, in the order given, by that requirement.

    `failed`: counts towards the delivery limit (QUORUM-002). `lost_holder`: the channel is gone. `freed`: how many more
    its consumers may be handed because of this.
    """
    if queue.open_by:
        return  # anything may be there as it is
    away = _on_their_way(broker, queue, freed)
    for message in messages:
        if queue.deleted:
            broker.note_gone(queue, message, "CANCEL-014")
            continue
        message.redelivered = True
        message.is_first_here = False
        message.survived_by = ""
        if message.reason != SETTLED_LATE:
            message.reason = requirement
        queue.reason = message.reason
        message.stamp = broker.stamp
        message.passed_over_by = frozenset()
        message.in_front_by = NEVER
        message.is_late = False
        _put_back(broker, queue, message, failed, holder, lost_holder)
    broker.refresh(queue)
    given_back(broker, queue, messages, holder, away)


def _on_their_way(broker: Broker, queue: Queue, freed: int) -> list[Message]:
    """The ready messages that a classic queue with a limit had handed out before something came back."""
    if queue.type is not QueueType.CLASSIC or not has_length_limit(broker, queue):
        return []
    return list(islice(queue.messages, handed_over(broker, queue, freed)))


def _put_back(
    broker: Broker, queue: Queue, message: Message, failed: bool, holder: ChannelKey, lost_holder: bool
) -> None:
    """Make the message ready again, at its place; or drop it over the delivery limit (QUORUM-001, QUORUM-002,
    QUORUM-003).
    """
    message.arrival = Arrival.RETURNING
    transit_group = broker.join_transit_group(queue, message)
    if EXCHANGE in queue.in_force:
        message.tries += 1
    if _is_carried_on(broker, queue, failed, lost_holder):
        message.failures += 1
    if queue.type is QueueType.CLASSIC:
        # ACK-016: the original place, by publish order
        put_back_in_place(queue, message)
        return
    message.via = holder
    message.acquired_count += 1
    if failed:
        message.delivery_count += 1
    limit = delivery_limit(broker, queue)
    requirement = queue.blamed("QUORUM-004" if _has_negative_limit(queue) else "QUORUM-003", LIMIT)
    if limit is not None and message.delivery_count > limit:
        broker.fired(*{"QUORUM-003", requirement, *queue.decided(LIMIT)})
        if queue.policies and queue.decided(LIMIT) and message.position < queue.policies.since:
            broker.fired(AT_THAT_MOMENT)
        del queue.unproven[message]
        broker.note_gone(queue, message, requirement)
        dropped_at_limit(broker, queue, message, holder)
        return
    if (message.delivery_count == limit or requirement == "QUORUM-004") and message.reason != "TIMEOUT-013":
        queue.reason = requirement  # what lets it stay
    where = broker.dialect.quorum_requeue
    if lost_holder or where is QuorumRequeue.FRONT or (where is QuorumRequeue.FRONT_WITH_LIMIT and limit is not None):
        # ACK-017: in front of all ready messages, behind what was given back before
        message.transit_group = -transit_group
        put_back_in_front(queue, message)
    else:
        # ACK-018: like a new message
        message.transit_group = transit_group
        put_back_as_new(broker.dialect, queue, message)
    if limit is not None and message.delivery_count + message.brought[0] > limit:
        broker.internal_events.append(DeliveryLimitExcess(queue.name, message.position))


def _is_carried_on(broker: Broker, queue: Queue, failed: bool, lost_holder: bool) -> bool:
    """Will the failed delivery still be known when the message is dead-lettered (DLX-010)?"""
    carried = broker.dialect.carried_failures
    if carried is CarriedFailures.OF_QUORUM_QUEUES:
        return queue.type is QueueType.QUORUM and lost_holder  # rabbit_fifo:return_all
    return carried is CarriedFailures.OF_ALL_QUEUES and failed


def place_requirement(broker: Broker, queue: Queue) -> str:
    """The requirement that says where in this queue a message goes that is given back."""
    if queue.type is QueueType.CLASSIC:
        return "ACK-016"
    if delivery_limit(broker, queue) is None:
        return "ACK-018"
    return "ACK-017"


def shown_by(broker: Broker, queue: Queue, message: Message, consumer: Consumer | None) -> Iterator[str]:
    """What the delivery of a message that came back shows; the message is out of the queue, not yet counted as held."""
    yield "ACK-015"
    yield message.reason
    if queue.messages:
        yield place_requirement(broker, queue)
    if queue.type is QueueType.QUORUM:
        yield "QUORUM-002"
        if message.reason.startswith("TIMEOUT"):
            yield "TIMEOUT-013"
        if _has_negative_limit(queue):
            yield "QUORUM-004"
        if message.reason.startswith("RECOVER"):
            yield "RECOVER-005"
    if consumer is None:
        return
    if message.reason in ("CHAN-016", "GET-004"):
        yield "ACK-020"
    elif len(broker.with_room(queue)) > 1:
        yield "ACK-019"


def return_order(queue: Queue, entries: Iterable[tuple[int, Unacknowledged]]) -> list[Message]:
    """The order in which several deliveries of one channel reach their queue, all given back at once.

    A queue gets them consumer by consumer, those of basic.get first, each in order of delivery
    (rabbit_channel:foreach_per_queue); a classic queue sorts by place anyway.
    """
    if queue.type is QueueType.CLASSIC:
        return [entry.message for _, entry in entries]
    return by_consumer(entries)


def by_consumer(entries: Iterable[tuple[int, Unacknowledged]]) -> list[Message]:
    """Deliveries from one queue in the order in which its process hears of them."""

    def consumer_then_tag(item: tuple[int, Unacknowledged]) -> tuple[bool, str, int]:
        tag, entry = item
        return (entry.consumer is not None, entry.consumer.tag if entry.consumer else "", tag)

    return [entry.message for _, entry in sorted(entries, key=consumer_then_tag)]


def former_consumers(broker: Broker, consumer: Consumer) -> set[Consumer]:
    """Cancelled consumers of the same queue and tag of which the channel still holds deliveries."""
    return {
        entry.consumer
        for entry in broker.channels[consumer.channel].unacknowledged.values()
        if entry.consumer is not None
        and entry.consumer is not consumer
        and entry.queue is consumer.queue
        and entry.consumer.tag == consumer.tag
    }


def known_since(broker: Broker, consumer: Consumer) -> int | None:
    """When the oldest cancelled consumer of the same channel, tag and queue was created that still holds deliveries: a
    quorum queue takes the new consumer for that one (rabbit_fifo:find_consumer, from 4.0). None: there is none.
    """
    if consumer.queue.type is not QueueType.QUORUM:
        return None
    return min((former.key for former in former_consumers(broker, consumer)), default=None)


def lost_order(broker: Broker, queue: Queue, entries: Iterable[tuple[int, Unacknowledged]]) -> list[Message]:
    """The usual order in which the deliveries of a channel that is gone reach their queue (rabbit_fifo:handle_down).

    A quorum queue goes through its consumers in the order of their keys, each basic.get being one whose tag is its
    delivery tag as text. That is no promise: `leave_order_open`.
    """
    if queue.type is QueueType.CLASSIC:
        return [entry.message for _, entry in entries]

    def key(item: tuple[int, Unacknowledged]) -> tuple[int, str, int]:
        tag, entry = item
        if entry.consumer is None:
            return (2**64 if broker.dialect.lost_consumers_by_creation else 0, str(tag), tag)
        return (entry.consumer.key if broker.dialect.lost_consumers_by_creation else 0, entry.consumer.tag, tag)

    return [entry.message for _, entry in sorted(entries, key=key)]


def leave_order_open(holder: ChannelKey, queue: Queue, entries: Iterable[tuple[int, Unacknowledged]]) -> None:
    """Of what a channel that is gone gave back, only that of one consumer is in a certain order; each get is one."""
    if queue.type is QueueType.CLASSIC:
        return
    for tag, entry in entries:
        whose = f"get {tag}" if entry.consumer is None else f"consumer {entry.consumer.tag}"
        entry.message.via = (f"{whose} of {holder[0]}", holder[1])
