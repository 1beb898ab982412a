"""The active consumer of a classic queue that is cancelled while messages are ready (rabbit_amqqueue_process).

RabbitMQ 3 makes another consumer active then and does not run the queue: that one is handed nothing, until something
else makes the queue look. Such a queue owes nothing from then on (`model.defects.stalled_queues`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.queues import Arrival, Consumer, Queue
from amqpspec.model.defects.channel_limiter import limiter_of
from amqpspec.model.defects.stalled_queues import is_stalled, stall
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process

NAME = "classic queue's active consumer"

_METHODS = (
    "basic.cancel", "basic.publish", "basic.ack", "basic.qos", "basic.nack", "basic.reject", "basic.recover",
    "basic.recover-async",
)  # fmt: skip


class ClassicActiveConsumer(Guest):
    """Knows when a classic queue has an active consumer."""

    name = NAME

    def active_consumer_elected(self, broker: Broker, queue: Queue, before: Consumer | None, requirement: str) -> None:
        if queue.type is QueueType.CLASSIC:
            arm(broker, NAME)


def _with_single_active(broker: Broker) -> Iterator[Queue]:
    queues = broker.queues.values()
    return (queue for queue in queues if queue.single_active_consumer and queue.type is QueueType.CLASSIC)


def _leaves_backlog(broker: Broker, method: Method) -> Queue | None:
    channel = broker.channels.get((method.connection, method.channel))
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", "")) if channel is not None else None
    if consumer is None or consumer.queue not in _with_single_active(broker):
        return None
    return consumer.queue if consumer.queue.active.consumer is consumer and consumer.queue.messages else None


def _with_left_backlog(broker: Broker, method: Method) -> list[Queue]:
    """Queues that may not serve whoever followed a cancelled consumer, which shows once there is room for it."""
    if method.name == "basic.cancel":
        queue = _leaves_backlog(broker, method)
        return [queue] if queue is not None else []
    if method.name == "basic.publish":
        return [
            queue
            for queue in _with_single_active(broker)
            if is_stalled(broker, queue) or _is_held_back_by_channel(broker, queue)
        ]
    return [
        queue
        for queue in _with_single_active(broker)
        if queue.messages and queue.active.reason == "SAC-002" and not is_stalled(broker, queue)
    ]


def _is_held_back_by_channel(broker: Broker, queue: Queue) -> bool:
    """Would whoever followed a cancelled consumer have room, were there not a limit of its channel? The broker may
    know of none, or count otherwise (`model.defects.channel_limiter`): then it has been left with the backlog unseen.
    """
    active = queue.active.consumer
    if active is None or not queue.messages or queue.active.reason != "SAC-002":
        return False
    channel = broker.channels.get(active.channel)
    is_limited = channel is not None and channel.channel_prefetch > 0 and not limiter_of(broker, channel).is_followed
    return is_limited and not (0 < active.prefetch <= active.outstanding)


def _leave_backlog(broker: Broker, method: Method) -> None:
    """With the next publish the queue may crash, and what comes of that is a matter of timing.

    The publish may cross what ends the active consumer, or what makes room for the next one.
    """
    queues = _with_left_backlog(broker, method)
    crashes = method.name == "basic.publish" or any(map(_is_crossed_by_publish, queues))
    process(broker, method)
    stall(broker, queues)
    broker.bookkeeping.is_unpredictable |= crashes


def _is_crossed_by_publish(queue: Queue) -> bool:
    """May a message arrive behind what is ready, and after the input that is processed now?"""
    return any(message.arrival is Arrival.PUBLISHED for message in islice(queue.messages, 1, None))


CLASSIC_ACTIVE_CONSUMER_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-leaves-backlog",
        requirement="SAC-002",
        strength=Strength.PROMISED,
        statement="When the active consumer of a classic queue is cancelled, the one that follows it is not handed what"
        " is ready. The next publish hands it the new message first, or crashes the queue.",
        source="rabbit_amqqueue_process:handle_call basic_cancel does not run the queue; attempt_delivery, badmatch",
        dialects=("rabbitmq-3",),
        methods=_METHODS,
        guest=NAME,
        applies=lambda broker, method: bool(_with_left_backlog(broker, method)),
        process=_leave_backlog,
    ),
)
