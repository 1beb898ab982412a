"""Deliveries that are on their way to a consumer when it ends: nobody sees them, but their queue has counted them.

While a queue has something to deliver and the consumer has room, what is ready may be with its channel already. When
the consumer is cancelled the channel gives it back to a quorum queue (QUORUM-008; rabbit_fifo_client:handle_delivery
of a tag that is not known any more); when the channel ends the queue takes it back (CHAN-016).

Requirements:

* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* CONSUME-013: no_ack consumer. Deliveries of a no_ack consumer count as acked when sent: ack of such a tag is 406; on
  channel close they are lost. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.consume]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
* QUORUM-003: Delivery limit. With x-delivery-limit=L a message is removed (dead-lettered with reason delivery_limit, or
  dropped) when its count of returns would exceed L: where each return counts, L=2 gives 3 deliveries. In rabbitmq-3:
  every return counts; default none. In rabbitmq-4.0: every return counts; default 20. In rabbitmq-4.3: reject and the
  end of the channel count, nack with requeue and recover do not (QUORUM-002), so there may be more deliveries than L+1;
  default 20. [rabbit_fifo:return_one]
* QUORUM-008: No ready messages lost by cancel. What a cancelled consumer was handed stays unacknowledged with its
  channel. What was on its way to it is given back by the channel, which counts as basic.nack does (QUORUM-002).
  [rabbit_fifo:maybe_return_all; rabbit_fifo_client:handle_delivery of an unknown tag (issue 3729)]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Lost
from amqpspec.model.broker.dispatch import priority, service_is_unknown
from amqpspec.model.broker.internal_events import DeliveryLimitExcess, MessageLoss
from amqpspec.model.broker.queues import Arrival, Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.rules.basic.requeue import delivery_limit, dropped_at_limit


def recall(broker: Broker, consumer: Consumer) -> bool:
    """The consumer is cancelled; the channel gives back, as by basic.nack, what comes for it from now on: is there any?

    A quorum queue counts the consumer until it has all of it back.
    """
    if consumer.queue.type is not QueueType.QUORUM:
        return False
    on_their_way = _on_their_way(broker, consumer)
    for message in on_their_way:
        message.recalled += 1
        be_away(broker, consumer, message)
    expect_exceeded_limits(broker)
    return bool(on_their_way)


def lose(broker: Broker, channel: Channel, consumers: Iterable[Consumer]) -> None:
    """The channel ends, and these of its consumers at once."""
    on_their_way: dict[int, tuple[Consumer, Message]] = {}
    for consumer in consumers:
        if consumer.queue.type is QueueType.STREAM:
            # its messages stay where they are, whoever reads them
            channel.lost += (Lost(consumer, message, message) for message in consumer.queue.log[consumer.next_offset :])
            continue
        for message in _on_their_way(broker, consumer):
            channel.lost.append(Lost(consumer, message, replace(message)))
            on_their_way.setdefault(id(message), (consumer, message))
            message.may_be_gone |= consumer.no_ack
        channel.lost += (_timing_out(consumer, message) for message in _held_for_a_time(broker, channel, consumer))
    # to one of them: what the queue takes back it hands to nobody on this channel any more
    for consumer, message in on_their_way.values():
        message.unseen += 1
        be_away(broker, consumer, message)


def _held_for_a_time(broker: Broker, channel: Channel, consumer: Consumer) -> list[Message]:
    """What others hold and may time out before the end of the channel is known to all (area TIMEOUT)."""
    if not consumer.queue.deadlines or consumer.no_ack:
        return []
    return [
        entry.message
        for other in broker.channels.values()
        for entry in other.unacknowledged.values()
        if other is not channel and entry.queue is consumer.queue and entry.deadline is not None
    ]


def _timing_out(consumer: Consumer, message: Message) -> Lost:
    as_it_was = replace(message, redelivered=True, acquired_count=message.acquired_count + 1)
    return Lost(consumer, message, as_it_was)


def _on_their_way(broker: Broker, consumer: Consumer) -> list[Message]:
    """Whoever is served before the consumer or in turn with it may have taken any of the messages in front."""
    queue = consumer.queue
    if may_serve_anybody(broker, queue):
        served = [consumer] if broker.has_room(consumer) else []
    else:
        served = broker.with_room(queue) if queue in broker.deliverable else []
    if consumer not in served:
        return []
    room = 0
    for other in served:
        # one without acknowledgements has room again only when its channel has told the quorum queue
        is_limited = other.prefetch or (other.unheeded_prefetch and queue.type is QueueType.QUORUM)
        if priority(other) > priority(consumer) and not is_limited:
            return []  # nothing is left
        if priority(other) >= priority(consumer):
            room += max(other.prefetch - other.outstanding, 0) if other.prefetch else len(queue.messages)
    return list(islice(queue.messages, room))


def may_serve_anybody(broker: Broker, queue: Queue) -> bool:
    """Is it unknown which consumer a quorum queue serves? The active one may be gone (rabbit_fifo:apply of `down`)."""
    return queue.type is QueueType.QUORUM and service_is_unknown(broker, queue)


def be_away(broker: Broker, consumer: Consumer, message: Message) -> None:
    """Until it is seen in its queue: it comes back at any moment."""
    if message.arrival is not Arrival.RETURNING:
        message.arrival = Arrival.RETURNING
        message.transit_group = broker.join_transit_group(consumer.queue, message)


def expect_losses(broker: Broker) -> None:
    """What nobody sees and nobody has to acknowledge is gone: the first ones, where no other consumer took any."""
    for queue in broker.queues.values():
        gone = [each for each in queue.messages if each.may_be_gone and each.arrival is Arrival.RETURNING]
        in_order = bool(gone) and _had_one_taker(broker, queue)
        for message in gone:
            number = 1 if in_order else message.position + 1
            broker.internal_events.append(MessageLoss(queue.name, message.position, number))


def _had_one_taker(broker: Broker, queue: Queue) -> bool:
    lost = (each.consumer for channel in broker.channels.values() for each in channel.lost)
    return not queue.consumers and len({consumer for consumer in lost if consumer.queue is queue}) == 1


def lost_message(broker: Broker, event: MessageLoss) -> tuple[Queue, Message] | None:
    """The message that is gone if the event has come about; None: it has been seen since."""
    queue = broker.queues.get(event.queue)
    for message in queue.messages if queue is not None else ():
        if message.position == event.position and message.may_be_gone:
            return (queue, message) if queue is not None and message.arrival is Arrival.RETURNING else None
    return None


def lose_message(broker: Broker, event: MessageLoss) -> None:
    found = lost_message(broker, event)
    if found is not None:
        queue, message = found
        broker.take(queue, queue.messages.index(message))
        broker.note_gone(queue, message, "CONSUME-013")
        broker.refresh(queue)


def expect_exceeded_limits(broker: Broker) -> None:
    """Deliveries that nobody sees fail, which may go over the delivery limit (QUORUM-003); and what a dead letter
    brought along may count (DLX-010).
    """
    for queue in broker.queues.values():
        if queue.type is QueueType.QUORUM:
            for message in queue.messages:
                if _may_exceed_limit(broker, queue, message):
                    broker.internal_events.append(DeliveryLimitExcess(queue.name, message.position))


def _may_exceed_limit(broker: Broker, queue: Queue, message: Message) -> bool:
    # what is recalled is given back as by basic.nack (QUORUM-002)
    failures = message.unseen + (0 if broker.dialect.quorum_nack_has_not_failed else message.recalled)
    failures += message.tries if message.is_first_here else message.brought[0]
    if not failures or message.arrival is not Arrival.RETURNING:
        return False
    limit = delivery_limit(broker, queue)
    return limit is not None and message.delivery_count + failures > limit


def doubted(broker: Broker, event: DeliveryLimitExcess) -> tuple[Queue, Message] | None:
    """The message that is dropped over the delivery limit if the event comes about; None: it cannot any more."""
    queue = broker.queues.get(event.queue)
    for message in queue.messages if queue is not None else ():
        if message.position == event.position:
            return (queue, message) if queue is not None and _may_exceed_limit(broker, queue, message) else None
    return None


def drop_over_limit(broker: Broker, event: DeliveryLimitExcess) -> None:
    found = doubted(broker, event)
    if found is None:
        return
    queue, message = found
    broker.take(queue, queue.messages.index(message))
    broker.note_gone(queue, message, "QUORUM-003")
    holder = message.via if message.via in broker.channels else next(iter(broker.channels), None)
    dropped_at_limit(broker, queue, message, holder)
    broker.refresh(queue)
