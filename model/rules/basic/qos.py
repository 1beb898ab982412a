"""Chapter basic, qos (0-9-1 section 1.8.3.1; area QOS): the limits that consumers, channels and connections carry.

In the text global=false sets the limit of the channel, global=true that of the connection. In RabbitMQ (guide: consumer
prefetch) false sets a limit for each consumer made later, and true that of the channel; from 4.3 on true means false
(rabbit_channel:is_global_qos_permitted).

Requirements:

* QOS-001: Per-consumer prefetch. basic.qos(n, global=false) limits each consumer created LATER on the channel to n
  unacked messages, independently. [RabbitMQ guide: consumer prefetch]
* QOS-002: Zero is unlimited. prefetch 0 = no limit. [RabbitMQ guide: consumer prefetch; AMQP 0-9-1]
* QOS-007: prefetch_size. Non-zero prefetch_size is hard 540. [rabbit_channel.erl]
* QOS-008: Global qos <=4.2. qos(n, global=true) limits the sum of unacked over all consumers of the channel. [RabbitMQ
  guide: consumer prefetch; rabbit_limiter]
* QOS-009: Global qos 4.3. Feature global_qos is denied by default: qos(n,global=true) is silently treated as
  qos(n,global=false), qos-ok is sent, no error. [rabbit_channel.erl:is_global_qos_permitted]
* QOS-010: Both limits together. qos(p,false) and qos(c,true) are enforced independently, in whatever order they come; a
  consumer gets messages only if neither is reached. From 4.3 on there is one limit, and the last call sets it. In
  rabbitmq-3: broken: a later qos(p,false) ends the limit of the channel. In rabbitmq-4.0: broken: a later qos(p,false)
  ends the limit of the channel. In rabbitmq-4.3: one limit, the last call sets it. [RabbitMQ guide: consumer prefetch]
* QOS-014: qos-ok is immediate. qos-ok does not wait for queues; deliveries already queued in the channel process come
  before it or after it. [rabbit_channel.erl]
* QOS-016: The text's meaning of global. In the text qos(n,global=false) limits the sum of unacked over all consumers of
  the channel, those that were there before included, and qos(n,global=true) the sum over all consumers of the
  connection; independently of each other. [AMQP 0-9-1 basic.qos; RabbitMQ guide: consumer prefetch (the table of
  meanings)]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.limits import limit_channel, sharing
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method


def qos(broker: Broker, channel: Channel, method: Method) -> None:
    """Set the limit, look again at which consumers have room, and owe qos-ok."""
    arguments = method.arguments
    size = arguments.get("prefetch_size", 0)
    if size and not broker.dialect.text.prefetch_size_is_known:
        raise ProtocolError("QOS-007", 540, f"prefetch_size!=0 ({size})")
    count = arguments.get("prefetch_count", 0)
    is_global = bool(arguments.get("global_"))
    # those who shared a limit until now may share none afterwards
    concerned = sharing(broker, channel)
    reply = "QOS-014"
    if broker.dialect.prefetch_is_shared:
        reply = requirement = "QOS-016"
        if is_global:
            broker.connections[channel.connection].prefetch = count
        else:
            limit_channel(broker, channel, count)
            channel.prefetch_from = "" if count else "QOS-002"
    elif is_global and broker.dialect.channel_prefetch:
        requirement = "QOS-008"
        limit_channel(broker, channel, count)
    else:
        requirement = "QOS-009" if is_global else "QOS-001"
        _limit_consumers_to_come(broker, channel, count, is_global)
    for consumer in (*concerned, *sharing(broker, channel)):
        broker.refresh(consumer.queue)
    if broker.bookkeeping.credit:
        broker.owe(channel, "basic.qos-ok", {})
    else:
        # the answer alone shows nothing of a limit
        broker.owe(channel, "basic.qos-ok", {}, reply, counted=False)
    broker.blame(channel, requirement)


def _limit_consumers_to_come(broker: Broker, channel: Channel, count: int, is_global: bool) -> None:
    """QOS-001, QOS-002, QOS-009; QOS-010: where true means false, the last call counts, whichever it is."""
    before = channel.prefetch_from
    if not broker.bookkeeping.counting:
        pass  # a barrier, which sets what is set already
    elif not count:
        channel.prefetch_from = "QOS-002"
    elif is_global:
        channel.prefetch_from = "QOS-010" if before in ("QOS-001", "QOS-010") else "QOS-009"
    else:
        channel.prefetch_from = "QOS-001"
    channel.prefetch = count
    channel.under_way, channel.counts_anew = 0, True
