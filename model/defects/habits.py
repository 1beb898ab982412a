"""What brokers of many families do against the text: ways to go on behind a failure, which excuse nobody.

Else the first such failure would end the judging, and hide what is worse: Qpid Broker-J takes the acknowledgement of an
unknown tag in silence, and settles with `multiple` all that is outstanding.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method


def _settles_nothing(broker: Broker, method: Method) -> bool:
    """Is the tag that it settles not outstanding, which is an error?"""
    channel = broker.channels.get((method.connection, method.channel))
    if channel is None or channel.state is not ChannelState.OPEN or channel.transaction is not None:
        return False
    tag = method.arguments.get("delivery_tag", 0)
    return tag not in channel.outstanding_tags and not (tag == 0 and method.arguments.get("multiple"))


def _ignore(broker: Broker, method: Method) -> None:
    """Nothing comes of it."""


HABITS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="unknown-tag-is-ignored",
        requirement="ACK-006",
        strength=Strength.PROMISED,
        statement="What settles a delivery that is not outstanding is ignored, and is no error.",
        source="seen of Qpid Broker-J 9.2.1 and GarageMQ",
        dialects=(),
        methods=("basic.ack", "basic.nack", "basic.reject"),
        applies=_settles_nothing,
        process=_ignore,
        is_steady=True,
    ),
)
