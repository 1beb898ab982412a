"""Chapter basic, qos (0-9-1 section 1.8.3.3; area QOS): the limits that consumers and channels carry.

RabbitMQ reads `global` its own way (guide: consumer prefetch): false is a limit for each consumer made later, true
one for the channel. The 0-9-1 text reads false as the channel's; the bare dialect takes the channel's for both.
"""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.state import Channel


def qos(broker: Broker, channel: Channel, frame: Frame) -> None:
    arguments = frame.arguments
    size = arguments.get("prefetch_size", 0)
    if size:
        raise ProtocolError("QOS-007", 540, f"prefetch_size!=0 ({size})")
    count = arguments.get("prefetch_count", 0)
    if arguments.get("global_") and broker.dialect.channel_prefetch:
        channel.channel_prefetch = count
        for consumer in channel.consumers.values():
            broker.refresh(consumer.queue)
        broker.owe(channel, "basic.qos-ok", {}, "QOS-008")
    else:
        channel.prefetch = count
        broker.owe(channel, "basic.qos-ok", {}, "QOS-009" if arguments.get("global_") else "QOS-001")
