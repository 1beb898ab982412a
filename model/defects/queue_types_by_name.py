"""What a channel's process knows of queues: a context for each name, with the type of the queue (rabbit_queue_type,
get_ctx_with).

It is not dropped when the queue is deleted, so that a new queue of that name and another type is dealt with as one of
the old type. That a channel which has dealt with both goes right is QUEUE-029.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method
from amqpspec.model.rules.basic.publish import routes_of

NAME = "queue types by name"

#: Dialects whose brokers crash when a classic queue has accepted the consumer.
_SERVED_BEFORE = ("rabbitmq-4.3",)


class QueueTypesByName(Guest):
    """Armed when a queue is declared whose name some channel knows, or publishes to, as that of another type."""

    name = NAME

    def queue_declared(self, broker: Broker, queue: Queue) -> None:
        if any(_knows_as_other_type(channel, queue) for channel in broker.channels.values()):
            arm(broker, NAME)


def _knows_as_other_type(channel: Channel, queue: Queue) -> bool:
    if channel.known_types.get(queue.name, queue.type) is not queue.type:
        return True
    kept = channel.transaction.publications if channel.transaction is not None else ()
    routed = (other for publication in kept for other in publication.routes.queues)
    return any(other.name == queue.name and other.type is not queue.type for other in routed)


def _uses_name_of_other_type(broker: Broker, method: Method) -> bool:
    """Does the input deal with a queue whose name the channel knows for one of another type?"""
    channel = broker.channels.get((method.connection, method.channel))
    if channel is None or not channel.known_types or channel.state is not ChannelState.OPEN:
        return False
    if method.name == "tx.commit":
        kept = channel.transaction.publications if channel.transaction is not None else ()
        routed = [queue for publication in kept for queue in publication.routes.queues]
        queues = [*routed, *(broker.queues[queue.name] for queue in routed if queue.name in broker.queues)]
    elif method.name == "basic.publish":
        exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
        if exchange is None or channel.transaction is not None:
            return False  # what is kept back comes to its queue at commit
        content = method.content or EMPTY_CONTENT
        queues = list(routes_of(broker, exchange, method.arguments.get("routing_key", ""), content).queues)
    elif method.name in ("basic.get", "basic.consume"):
        named = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
        queues = [named] if named is not None else []
    else:
        return False
    return any(channel.known_types.get(queue.name, queue.type) is not queue.type for queue in queues)


def _crash_over_type(broker: Broker, method: Method) -> None:
    """In 4.3 a consumer reaches the classic queue, which hands it messages that nobody sees; without acknowledgements
    they are lost.
    """
    channel = broker.channels[(method.connection, method.channel)]
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    crash_with("QUEUE-029")(broker, method)
    if method.name != "basic.consume" or broker.dialect.name not in _SERVED_BEFORE:
        return
    if queue is None or queue.type is not QueueType.CLASSIC or (queue.single_active_consumer and queue.consumers):
        return
    if method.arguments.get("no_ack"):
        broker.remove_ready(queue, "QUEUE-029")
    else:
        for message in list(queue.messages)[: channel.prefetch or None]:
            message.redelivered = True


QUEUE_TYPE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="stale-queue-type",
        requirement="QUEUE-029",
        strength=Strength.PROMISED,
        statement="A channel that dealt with a queue, and meets another type under the same name after the queue was"
        " deleted and declared anew, goes on with its state of the old type; the connection closes with 541.",
        source="rabbit_queue_type:get_ctx_with finds the old context by name; rabbit_classic_queue:qpids, case_clause",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.publish", "basic.get", "basic.consume", "tx.commit"),
        guest=NAME,
        applies=_uses_name_of_other_type,
        process=_crash_over_type,
    ),
)
