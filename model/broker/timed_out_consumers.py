"""Consumers that the broker has cancelled because their time was up: may it still know them (area TIMEOUT)?

What that means: `model.rules.extensions.timed_out_consumer_still_known`.
"""

from __future__ import annotations

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.capabilities import ACCEPT_CANCEL_OK, advertised
from amqpspec.model.protocol.methods import ChannelKey

#: Seconds in which a broker that waits for the client's basic.cancel-ok has forgotten the consumer without it: as many
#: as RabbitMQ's consumer_timeout_SUITE waits for that.
LINGERING = 30.0


def waits_for_answer(broker: BrokerState, key: ChannelKey) -> bool:
    """Does the broker announce that it takes a client's answer to basic.cancel?"""
    return ACCEPT_CANCEL_OK in advertised(broker.connections[key[0]].server_properties)


def lingers(broker: BrokerState, consumer: Consumer, now: float) -> bool:
    """Was the consumer cancelled so lately that the broker may still know it?"""
    if not consumer.timed_out or now - consumer.cancelled_at > LINGERING:
        return False
    return waits_for_answer(broker, consumer.channel)


def lingering(broker: BrokerState, queue: Queue, now: float) -> int:
    """How many consumers of the queue that were cancelled may still be counted."""
    return sum(lingers(broker, consumer, now) for consumer in queue.consumers if consumer.timed_out)
