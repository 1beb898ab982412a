"""RabbitMQ's channels look up a delivery that has timed out by the tag of its consumer (area TIMEOUT).

What they know of tags (consumer_mapping) does not follow what becomes of the consumers: one that the client has
cancelled is not found there, and one that has timed out is still there.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.broker.timed_out_consumers import waits_for_answer
from amqpspec.model.defects.channel_closing import note_closed
from amqpspec.model.defects.timed_deliveries import DIALECTS, MENDED, NAME
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timeout_cancels_consumer import close_saying, is_told
from amqpspec.model.rules.extensions.timeout_schedule import doubted_delivery
from amqpspec.model.rules.inputs import process


def _is_cancelled(broker: Broker, event: DeliveryTimeout) -> bool:
    found = doubted_delivery(broker, event)
    if found is None:
        return False
    channel, entry = found
    consumer = entry.consumer
    if consumer is None or not is_told(broker, channel):
        return False
    is_present = channel.consumers.get(consumer.tag) is consumer
    return not is_present or (consumer.timed_out > 0 and waits_for_answer(broker, channel.key))


def _close_all_the_same(broker: Broker, event: DeliveryTimeout) -> None:
    found = doubted_delivery(broker, event)
    process(broker, event)
    if found is not None:
        close_saying(broker, found[0], "TIMEOUT-011", -1)
        note_closed(broker, found[0], for_timeout=True)


def _timed_out_consumer_of_same_tag(broker: Broker, method: Method) -> Consumer | None:
    channel = broker.open_channel(method)
    if channel is None:
        return None
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    return consumer if consumer is not None and consumer.timed_out else None


def _refuse_tag(broker: Broker, method: Method) -> None:
    consumer = _timed_out_consumer_of_same_tag(broker, method)
    if consumer is not None:
        consumer.timed_out = 0
    process(broker, method)


TIMED_OUT_TAG_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="timeout-after-cancel-closes-channel",
        requirement="TIMEOUT-011",
        strength=Strength.PROMISED,
        statement="When the client has cancelled its consumer, or the broker has forgotten one whose time was up, and"
        " the client holds a delivery of it until its time is up, its channel is closed, with the capability"
        " consumer_cancel_notify as without.",
        source="rabbit_channel:handle_queue_actions released, where the tag is none of consumer_mapping",
        dialects=DIALECTS,
        methods=(),
        internal_events=(DeliveryTimeout,),
        guest=NAME,
        applies=_is_cancelled,
        process=_close_all_the_same,
    ),
    DefectTransition(
        name="timed-out-tag-stays-in-use",
        requirement="TIMEOUT-030",
        strength=Strength.CONVENTIONAL,
        statement="The tag of a consumer whose client was told by basic.cancel that it has timed out is still in use:"
        " to consume with it again closes the connection (530).",
        source="rabbit_channel:handle_queue_actions released, which leaves consumer_mapping as it is",
        dialects=DIALECTS,
        versions=MENDED,
        methods=("basic.consume",),
        guest=NAME,
        applies=lambda broker, method: _timed_out_consumer_of_same_tag(broker, method) is not None,
        process=_refuse_tag,
    ),
)
