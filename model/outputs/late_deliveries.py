"""Deliveries that were under way when their queue was deleted: they may come until the client is told (CANCEL-007).

The queue hands a message to the consumer's channel, and the deletion is answered by another one; what of it reaches
the client first is open (rabbit_channel:handle_deliver, handle_eol).
"""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.messages import check_delivery
from model.mismatch import Mismatches, unexpected
from model.queues import Consumer, Message
from model.state import Channel


def under_way(consumer: Consumer, frame: Frame) -> Message | None:
    """The message of the deleted queue that this delivery is: one of those that were dropped with it."""
    body = frame.content.body if frame.content else b""
    for message in consumer.queue.gone:
        if message.stamp == consumer.stamp and message.content.body == body:
            return message
    return None


def check_late_delivery(
    broker: Broker, channel: Channel, consumer: Consumer, message: Message, frame: Frame
) -> Mismatches:
    """What is wrong with it; if nothing is fatal the message is nobody else's from now on."""
    if not broker.has_room(consumer):
        return unexpected("CANCEL-007", "basic.deliver behind the deletion of the queue")
    wrong = check_delivery(broker, channel, consumer.queue, message, frame, False)
    if not any(mismatch.fatal for mismatch in wrong):
        consumer.queue.gone.remove(message)
    return wrong
