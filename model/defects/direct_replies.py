"""Direct replies: the pseudo-queue amq.rabbitmq.reply-to.

Its consumer is none of the channel's (rabbit_channel, `reply_consumer`), and who has an address is found by the address
itself (rabbit_direct_reply_to; from 4.3 on rabbit_volatile_queue).
Up to 4.1 a delivery of it takes no tag of its own: rabbit_channel:handle_cast deliver_reply leaves next_tag as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.hooks import Guest
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.judging.known_defect import DefectTransition, OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process

DIRECT_REPLIES_NOT_COUNTED = "direct-replies-not-counted"


class DirectReplies(Guest):
    """Sees whether replies have tags of their own."""

    name = "direct replies"

    def delivery_seen(
        self, broker: Broker, channel: Channel, queue: Queue, properties: Mapping[str, Any], wrong: Sequence[Mismatch]
    ) -> None:
        if channel.direct_replies and all(mismatch.argument != "delivery_tag" for mismatch in wrong):
            broker.bookkeeping.refuted.add(DIRECT_REPLIES_NOT_COUNTED)


def _leaves_out_replies(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    channel = broker.channels.get((method.connection, method.channel))
    if mismatch.argument != "delivery_tag" or channel is None or not channel.direct_replies:
        return None
    tag = method.arguments["delivery_tag"]
    if tag != channel.next_tag - channel.direct_replies:
        return None
    channel.next_tag, channel.direct_replies = tag, 0
    return (
        Mismatch(
            "REPLY-006", Shape.WRONG_ARGUMENT, mismatch.detail, False, mismatch.allowed,
            defect=DIRECT_REPLIES_NOT_COUNTED,
        ),
    )  # fmt: skip


DIRECT_REPLY_OUTPUT_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=DIRECT_REPLIES_NOT_COUNTED,
        requirement="REPLY-006",
        strength=Strength.PROMISED,
        statement="A direct reply has the delivery tag that the next delivery has as well.",
        source="v4.0.5 rabbit_channel:handle_cast deliver_reply, which leaves next_tag as it is",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        goes_on=_leaves_out_replies,
        is_observed_again=True,
    ),
)


def _uses_tag_of_reply_consumer(broker: Broker, method: Method) -> bool:
    channel = broker.open_channel(method)
    if channel is None:
        return False
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    return consumer is not None and consumer.queue.reply_address and method.arguments.get("queue", "") != REPLY_TO


def _consume_under_the_same_tag(broker: Broker, method: Method) -> None:
    """The reply consumer goes on as well; nobody can tell its deliveries from the other's, so it is left out."""
    channel = broker.channels[(method.connection, method.channel)]
    broker.remove_consumer(channel.consumers[method.arguments["consumer_tag"]], "CONSUME-003")
    process(broker, method)


def _declares_malformed_address(broker: Broker, method: Method) -> bool:
    name = method.arguments.get("queue", "")
    if not name.startswith(REPLY_TO) or name == REPLY_TO or name in broker.queues:
        return False
    channel = broker.open_channel(method)
    return channel is not None


def _replies_to_nobody(broker: Broker, method: Method) -> bool:
    """Is it mandatory, and goes to the address of a consumer of replies that is gone?"""
    arguments = method.arguments
    if not arguments.get("mandatory") or not broker.reply_addresses or arguments.get("exchange"):
        return False
    channel = broker.channels.get((method.connection, method.channel))
    address = arguments.get("routing_key", "")
    if channel is None or channel.state is not ChannelState.OPEN or address in broker.queues:
        return False
    return address in broker.reply_addresses or address in broker.reply_addresses.values()


def _return_nothing(broker: Broker, method: Method) -> None:
    process(broker, method)
    channel = broker.channels[(method.connection, method.channel)]
    returned = [owed for owed in channel.owed if isinstance(owed, Expected) and owed.method == "basic.return"]
    channel.owed = [owed for owed in channel.owed if not any(owed is each for each in returned[-1:])]
    broker.settle_debts(channel)
    broker.fired("PUBLISH-007")


REPLY_PUBLISHING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reply-to-nobody-not-returned",
        requirement="PUBLISH-007",
        strength=Strength.ARGUABLE,
        statement="A mandatory message to the reply address of a consumer that is gone is neither delivered nor"
        " returned.",
        source="v4.3.5 rabbit_volatile_queue:new_target takes every address that a process can be read from",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        methods=("basic.publish",),
        applies=_replies_to_nobody,
        process=_return_nothing,
    ),
)

DIRECT_REPLY_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reply-consumer-tag-taken-twice",
        requirement="REPLY-005",
        strength=Strength.PROMISED,
        statement="The tag of a consumer of direct replies can be used again on its channel: it is not among the"
        " channel's consumers, where basic.consume looks for it.",
        source="rabbit_channel:handle_method basic.consume, consumer_mapping does not hold the reply consumer",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=_uses_tag_of_reply_consumer,
        process=_consume_under_the_same_tag,
    ),
    DefectTransition(
        name="malformed-reply-address-breaks",
        requirement="REPLY-002",
        strength=Strength.CONVENTIONAL,
        statement="Declaring a queue whose name begins like an address of direct replies and is none, passively or not,"
        " crashes the channel; the connection closes with 541.",
        source="rabbit_channel:handle_method queue.declare: rabbit_volatile_queue:new gives error, taken for a queue",
        dialects=("rabbitmq-4.3",),
        methods=("queue.declare",),
        applies=_declares_malformed_address,
        process=crash_with("REPLY-002"),
    ),
)
