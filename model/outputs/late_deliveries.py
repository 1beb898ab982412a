"""Deliveries that were under way when their queue was deleted, or their channel ended.

Those of a deleted queue may come until the client is told (CANCEL-007). The queue hands a message to the consumer's
channel, and the deletion is answered by another one; what of it reaches the client first is open
(rabbit_channel:handle_deliver, handle_eol).

Those of a channel may come until its end is answered or told (CHAN-016). What it held goes to consumers on other
channels meanwhile, each of which has a writer of its own (rabbit_writer): the later delivery may be seen first.

Requirements:

* CANCEL-007: Server cancel on queue deletion. When a consumed queue is deleted (by any connection), every consumer on a
  capable connection gets basic.cancel(tag, nowait=true), once; nothing is delivered to it after that. Consumers of
  other queues go on. [RabbitMQ guide: consumer cancel notification]
* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* CONSUME-001: consume-ok precedes deliveries. consume-ok for a tag is sent before the first basic.deliver with that tag
  (unless nowait, then no consume-ok). [rabbit_channel.erl:basic_consume]
* CONSUME-013: no_ack consumer. Deliveries of a no_ack consumer count as acked when sent: ack of such a tag is 406; on
  channel close they are lost. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.consume]
* OVERFLOW-002: max-length counts ready only. Unacknowledged messages do not count, nor does what a waiting consumer is
  handed at once. What is given back may be too much, and then the head is dropped; by a classic queue before, by a
  quorum queue after waiting consumers are served. [rabbit_amqqueue_process:requeue_and_run; rabbit_fifo:checkout]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Lost
from amqpspec.model.broker.limits import own_limit_holds
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Message
from amqpspec.model.outputs.delivered_content import check_delivery
from amqpspec.model.outputs.mismatch import Mismatches, unexpected
from amqpspec.model.outputs.stream_deliveries import beyond_limit
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method

#: What ends a channel, or its connection, for the client.
_ENDS = frozenset({"channel.close", "channel.close-ok", "connection.close", "connection.close-ok"})


def under_way(consumer: Consumer, method: Method) -> Message | None:
    """The message of the deleted queue that this delivery is: one of those that were dropped with it."""
    body = method.content.body if method.content else b""
    for message in consumer.queue.dropped_at_deletion:
        if message.stamp == consumer.stamp and message.content.body == body:
            return message
    return None


def check_late_delivery(
    broker: Broker, channel: Channel, consumer: Consumer, message: Message, method: Method
) -> Mismatches:
    """What is wrong with it; if nothing is fatal the message is nobody else's from now on."""
    if not broker.has_room(consumer):
        return unexpected("CANCEL-007", "basic.deliver behind the deletion of the queue")
    wrong = check_delivery(broker, channel, consumer.queue, message, method, False)
    if not any(mismatch.fatal for mismatch in wrong):
        consumer.queue.dropped_at_deletion.remove(message)
    return wrong


def lost_with_channel(broker: Broker, channel: Channel, method: Method) -> Lost | None:
    """The message that this delivery is, if it was on its way when the channel ended and has not been seen since.

    One that goes back has been given to nobody else as if it were new; one that needs no acknowledgement to nobody.
    """
    if not channel.lost or not ends_unseen(broker, channel):
        return None
    lost = lost_message(channel, method)
    # consume-ok would have come before (CONSUME-001)
    return lost if lost is not None and lost.consumer.announced else None


def lost_message(channel: Channel, method: Method) -> Lost | None:
    body = method.content.body if method.content else b""
    for lost in channel.lost:
        if lost.consumer.tag != method.arguments["consumer_tag"] or lost.message.content.body != body:
            continue
        queue, goes_back = lost.consumer.queue, lost.message.redelivered and not lost.consumer.no_ack
        if goes_back or queue.type is QueueType.STREAM or lost.message in queue.messages or _did_not_fit(lost):
            return lost
    return None


def _did_not_fit(lost: Lost) -> bool:
    """Did it go back to its queue, and had no room there (OVERFLOW-002)? On its way it did not count."""
    return not lost.consumer.no_ack and lost.message.had_no_room


def ends_unseen(broker: Broker, channel: Channel) -> bool:
    owed = (*channel.owed, *broker.connections[channel.connection].owed)
    return any(isinstance(each, Expected) and each.method in _ENDS for each in owed)


def check_lost_delivery(broker: Broker, channel: Channel, lost: Lost, method: Method) -> Mismatches:
    """What is wrong with it; if nothing is fatal it is known to have come about before the channel ended."""
    queue, message, is_of_stream = lost.consumer.queue, lost.message, lost.consumer.queue.type is QueueType.STREAM
    if is_of_stream and own_limit_holds(lost.consumer):
        return beyond_limit(lost.consumer)
    wrong = check_delivery(broker, channel, queue, replace(lost.as_it_was), method, False)
    if any(mismatch.fatal for mismatch in wrong):
        return wrong
    channel.lost.remove(lost)
    channel.next_tag += 1
    if lost.consumer.no_ack:
        broker.take(queue, queue.messages.index(message))
        broker.note_gone(queue, message, "CONSUME-013")
        broker.refresh(queue)
    elif is_of_stream:
        lost.consumer.has_begun = True
        lost.consumer.outstanding += 1
    else:
        message.redelivered = True
    return wrong
