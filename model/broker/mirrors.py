"""Mirrored classic queues, up to 3.13: a policy with ha-mode has other nodes of a cluster keep all of a queue.

A publish is confirmed when each mirror has it (CLUSTER-013). One that does not answer holds the confirms up, until it
answers or the others take it for gone (rabbit_classic_queue:handle_event, down). What a queue does whose leader may
have failed is in `model.rules.operator.mirrors`.

Requirements:

* CLUSTER-013: Mirrored: a confirm waits for all mirrors. A publish to a classic queue that a policy mirrors (ha-mode)
  is confirmed when each mirror has it: who is told so finds it there when the leader is lost. [RabbitMQ 3.10 guide:
  classic queue mirroring (publisher confirms); v3.10.9 rabbit_mirror_queue_master]
"""

from __future__ import annotations

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.nodes import OPEN_BY, node_of
from amqpspec.model.broker.openness import begin_openness
from amqpspec.model.broker.policies import MIRRORS
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType

#: Seconds before which no node is taken for gone that does not answer (net_ticktime 5, less a quarter of it).
UNTIL_GONE = 3.0


def is_mirrored(broker: BrokerState, queue: Queue) -> bool:
    """An exclusive queue never is."""
    is_one = queue.type is QueueType.CLASSIC and queue.owner is None and not queue.reply_address
    return is_one and broker.dialect.mirrors_classic_queues and MIRRORS in queue.in_force


def is_too_early(queue: Queue, message: Message, now: float) -> bool:
    """Is it not there yet in some mirror, and can nobody know that this one is gone?"""
    since = queue.behind_since
    return since is not None and message.position in queue.behind and now < since + UNTIL_GONE


def may_be_cancelled(broker: BrokerState, consumer: Consumer) -> bool:
    """May the consumer be told that its queue is down, though nobody knows that it is?"""
    queue = consumer.queue
    return queue.open_by == OPEN_BY and queue.type is QueueType.CLASSIC and queue.node in (0, *broker.failed)


def be_open(broker: BrokerState, queue: Queue) -> None:
    """Nobody can tell what the queue does, because of a node."""
    if not queue.open_by:
        begin_openness(broker, queue, OPEN_BY)


def is_held(broker: BrokerState, queue: Queue, besides: int = 0) -> bool:
    """Does anybody hold messages of the queue, but for clients of that node?"""
    return any(
        entry.queue is queue
        for channel in broker.channels.values()
        if node_of(channel.connection) != besides
        for entry in channel.unacknowledged.values()
    )
