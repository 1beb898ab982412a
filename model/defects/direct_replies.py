"""Delivery tags of direct replies up to 4.1: rabbit_channel:handle_cast deliver_reply leaves next_tag as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.state import Channel
from amqpspec.model.judging.known_defect import FrameDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Frame

DIRECT_REPLIES_NOT_COUNTED = "direct-replies-not-counted"


class DirectReplies(Guest):
    """Sees whether replies have tags of their own."""

    name = "direct replies"

    def delivery_seen(
        self, broker: Broker, channel: Channel, queue: Queue, properties: Mapping[str, Any], wrong: Sequence[Mismatch]
    ) -> None:
        if channel.direct_replies and all(mismatch.argument != "delivery_tag" for mismatch in wrong):
            broker.refuted.add(DIRECT_REPLIES_NOT_COUNTED)


def _leaves_out_replies(broker: Broker, frame: Frame, mismatch: Mismatch) -> Mismatches | None:
    channel = broker.channels.get((frame.connection, frame.channel))
    if mismatch.argument != "delivery_tag" or channel is None or not channel.direct_replies:
        return None
    tag = frame.arguments["delivery_tag"]
    if tag != channel.next_tag - channel.direct_replies:
        return None
    channel.next_tag, channel.direct_replies = tag, 0
    return (
        Mismatch(
            "REPLY-006", Shape.WRONG_ARGUMENT, mismatch.detail, False, mismatch.allowed,
            defect=DIRECT_REPLIES_NOT_COUNTED,
        ),
    )  # fmt: skip


DIRECT_REPLY_DEFECTS: tuple[FrameDefect, ...] = (
    FrameDefect(
        name=DIRECT_REPLIES_NOT_COUNTED,
        requirement="REPLY-006",
        statement="A direct reply has the delivery tag that the next delivery has as well.",
        source="v4.0.5 rabbit_channel:handle_cast deliver_reply, which leaves next_tag as it is",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        goes_on=_leaves_out_replies,
        is_observed_again=True,
    ),
)
