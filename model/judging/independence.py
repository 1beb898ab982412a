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
    """Does it make no difference whether the input is processed before what may come about by itself, or behind?"""
    queue = asked_queue(broker, event)
    if queue is None:
        return False
    return all(is_elsewhere(broker, {queue}, each) for each in others if isinstance(each, InternalEvent))


def is_elsewhere(broker: Broker, queues: Collection[str], event: Input) -> bool:
    """Does a message expire of which queues of these names hear nothing? "" is no queue."""
    if not isinstance(event, MessageExpiry):
        return False
    return not any(queues) or (event.queue not in queues and is_all(broker, event))


def asked_queue(broker: Broker, event: Input) -> str | None:
    """The name of the queue that the input asks and does not change, "" if no queue hears of it. None: any other.

    What may be refused is none if its channel holds anything, which would go back then.
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
    """Is it all that the message is gone then, and does it come to no other queue?"""
    queue = broker.queues.get(event.queue)
    return queue is None or queue.arguments.get(EXCHANGE) not in broker.exchanges
