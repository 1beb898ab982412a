"""Direct replies up to 4.1: a delivery takes no tag of its own (rabbit_channel:handle_cast deliver_reply)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.protocol.methods import Method


def _leaves_out_replies(broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    channel = broker.channels.get((method.connection, method.channel))
    if mismatch.argument != "delivery_tag" or channel is None or not channel.direct_replies:
        return False
    tag = method.arguments["delivery_tag"]
    if tag != channel.next_tag - channel.direct_replies:
        return False
    channel.next_tag, channel.direct_replies = tag, 0
    return True


def _has_own_tag(broker: Broker, method: Method) -> bool:
    """Did a delivery after a reply come with the next tag?"""
    channel = broker.channels.get((method.connection, method.channel))
    return method.name == "basic.deliver" and channel is not None and channel.direct_replies > 1


DIRECT_REPLY_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name="direct-replies-not-counted",
        requirement="REPLY-006",
        statement="A direct reply has the delivery tag that the next delivery has as well.",
        source="v4.0.5 rabbit_channel:handle_cast deliver_reply, which leaves next_tag as it is",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        goes_on=_leaves_out_replies,
        is_refuted_by=_has_own_tag,
    ),
)
