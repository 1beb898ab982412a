"""Situations by which several windows come in: what an input settles, names or ends, before it is processed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown, Kind
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.judging.windows import Scope, of_channel, of_queues
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import tags_meant

#: What `Window.arms` is.
Arms = Callable[[Broker, Method], Scope | None]

RECOVERIES = ("basic.recover", "basic.recover-async")
REFUSALS = ("basic.nack", "basic.reject")
SETTLING = ("basic.ack", *REFUSALS, *RECOVERIES, "tx.commit")
#: What ends channels: by the client, and, if it is an error, by any method that often is one.
ENDS: tuple[Kind, ...] = (
    "basic.cancel", "channel.close", "connection.close", "socket.abort", ChannelCrash, ConnectionTeardown)
OFTEN_WRONG = (
    "basic.ack", *REFUSALS, *RECOVERIES, "basic.get", "basic.consume", "basic.publish", "basic.qos", "queue.declare",
    "queue.delete", "queue.purge", "queue.bind", "queue.unbind", "exchange.declare", "exchange.delete", "channel.open",
    "confirm.select", "tx.select", "tx.commit", "tx.rollback",
)  # fmt: skip


def on_channel(applies: Callable[[Broker, Channel, Method], bool]) -> Arms:
    """It comes in on the channel of the input, where that is open and this is so."""

    def arms(broker: Broker, method: Method) -> Scope | None:
        channel = broker.open_channel(method)
        return of_channel(method) if channel is not None and applies(broker, channel, method) else None

    return arms


def at_queue(*types: QueueType) -> Callable[[Callable[[Broker, Channel, Queue, Method], bool]], Arms]:
    """It comes in at the queue that the input names, of one of these types, and on its channel, where this is so."""

    def made(applies: Callable[[Broker, Channel, Queue, Method], bool]) -> Arms:
        def arms(broker: Broker, method: Method) -> Scope | None:
            found = named_queue(broker, method)
            if found is None or found[1].type not in types or not applies(broker, *found, method):
                return None
            return of_queues(broker, [found[1]], found[0].key)

        return arms

    return made


def settled(broker: Broker, method: Method) -> list[Unacknowledged]:
    """The deliveries that the input settles, or the transaction that it commits."""
    channel = broker.open_channel(method)
    if channel is None or not channel.unacknowledged:
        return []
    if method.name in RECOVERIES:
        return list(channel.unacknowledged.values())
    if method.name != "tx.commit":
        return [channel.unacknowledged[tag] for tag in tags_meant(channel, method) if tag in channel.unacknowledged]
    reserved = channel.transaction.reserved if channel.transaction is not None else ()
    return [channel.unacknowledged[tag] for tag in reserved if tag in channel.unacknowledged]


def named_queue(broker: Broker, method: Method) -> tuple[Channel, Queue] | None:
    """The open channel of the input, and the queue that is there and that it names."""
    channel = broker.open_channel(method)
    if channel is None:
        return None
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    return None if queue is None else (channel, queue)


def named_consumer(broker: Broker, method: Method) -> Consumer | None:
    """The consumer of the open channel whose tag the input names."""
    channel = broker.open_channel(method)
    return None if channel is None else channel.consumers.get(method.arguments.get("consumer_tag", ""))


def single_active(broker: Broker, kind: QueueType = QueueType.QUORUM) -> Iterator[Queue]:
    """The queues of that type that have a single active consumer."""
    queues = broker.queues.values()
    return (queue for queue in queues if queue.single_active_consumer and queue.type is kind)
