"""Which inputs have nothing to do with messages that expire meanwhile: whichever comes first, the same comes of both.

Of two such orders it is enough to follow one (partial-order reduction). What a barrier sends is mostly of this kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, InternalEvent, MessageExpiry
from amqpspec.model.promises.queue_types import QueueType


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
