"""What comes of it when policies change while their queue lives (area POLICY; `model.broker.policies`).

RabbitMQ: rabbit_amqqueue_process:process_args_policy; rabbit_fifo: #update_config{}, which is a command like any other,
so that limits are looked at behind it.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.length_limits import tell_publishers
from amqpspec.model.broker.mirrors import is_mirrored
from amqpspec.model.broker.nodes import SIZE
from amqpspec.model.broker.policies import AT_ONCE, LATER_ONES, put_in_force
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.time_to_live import time_to_live
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.rules.extensions import queue_expiry
from amqpspec.model.rules.extensions.dead_letter import keep_within_limits


def begin(broker: Broker, queue: Queue) -> None:
    """The queue was made just now."""
    put_in_force(broker, queue)
    if is_mirrored(broker, queue):
        queue.mirrors = frozenset(range(1, SIZE + 1)).difference(broker.failed)


def change(broker: Broker, name: str, virtual_host: str) -> None:
    """Policies of the queue of that name have changed."""
    queue = broker.queues.get(name)
    if queue is None or queue.vhost != virtual_host:
        return
    put_in_force(broker, queue)
    queue.mirrors = queue.mirrors if is_mirrored(broker, queue) else frozenset()
    queue_expiry.begin_again(broker, queue)
    if queue.open_by or queue.type is QueueType.STREAM:
        return
    _keep_times(broker, queue)
    before = len(queue.messages)
    if before:
        keep_within_limits(broker, queue, queue.messages[-1], None)
    if len(queue.messages) < before:
        queue.reason = AT_ONCE
        broker.fired(AT_ONCE)
    tell_publishers(broker, queue)
    broker.refresh(queue)


def _keep_times(broker: Broker, queue: Queue) -> None:
    """What is there keeps its time."""
    for message in queue.messages:
        given = time_to_live(broker.dialect, queue, message)
        if given != (None if message.deadline is None else round(message.deadline.seconds * 1000)):
            message.reason = message.ttl_from = queue.reason = LATER_ONES
