"""Which deliveries of a channel an input settles, before it is processed."""

from __future__ import annotations

from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import tags_named


def settles(channel: Channel, method: Method, tag: int) -> bool:
    """Does the input settle that delivery of its channel? A commit: other than by acknowledging it."""
    if method.name == "tx.commit":
        rulings = channel.transaction.rulings if channel.transaction is not None else ()
        return any(tag in tags for ruling, tags in rulings if ruling.outcome is not Outcome.ACKNOWLEDGED)
    if method.name.startswith("basic.recover"):
        return True
    return tag in (tags_named(channel, method) or ())
