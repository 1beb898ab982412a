"""Inputs that can bring a delivery about: what a channel has done wrongly may show by any of them."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown, Teardown
from amqpspec.model.protocol.methods import Method

SETTLING = ("basic.ack", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async")
#: What can end a channel by an error, which gives back what was delivered there.
_ERRING = (
    "queue.declare", "queue.bind", "queue.unbind", "queue.purge", "queue.delete", "exchange.declare", "exchange.delete",
    "exchange.bind", "exchange.unbind", "basic.get", "tx.select", "tx.commit", "tx.rollback", "confirm.select",
    "channel.open",
)  # fmt: skip
#: What can bring a delivery about: it can make a message ready, or make room for one, or somebody who takes it.
DELIVERY_METHODS = (
    *SETTLING, "basic.publish", "basic.qos", "basic.consume", "basic.cancel",
    "channel.close", "connection.close", "socket.abort", *_ERRING,
)  # fmt: skip
DELIVERY_EVENTS = (ChannelCrash, ConnectionTeardown)


def brings_deliveries(broker: Broker, event: Method | Teardown) -> bool:
    """Can this input, one of these, bring one about? The questions of a barrier end in no error."""
    return broker.bookkeeping.counting or isinstance(event, Teardown) or event.name not in _ERRING
