"""Deliveries that are on their way to a consumer when it ends: nobody sees them, but their queue has counted them.

While a queue has something to deliver and the consumer has room, what is ready may be with its channel already. When
the consumer is cancelled the channel gives it back to a quorum queue (QUORUM-008; rabbit_fifo_client:handle_delivery
of a tag that is not known any more); when the channel ends the queue takes it back (CHAN-016).
"""

from __future__ import annotations

from itertools import islice

from model.broker import Broker
from model.queues import Arrival, Consumer, Message, QueueType


def recall(broker: Broker, consumer: Consumer) -> None:
    """The consumer is cancelled; the channel gives back, as by basic.nack, what comes for it from now on."""
    if consumer.queue.type is QueueType.QUORUM:
        for message in _on_their_way(broker, consumer):
            message.recalled += 1
            _may_be_away(broker, consumer, message)


def lose(broker: Broker, consumer: Consumer) -> None:
    """The consumer's channel ends."""
    for message in _on_their_way(broker, consumer):
        message.unseen += 1
        _may_be_away(broker, consumer, message)


def _on_their_way(broker: Broker, consumer: Consumer) -> list[Message]:
    queue = consumer.queue
    if queue.type is QueueType.STREAM or queue not in broker.deliverable or consumer not in broker.recipients(queue):
        return []
    room = consumer.prefetch - consumer.outstanding if consumer.prefetch else None
    return list(islice(queue.messages, room))


def _may_be_away(broker: Broker, consumer: Consumer, message: Message) -> None:
    """Until it is seen in its queue: it comes back at any moment."""
    if message.arrival is not Arrival.RETURNING:
        message.arrival = Arrival.RETURNING
        message.crowd = broker.join_crowd(consumer.queue, message)
