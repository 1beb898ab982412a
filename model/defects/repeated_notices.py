"""A client that is told again that its timed out consumer is cancelled: RabbitMQ's from 4.3 on (TIMEOUT-008)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects.timed_deliveries import DIALECTS, MENDED
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.extensions.timeout_cancels_consumer import is_told

NAME = "repeated notices"

TOLD_AGAIN = "timeout-told-again"


@dataclass(slots=True)
class NoticeMemory:
    #: consumers of whose end the client may be told once more, by channel and tag, and how often
    told_again: dict[tuple[ChannelKey, str], int] = field(default_factory=dict)


class RepeatedNotices(Guest):
    """What happens to consumers of which the client was told that they are cancelled."""

    name = NAME

    def new_memory(self) -> NoticeMemory:
        return NoticeMemory()

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        consumer = entry.consumer
        if consumer is not None and channel.consumers.get(consumer.tag) is consumer:
            _note_told_again(broker, consumer)

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        for consumer in queue.consumers:
            _note_told_again(broker, consumer)

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        broker.remembered(NAME).told_again.clear()

    def fingerprint(self, broker: Broker) -> object:
        return tuple(sorted(broker.remembered(NAME).told_again.items()))


def _note_told_again(broker: Broker, consumer: Consumer) -> None:
    """Something more happens to a consumer of which the client was told that it is cancelled."""
    channel = broker.channels[consumer.channel]
    if consumer.timed_out and is_told(broker, channel):
        told, key = broker.remembered(NAME).told_again, (consumer.channel, consumer.tag)
        told[key] = told.get(key, 0) + 1


def _tells_again(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    """The broker says once more that it has cancelled the consumer, when something happens to it."""
    if method.name != "basic.cancel" or mismatch.shape is not Shape.UNEXPECTED:
        return None
    key = (method.connection, method.channel), method.arguments.get("consumer_tag", "")
    told = broker.remembered(NAME).told_again if NAME in broker.memories else {}
    if not told.get(key):
        return None
    told[key] -= 1
    return (replace(mismatch, requirement="TIMEOUT-008", fatal=False, defect=TOLD_AGAIN),)


REPEATED_NOTICE_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=TOLD_AGAIN,
        requirement="TIMEOUT-008",
        strength=Strength.PROMISED,
        statement="A client that was told that its consumer is cancelled is told so once more when another delivery of"
        " the consumer times out, and when its queue is deleted.",
        source="rabbit_channel:handle_queue_actions released, handle_eol: the tag is still in consumer_mapping",
        dialects=DIALECTS,
        versions=MENDED,
        goes_on=_tells_again,
    ),
)
