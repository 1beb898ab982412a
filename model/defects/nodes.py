"""What a cluster does otherwise where a queue is at another node than the client (area CLUSTER)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.broker.queues import Arrival, Queue
from amqpspec.model.judging.windows import SERVICE, Scope, Window, of_any
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method


def _is_elsewhere(queue: Queue, method: Method) -> bool:
    return queue.type is QueueType.CLASSIC and queue.node not in (0, node_of(method.connection))


def _has_settled(channel: Channel) -> bool:
    return channel.next_tag - 1 > len(channel.unacknowledged)


def _purges_behind_publishes(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    name = method.arguments.get("queue", "") or (channel.last_queue if channel is not None else "")
    queue = broker.queues.get(name or "")
    if channel is None or queue is None or not _is_elsewhere(queue, method):
        return None
    own = (each for each in queue.unproven if each.arrival is Arrival.PUBLISHED and each.via == channel.key)
    return of_any(broker, [queue] if any(own) else [])


def _ends_behind_settlements(broker: Broker, method: Method) -> Scope | None:
    """A channel ends of which not all deliveries are outstanding, and that was handed messages by such a queue."""
    ending = [each for each in broker.channels.values() if each.connection == method.connection]
    own = [each for each in ending if method.channel in (0, each.number) and _has_settled(each)]
    served = [consumer.queue for each in own for consumer in each.consumers.values()]
    held = [entry.queue for each in own for entry in each.unacknowledged.values()]
    return of_any(broker, {queue.name: queue for queue in (*served, *held) if _is_elsewhere(queue, method)}.values())


NODES: tuple[Window, ...] = (
    Window(
        name="purge-overtakes-publishes-at-other-node",
        requirement="QUEUE-024",
        statement="A queue.purge of a classic queue at another node purges nothing of what its channel has published"
        " there right before: it is overtaken.",
        source="v4.3.5 rabbit_classic_queue:deliver, delegate:invoke_no_result (by way of a process of that node);"
        " rabbit_classic_queue:purge, delegate:invoke (straight to the queue)",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        spoils=SERVICE,
        kinds=("queue.purge",),
        arms=_purges_behind_publishes,
    ),
    Window(
        name="close-overtakes-settlements-at-other-node",
        requirement="ACK-001",
        statement="What a client has settled of a classic queue at another node right before it closes its channel or"
        " connection comes again: the close overtakes the settlements.",
        source="v4.3.5 rabbit_classic_queue:settle, delegate:invoke_no_result (by way of a process of that node);"
        " rabbit_amqqueue:notify_down_all, delegate:invoke (straight to the queue)",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        spoils=SERVICE,
        kinds=("channel.close", "connection.close"),
        arms=_ends_behind_settlements,
    ),
)
