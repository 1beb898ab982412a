"""Which inputs make no dead letters: known defects of dead letters do not apply to them.

To know what the law makes of an input takes a copy of the state. Most inputs can be told without: what a barrier asks,
and publishes to a queue that dead-letters nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, MessageExpiry
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method

#: Properties by which a publish is refused, or goes elsewhere as well.
_TELLING = ("user_id", "expiration", "headers")
#: Octets of a body that no broker refuses.
_SHORT = 65536


def makes_no_dead_letters(broker: Broker, event: Input) -> bool:
    """Does no queue dead-letter anything by this input? False where it would take more to tell.

    That a message expires is an input of its own.
    """
    if isinstance(event, MessageExpiry):
        expiring = broker.queues.get(event.queue)
        return expiring is None or EXCHANGE not in expiring.arguments
    if not isinstance(event, Method):
        return False
    channel = broker.channels.get((event.connection, event.channel))
    if event.name == "channel.open" and (channel is None or channel.state is ChannelState.CLOSED):
        return not _holds_anything(broker, event.connection)
    if channel is None or channel.state is not ChannelState.OPEN or channel.assembly is not None:
        return False
    if event.content is not None:
        return channel.transaction is None and _goes_elsewhere(broker, event, event.content)
    return _is_mere_question(broker, event) or not _holds_anything(broker, event.connection)


def _goes_elsewhere(broker: Broker, method: Method, content: Content) -> bool:
    """Is it published to one queue, which makes no dead letters, or to none, and certainly not refused?"""
    arguments = method.arguments
    if arguments.get("exchange") or arguments.get("immediate") or _is_restricted(broker, method.connection):
        return False
    if len(content.body) > _SHORT or any(name in content.properties for name in _TELLING):
        return False
    queue = broker.queues.get(arguments.get("routing_key", ""))
    return queue is None or (not queue.reply_address and EXCHANGE not in queue.arguments)


def _is_mere_question(broker: Broker, method: Method) -> bool:
    """Does it put a limit, or ask about a queue, and is not refused? An error would give back what is held."""
    arguments = method.arguments
    if method.name == "basic.qos":
        return not arguments.get("prefetch_size")
    if _is_restricted(broker, method.connection):
        return False
    queue = broker.queues.get(arguments.get("queue", ""))
    if queue is None or queue.owner not in (None, method.connection):
        return False
    if method.name == "queue.declare":
        return bool(arguments.get("passive"))
    return method.name == "basic.get" and _may_be_got_from(queue)


def _may_be_got_from(queue: Queue) -> bool:
    return queue.type is not QueueType.STREAM and not queue.consumers and not queue.single_active_consumer


def _is_restricted(broker: Broker, connection: str) -> bool:
    users: Mapping[str, Any] = broker.users
    return broker.connections[connection].user in users


def _holds_anything(broker: Broker, connection: str) -> bool:
    """May an error of one of its channels, or of the connection, give anything back?"""
    return any(
        channel.unacknowledged or channel.consumers or channel.transaction is not None
        for channel in broker.channels.values()
        if channel.connection == connection
    )
