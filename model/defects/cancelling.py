"""Answers of clients to the broker's basic.cancel (rabbit_channel:handle_method basic.cancel_ok)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method


def _confirms_what_is_over(broker: Broker, method: Method) -> bool:
    """Does the client say cancel-ok of what is no consumer, as it is when the broker has cancelled it?"""
    channel = broker.open_channel(method)
    if channel is None:
        return False
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    # a consumer of direct replies is none of the channel's
    return consumer is None or consumer.queue.reply_address


CANCELLING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-ok-for-no-consumer-breaks",
        requirement="CANCEL-009",
        strength=Strength.CONVENTIONAL,
        statement="A client that answers the basic.cancel for a deleted queue with cancel-ok crashes the channel, which"
        " knows the consumer no longer; the connection closes with 541.",
        source="rabbit_channel:handle_method basic.cancel_ok, cancel_consumer: return_ok replies with undefined;"
        " consumer_timeout_SUITE of 4.3.7: consumer_cancel_ok_after_queue_delete",
        dialects=("rabbitmq-4.3",),
        versions=(versions("4.3.0", "4.3.6"),),
        methods=("basic.cancel-ok",),
        applies=_confirms_what_is_over,
        process=crash_with("CANCEL-009"),
    ),
)
