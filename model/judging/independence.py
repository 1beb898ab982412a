"""Which inputs have nothing to do with messages that expire meanwhile: whichever comes first, the same comes of both.

Of two such orders it is enough to follow one (partial-order reduction). What a barrier sends is mostly of this kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, InternalEvent, MessageExpiry, kind_of, lane_of
from amqpspec.model.broker.length_limits import has_length_limit
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, TraceEvent


def is_independent(broker: Broker, event: Input, others: Iterable[Input]) -> bool:
    """Does it make no difference whether the input is processed before what may come about by itself, or after?"""
    queue = asked_queue(broker, event)
    if queue is None:
        return False
    return all(is_elsewhere(broker, {queue}, each) for each in others if isinstance(each, InternalEvent))


def is_elsewhere(broker: Broker, queues: Collection[str], event: Input) -> bool:
    """Is it the expiry of a message that changes none of these queues? "" stands for no queue."""
    if not isinstance(event, MessageExpiry):
        return False
    return not any(queues) or (event.queue not in queues and is_all(broker, event))


def asked_queue(broker: Broker, event: Input) -> str | None:
    """The name of the queue that the input only asks, "" if it comes to no queue; None for any other input.

    None as well if the broker may refuse it while its channel holds deliveries, as these would be given back.
    """
    channel = None if isinstance(event, InternalEvent) else broker.channels.get((event.connection, event.channel))
    if isinstance(event, InternalEvent) or channel is None:
        return None
    if event.name == "channel.close-ok":
        return "" if channel.state is ChannelState.CLOSING else None
    if channel.state is not ChannelState.OPEN:
        return None
    arguments = event.arguments
    if event.name == "basic.qos":
        return None if arguments.get("global_") or arguments.get("prefetch_size") else ""
    if event.name != "basic.get" and not (event.name == "queue.declare" and arguments.get("passive")):
        return None
    queue = broker.queues.get(arguments.get("queue", ""))
    if queue is None or queue.type is QueueType.STREAM or channel.unacknowledged or channel.consumers:
        return None
    return queue.name


def is_all(broker: Broker, event: MessageExpiry) -> bool:
    """Is the message only removed, and not dead-lettered to an exchange that is there?"""
    queue = broker.queues.get(event.queue)
    return queue is None or queue.in_force.get(EXCHANGE) not in broker.exchanges


def is_before_publishes(broker: Broker, pending: Iterable[Input], reply: TraceEvent) -> bool:
    """Is it a delivery, and nothing pending but publishes of one other channel that come behind all that its queue has?
    Whichever is first, the same comes of both: so where the delivery is right at once, it need not be looked at later.

    Only where a queue is as plain as can be: one consumer, no limit of its length, and no times.
    """
    channel = broker.channels.get((reply.connection, reply.channel))
    if reply.name != "basic.deliver" or channel is None or broker.ageing or broker.expiring or broker.has_open:
        return False
    consumer = channel.consumers.get(reply.arguments.get("consumer_tag", ""))
    lanes = {lane_of(each) if kind_of(each) == "basic.publish" else channel.key for each in pending}
    if consumer is None or len(lanes) != 1 or channel.key in lanes:
        return False
    queue = consumer.queue
    if not queue.messages or reply.content is None or queue.messages[0].content.body != reply.content.body:
        return False
    if len(queue.consumers) != 1 or queue.type is QueueType.STREAM or queue.single_active_consumer or queue.dropping:
        return False
    if queue.reply_address or consumer.timeout or (queue.unproven and queue.transit_group_via not in lanes):
        return False
    sent = (each for each in pending if isinstance(each, Method) and each.content is not None)
    contents = [*(each.content for each in queue.messages), *(each.content for each in sent)]
    if any(each is not None and each.properties.get("priority") is not None for each in contents):
        return False
    return not any(has_length_limit(broker, each) for each in broker.queues.values())
