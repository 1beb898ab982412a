"""Which inputs have nothing to do with messages that expire meanwhile: whichever comes first, the same comes of both.

Of two such orders it is enough to follow one (partial-order reduction). What a barrier sends is mostly of this kind.
"""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, InternalEvent, MessageExpiry

#: Inputs that no queue hears of.
_OF_NO_QUEUE = ("channel.open", "confirm.select")


def is_independent(broker: Broker, event: Input, others: Iterable[Input]) -> bool:
    """Does it make no difference whether the input is processed before what may come about by itself, or behind?"""
    queue = asked_queue(event)
    if queue is None:
        return False
    return all(is_elsewhere(broker, queue, each) for each in others if isinstance(each, InternalEvent))


def is_elsewhere(broker: Broker, queue: str, event: Input) -> bool:
    """Does a message expire, and that queue hears nothing of it? "": whichever queue does makes no difference."""
    return isinstance(event, MessageExpiry) and (not queue or (event.queue != queue and is_all(broker, event)))


def asked_queue(event: Input) -> str | None:
    """The name of the queue that the input asks and does not change, "" if no queue hears of it. None: any other."""
    if isinstance(event, InternalEvent):
        return None
    arguments = event.arguments
    if event.name == "basic.get" or (event.name == "queue.declare" and arguments.get("passive")):
        return arguments.get("queue") or None
    if event.name in _OF_NO_QUEUE or (event.name == "basic.qos" and not arguments.get("global_")):
        return ""
    return None


def is_all(broker: Broker, event: MessageExpiry) -> bool:
    """Is it all that the message is gone then, and does it come to no other queue?"""
    queue = broker.queues.get(event.queue)
    return queue is None or queue.arguments.get(EXCHANGE) not in broker.exchanges
