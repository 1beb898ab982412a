"""Settling what a deleted queue delivered, where the new classic queue of its name cannot take the number.

Its process crashes, and is started again by its supervisor (rabbit_amqqueue_sup): without its consumers, without what
it waits for, and with its persistent messages only (rabbit_variable_queue:init).
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.crash import internal_error
from amqpspec.model.defects.delivery_numbers import NAME, has_priorities
from amqpspec.model.defects.settling import RECOVERS, knows, meant
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.model.rules.inputs import process

_PERSISTENT = 2


def _settles(channel: Channel, method: Method) -> list[int]:
    return list(channel.unacknowledged) if method.name in RECOVERS else tags_meant(channel, method)


def _crashes_next_queue(broker: Broker, method: Method) -> bool:
    """Does a living classic queue learn of the settlement, and does it crash over the number?"""
    channel = broker.open_channel(method)
    if channel is None:
        return False
    return any(_cannot_take(broker, channel, method, tag) for tag in _settles(channel, method))


def _cannot_take(broker: Broker, channel: Channel, method: Method, tag: int) -> bool:
    old = channel.unacknowledged[tag]
    living = broker.queues.get(old.queue.name)
    if not old.queue.deleted or living is None or living.type is not QueueType.CLASSIC:
        return False
    if not knows(broker, channel, living):
        return False
    if has_priorities(living) and not has_priorities(old.queue):
        return True
    if method.name not in ("basic.nack", "basic.reject") or method.arguments.get("requeue"):
        return False
    # what is to be dead-lettered is read, and has to be there
    return "x-dead-letter-exchange" in living.arguments and not any(
        meant(broker, broker.channels.values(), (channel, tag), living)
    )


def _crash_next_queue(broker: Broker, method: Method) -> None:
    """Commonest: the channel has asked the crashing queue for something, or does so next."""
    process(broker, method)
    broker.fired("ACK-024")
    break_connection(broker, broker.channels[(method.connection, method.channel)], internal_error())
    broker.bookkeeping.is_unpredictable = True


def _crashes_unseen(broker: Broker, method: Method) -> bool:
    """Is nobody told of the crash?"""
    return _crashes_next_queue(broker, method) and not any(
        broker.connections[consumer.channel[0]].is_told_of_cancels
        for queue in _crashing(broker, method)
        for consumer in queue.consumers
    )


def _crashing(broker: Broker, method: Method) -> list[Queue]:
    channel = broker.channels[(method.connection, method.channel)]
    tags = [tag for tag in _settles(channel, method) if _cannot_take(broker, channel, method, tag)]
    return [broker.queues[name] for name in dict.fromkeys(channel.unacknowledged[tag].queue.name for tag in tags)]


def _start_next_queue_again(broker: Broker, method: Method) -> None:
    """The queue is there again, without consumers, without what it waited for, and without messages: of those that are
    persistent nobody knows which.
    """
    crashing = _crashing(broker, method)
    process(broker, method)
    broker.fired("ACK-024")
    for queue in crashing:
        for consumer in list(queue.consumers):
            broker.channels[consumer.channel].consumers.pop(consumer.tag, None)
        queue.consumers.clear()
        held = [each for c in broker.channels.values() for each in c.unacknowledged.values() if each.queue is queue]
        broker.bookkeeping.is_unpredictable |= any(
            message.content.properties.get("delivery_mode") == _PERSISTENT
            for message in (*queue.messages, *(entry.message for entry in held))
        )
        nowhere = Queue(queue.name, queue.type, deleted=True, arguments=queue.arguments)
        for entry in held:
            entry.queue = nowhere
        broker.remove_ready(queue, "ACK-024")


CRASHING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="crashed-next-queue-is-empty",
        requirement="ACK-024",
        strength=Strength.PROMISED,
        statement="When a new classic queue of the name of a deleted one has crashed so and is there again before"
        " somebody asks, its transient messages are gone, those that somebody holds as well, and so are consumers that"
        " are not told.",
        source="rabbit_amqqueue_sup (restart), rabbit_variable_queue:init (recovers persistent messages)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.ack", "basic.nack", "basic.reject", *RECOVERS),
        guest=NAME,
        applies=_crashes_unseen,
        process=_start_next_queue_again,
        shows_within=ANY_NUMBER,
    ),
    DefectTransition(
        name="deleted-queue-crashes-next-queue",
        requirement="ACK-024",
        strength=Strength.PROMISED,
        statement="Settling a delivery of a deleted queue crashes the process of a new classic queue of the same name,"
        " which does not have that number: its consumers and transient messages are gone, and what is asked of it"
        " meanwhile is refused with 404 or closes the connection with 541.",
        source="rabbit_priority_queue:partition_acktags (numbers that are no pairs); rabbit_variable_queue:"
        "lookup_pending_ack, called for each message that is to be dead-lettered",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.ack", "basic.nack", "basic.reject", *RECOVERS),
        guest=NAME,
        applies=_crashes_next_queue,
        process=_crash_next_queue,
    ),
)
