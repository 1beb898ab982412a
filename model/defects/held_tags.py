"""Tags of consumers of which the client holds deliveries: the next consumer of such a tag may be taken for the former
one (`model.defects.merged_consumers`, `model.defects.waiting_consumers`).
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.queues import Consumer, Message, Queue

NAME = "held tags"


class HeldTags(Guest):
    """Knows when there is the first one: the consumer may be cancelled and its tag used again by one input."""

    name = NAME

    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        if consumer is not None and entry is not None:
            arm(broker, NAME)
