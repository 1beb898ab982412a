"""Known defects of consumer timeouts, all of them RabbitMQ's from 4.3 on (area TIMEOUT): when they can matter."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.versions import versions

#: The guest of all of them: it is armed when they can matter.
NAME = "timed deliveries"

DIALECTS = ("rabbitmq-4.3",)
#: What the release notes of 4.3.7 say was mended: a consumer stayed, of which the client was told that it is cancelled.
MENDED = (versions("4.3.0", "4.3.6"),)


class TimedDeliveries(Guest):
    """Nothing times out before something was delivered that is to be settled in time."""

    name = NAME

    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        if entry is not None and entry.deadline is not None:
            arm(broker, NAME)
