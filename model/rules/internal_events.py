"""What internal events do (`model.broker.internal_events`), and whether they can still come about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import (
    ChannelCrash,
    ConnectionCleanup,
    ConnectionTeardown,
    ConsumerClearing,
    DeliveryLimitExcess,
    DeliveryTimeout,
    InternalEvent,
    MessageExpiry,
    MessageLoss,
    NodeTeardown,
    PossibleEvent,
    QueueExpiry,
)
from amqpspec.model.rules.basic.unseen import doubted, drop_over_limit, lose_message, lost_message
from amqpspec.model.rules.connection.closing import crash, tear_down
from amqpspec.model.rules.connection.ending import clean_up, has_left_queues
from amqpspec.model.rules.extensions.message_expiry import doubted_message, process_message_expiry
from amqpspec.model.rules.extensions.queue_expiry import is_outstanding, process_expiry
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import can_be_cleared, clear
from amqpspec.model.rules.extensions.timeout_schedule import doubted_delivery, process_timeout
from amqpspec.model.rules.operator.nodes import tear_down_with_node

#: By type of event: it happens now.
_COME_ABOUT: Mapping[type[InternalEvent], Callable[[Broker, Any], None]] = {
    QueueExpiry: process_expiry,
    MessageExpiry: process_message_expiry,
    DeliveryTimeout: process_timeout,
    ConnectionCleanup: clean_up,
    ConsumerClearing: clear,
    DeliveryLimitExcess: drop_over_limit,
    MessageLoss: lose_message,
    ChannelCrash: crash,
    ConnectionTeardown: tear_down,
    NodeTeardown: tear_down_with_node,
}

#: By type of event: would it still make a difference?
_CAN_COME_ABOUT: Mapping[type[PossibleEvent], Callable[[Broker, Any], object]] = {
    QueueExpiry: is_outstanding,
    MessageExpiry: doubted_message,
    DeliveryTimeout: doubted_delivery,
    ConnectionCleanup: has_left_queues,
    ConsumerClearing: can_be_cleared,
    DeliveryLimitExcess: doubted,
    MessageLoss: lost_message,
}


def come_about(broker: Broker, event: InternalEvent) -> None:
    """It happens now."""
    _COME_ABOUT[type(event)](broker, event)


def can_come_about(broker: Broker, event: PossibleEvent) -> bool:
    """Would it still make a difference?"""
    return bool(_CAN_COME_ABOUT[type(event)](broker, event))


def all_come_about(broker: Broker) -> None:
    """For a broker that is no judge of another: what it may do it does, at once; it delivers nothing unseen."""
    while broker.internal_events:
        event = broker.internal_events.pop(0)
        if not isinstance(event, DeliveryLimitExcess | MessageLoss):
            come_about(broker, event)
