"""Limits on deliveries that wait for their settlement (area QOS): whom they hold back.

Two kinds, independent of each other (RabbitMQ guide: consumer prefetch): a consumer's own, which it has from its
beginning; and one that consumers share, those of a channel or, in the bare text, of a connection. Which of them a
dialect has: `model.rules.basic.qos` (QOS-008 up to 4.2, none from 4.3 on, QOS-016 in the text). The model counts what
is promised to be counted. What a limit shows, and what to blame it for: `model.broker.limits_shown`.

Requirements:

* QOS-001: Per-consumer prefetch. basic.qos(n, global=false) limits each consumer created LATER on the channel to n
  unacked messages, independently. [RabbitMQ guide: consumer prefetch]
* QOS-005: no_ack ignores prefetch. Prefetch does not limit no_ack consumers. In rabbitmq-3: broken: a classic queue
  hands nothing to a channel that has reached its limit. In rabbitmq-4.0: broken: a classic queue hands nothing to a
  channel that has reached its limit. [rabbit_channel.erl; AMQP 0-9-1 basic.qos]
* QOS-008: Global qos <=4.2. qos(n, global=true) limits the sum of unacked over all consumers of the channel. [RabbitMQ
  guide: consumer prefetch; rabbit_limiter]
* QOS-011: Global limit does not claw back. qos(n,true) sent after deliveries does not retract what is out or on its way
  to the client by then, and no more than that may exceed it: further deliveries only when less than n is unacked, also
  for consumers that were there before. In rabbitmq-4.3: read as a limit of consumers to come: those that exist go on
  without it. [RabbitMQ guide: consumer acknowledgements (prefetch changed in mid-flight); rabbit_channel.erl:basic.qos
  unacked count]
* QOS-012: Quorum queue or stream with global qos. consume on a quorum queue or a stream while a channel limit is active
  is hard 540 (<=4.2). In rabbitmq-3: 540. In rabbitmq-4.0: 540. [rabbit_quorum_queue:consume,
  rabbit_stream_queue:consume, limiter_active]
* QOS-013: Limiter counts gets (<=4.2). Messages of basic.get that are unacked when the channel's limit is set count
  towards it, until they are settled; those got later do not. In rabbitmq-3: broken: they count for ever. In
  rabbitmq-4.0: broken: they count for ever. [rabbit_channel.erl:basic.qos (comment TODO), notify_limiter]
* QOS-016: The text's meaning of global. In the text qos(n,global=false) limits the sum of unacked over all consumers of
  the channel, those that were there before included, and qos(n,global=true) the sum over all consumers of the
  connection; independently of each other. [AMQP 0-9-1 basic.qos; RabbitMQ guide: consumer prefetch (the table of
  meanings)]
"""

from __future__ import annotations

from collections.abc import Sequence

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.owed import PendingGet
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType


def own_limit_holds(consumer: Consumer) -> bool:
    """QOS-001, QOS-005: the consumer has as many unacknowledged deliveries as it may. One without acknowledgements has
    no limit.
    """
    return 0 < consumer.prefetch <= consumer.outstanding


def shared_limit_holds(broker: BrokerState, consumer: Consumer) -> bool:
    """QOS-008, QOS-016: those with whom the consumer shares a limit have as many as they may."""
    if not can_share(broker, consumer):
        return False
    if consumer.no_ack:
        return False
    channel = broker.channels[consumer.channel]
    if channel.channel_prefetch and not channel.under_way and counted(broker, channel) >= channel.channel_prefetch:
        return True
    limit = _connection_limit(broker, channel)
    if not limit:
        return False
    beside = (each for each in broker.channels.values() if _beside(each, channel))
    return sum(counted(broker, each) for each in beside) >= limit


def can_share(broker: BrokerState, consumer: Consumer) -> bool:
    """Does the consumer count towards a shared limit? In RabbitMQ only those of classic queues do (QOS-012;
    rabbit_queue_consumers:deliver_to_consumer), in the text all.
    """
    return _shares(broker, consumer.queue)


def _shares(broker: BrokerState, queue: Queue) -> bool:
    if broker.dialect.prefetch_is_shared:
        return True
    return queue.type is QueueType.CLASSIC and not queue.reply_address


def counted(broker: BrokerState, channel: Channel) -> int:
    """Deliveries that count towards the channel's limit: those to its consumers, and all that it held when the limit
    came, those of basic.get among them (QOS-013).
    """
    return sum(is_counted(broker, channel, tag, entry) for tag, entry in channel.unacknowledged.items())


def is_counted(broker: BrokerState, channel: Channel, tag: int, entry: Unacknowledged) -> bool:
    if channel.transaction is not None and tag in channel.transaction.credited:
        return False
    if tag < channel.counted_below_tag:
        return True
    return entry.consumer is not None and _shares(broker, entry.queue)


def has_channel_limit(broker: BrokerState, channel: Channel) -> bool:
    """Is there a limit of the channel (QOS-012)?"""
    return bool(channel.channel_prefetch)


def sharing(broker: BrokerState, channel: Channel) -> Sequence[Consumer]:
    """The consumers that share a limit with those of the channel."""
    if _connection_limit(broker, channel):
        beside = (each for each in broker.channels.values() if _beside(each, channel))
        return [consumer for each in beside for consumer in each.consumers.values()]
    if not channel.consumers:
        return ()
    if channel.channel_prefetch:
        return list(channel.consumers.values())
    return ()


def _connection_limit(broker: BrokerState, channel: Channel) -> int:
    if not broker.dialect.prefetch_is_shared:
        return 0
    connection = broker.connections.get(channel.connection)
    return connection.prefetch if connection is not None else 0


def _beside(one: Channel, other: Channel) -> bool:
    return one.connection == other.connection


def room_on(channel: Channel, queue: Queue) -> float:
    """How many messages of the queue its consumers on the channel may be handed now, as far as their own limits go."""
    room = 0.0
    for consumer in queue.consumers:
        if consumer.channel == channel.key:
            limit = consumer.prefetch or float("inf")
            room += max(limit - consumer.outstanding, 0)
    return room


# ------------------------------------------------------------------------------------- how they come and go


def limit_channel(broker: BrokerState, channel: Channel, count: int) -> None:
    """The channel has this limit from now on, 0 for none; nothing is taken back (QOS-011).

    rabbit_limiter:handle_call limit_prefetch: what the channel holds is counted when there was no limit before.
    """
    channel.channel_prefetch = count
    if not count:
        channel.under_way = 0
    elif channel.counts_anew and not broker.dialect.prefetch_is_shared:
        channel.counted_below_tag = channel.next_tag + gets_under_way(channel)
    channel.counts_anew = not count


def gets_under_way(channel: Channel) -> int:
    """How many messages basic.get may bring that have to be settled."""
    return sum(isinstance(owed, PendingGet) and not owed.no_ack for owed in channel.owed)


def nothing_was_got(broker: BrokerState, channel: Channel) -> None:
    """A basic.get that was under way when the limit came has found no message."""
    if channel.counted_below_tag > channel.next_tag:
        channel.counted_below_tag -= 1


def note_delivery(broker: BrokerState, channel: Channel, consumer: Consumer) -> None:
    """The consumer was handed one more message that it has to settle."""
    consumer.outstanding += 1
    if channel.under_way and can_share(broker, consumer):
        channel.under_way -= 1
