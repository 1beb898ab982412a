"""Observing an output: is this frame permitted in this state, and what is the state after it?

`observe` is the one definition of what a broker may send. The judge asks it about frames that a target sent, the
embedded broker and the explorer about frames that `model.outputs.permitted` enumerates.

Requirements:

* CHAN-001: Method on a channel that is not open. Any method on an unopened channel id is a HARD error 504.
  [rabbit_channel.erl:handle_method state=starting; AMQP 0-9-1 class channel]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.effects import ConsumerAnnounced
from amqpspec.model.broker.owed import Expected
from amqpspec.model.outputs.confirms import observe_confirm
from amqpspec.model.outputs.connections import observe_on_connection
from amqpspec.model.outputs.deliveries import observe_deliver, observe_get
from amqpspec.model.outputs.kept_capabilities import broken_promise
from amqpspec.model.outputs.mismatch import NONE, Mismatches, unexpected
from amqpspec.model.outputs.replies import UNSOLICITED, fits, observe_reply, take_expected
from amqpspec.model.protocol.methods import OCTETS_BEHIND, Method, TraceEvent


def observe(broker: Broker, event: TraceEvent) -> Mismatches:
    """Take the frame out of what the broker may send. Returns the differences; none is right.

    After a fatal mismatch the state is unchanged, except for harmless bookkeeping; after others it is the state that
    the right frame would have led to.

    A method that goes on after its last argument is a failure of its own (`model.outputs.malformed`). Wrong arguments
    of it have the same cause, and are not reported: a flag that is written as two octets makes both.
    """
    mismatches = _observe(broker, event)
    if mismatches and OCTETS_BEHIND in event.arguments:
        mismatches = tuple(mismatch for mismatch in mismatches if mismatch.fatal)
    return (broken_promise(broker, event) or mismatches) if mismatches else NONE


def _observe(broker: Broker, event: TraceEvent) -> Mismatches:
    if event.channel == 0 or not isinstance(event, Method):
        return observe_on_connection(broker, event)
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None:
        return unexpected(UNSOLICITED.get(event.name, "CHAN-001"), f"{event.name} on a channel that is not open")
    method = event.name
    if channel.state is not ChannelState.OPEN:
        if channel.state is ChannelState.CLOSED and _is_over(broker, event):
            # overtaken by connection.close on its way to the socket; every client drops it
            for owed in channel.owed:
                if isinstance(owed, Expected) and owed.method == method and fits(owed, event):
                    take_expected(broker, channel, owed, event)
                    break
            return NONE
        if _was_said_before(broker, channel, event):
            return NONE
    if method == "basic.ack" or method == "basic.nack":
        return observe_confirm(broker, channel, event)
    channel.lowest_of_acks = 0
    if method == "basic.deliver":
        return observe_deliver(broker, channel, event)
    if method == "basic.get-ok" or method == "basic.get-empty":
        return observe_get(broker, channel, event)
    return observe_reply(broker, channel, event)


def _was_said_before(broker: Broker, channel: Channel, method: Method) -> bool:
    """Is it a reply from before the end, which is known by what came on other connections, and not seen yet?"""
    connection = broker.connections.get(method.connection)
    if connection is None or not (channel.owed or connection.owed):
        return False
    for owed in channel.unread:
        if owed.method == method.name and fits(owed, method):
            channel.unread = tuple(other for other in channel.unread if other is not owed)
            if isinstance(owed.effect, ConsumerAnnounced):
                owed.effect.consumer.announced = True
            return True
    return False


def _is_over(broker: Broker, method: Method) -> bool:
    """Has the broker's connection.close been seen?"""
    connection = broker.connections.get(method.connection)
    if connection is None or connection.state is not ConnectionState.CLOSING:
        return False
    return not any(isinstance(owed, Expected) and owed.method == "connection.close" for owed in connection.owed)
