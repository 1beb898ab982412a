"""A message that no client publishes: whoever owns the broker puts it there, also during an alarm."""

from __future__ import annotations

from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.model.protocol.patterns import choose
from amqpspec.targets.codec.methods_codec import DEFAULT_FRAME_MAX, EncodingError, encode
from amqpspec.targets.embedded.responder import Responder

_NOBODY = "nobody's connection"


def publish(responder: Responder, vhost: str, exchange: str, routing_key: str, content: Content) -> None:
    """As if a client had, on a connection that nobody sees. Raises ValueError for what no client can send, what the
    broker refuses, and what reaches no queue.
    """
    arguments = {"exchange": exchange, "routing_key": routing_key, "mandatory": True}
    method = Method(_NOBODY, 1, "basic.publish", arguments, sent=True, content=content)
    try:
        encode(method, DEFAULT_FRAME_MAX)
    except EncodingError as error:
        raise ValueError(f"no client can publish this: {error}") from None
    broker = responder.broker
    alarm, broker.alarm = broker.alarm, False
    broker.connections[_NOBODY] = Connection(_NOBODY, ConnectionState.OPEN, vhost=vhost)
    channel = broker.channel(_NOBODY, 1)
    channel.state = ChannelState.OPEN
    try:
        responder.take(method)
        said = [choose(owed.arguments["reply_text"]) for owed in channel.owed if isinstance(owed, Expected)]
    finally:
        broker.alarm = alarm
        responder.end(_NOBODY)
    if said:
        raise ValueError(f"{said[0]}: exchange {exchange!r}, routing key {routing_key!r}")
