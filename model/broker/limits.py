"""Limits on deliveries that wait for their settlement (area QOS): whom they hold back, and what that shows.

Two kinds, independent of each other (RabbitMQ guide: consumer prefetch): a consumer's own, which it has from its
beginning; and one that consumers share, those of a channel or, in the bare text, of a connection. Which of them a
dialect has: `model.rules.basic.qos` (QOS-008 up to 4.2, none from 4.3 on, QOS-016 in the text). The model counts what
is promised to be counted.

Requirements:

* ACK-001: Single ack. ack(tag,false) removes exactly that delivery. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; AMQP 0-9-1 basic.ack]
* ACK-002: Multiple ack. ack(tag,true) acks all outstanding tags <= tag on the channel, over all consumers, queues and
  get-oks. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1 basic.ack]
* GET-003: get is not limited by prefetch. basic.get ignores basic.qos limits. [rabbit_channel.erl]
* QOS-001: Per-consumer prefetch. basic.qos(n, global=false) limits each consumer created LATER on the channel to n
  unacked messages, independently. [RabbitMQ guide: consumer prefetch]
* QOS-002: Zero is unlimited. prefetch 0 = no limit. [RabbitMQ guide: consumer prefetch; AMQP 0-9-1]
* QOS-003: Existing consumers unaffected. Changing qos(global=false) does not change consumers that already exist,
  neither up nor down. [RabbitMQ guide: consumer prefetch; rabbit_channel.erl:basic.qos]
* QOS-004: Window slides on ack. Each ack/nack/reject(false) of a delivery frees one slot; multiple frees several; a
  requeued message may come back to the same consumer. In amqp-0-9-1: as stated; the window is that of the channel and
  basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.qos]
* QOS-005: no_ack ignores prefetch. Prefetch does not limit no_ack consumers. In rabbitmq-3: broken: a classic queue
  hands nothing to a channel that has reached its limit. In rabbitmq-4.0: broken: a classic queue hands nothing to a
  channel that has reached its limit. [rabbit_channel.erl; AMQP 0-9-1 basic.qos]
* QOS-006: Never exceed. At no time has a consumer more than its prefetch unacked (as seen on the wire, counting acks
  when sent), except after qos(global) changes mid-stream on <=4.2. In amqp-0-9-1: as stated, for the window of the
  channel. [RabbitMQ guide: consumer acknowledgements and publisher confirms; RabbitMQ guide: consumer prefetch; AMQP
  0-9-1 basic.qos]
* QOS-008: Global qos <=4.2. qos(n, global=true) limits the sum of unacked over all consumers of the channel. [RabbitMQ
  guide: consumer prefetch; rabbit_limiter]
* QOS-009: Global qos 4.3. Feature global_qos is denied by default: qos(n,global=true) is silently treated as
  qos(n,global=false), qos-ok is sent, no error. [rabbit_channel.erl:is_global_qos_permitted]
* QOS-010: Both limits together. qos(p,false) and qos(c,true) are enforced independently, in whatever order they come; a
  consumer gets messages only if neither is reached. From 4.3 on there is one limit, and the last call sets it. In
  rabbitmq-3: broken: a later qos(p,false) ends the limit of the channel. In rabbitmq-4.0: broken: a later qos(p,false)
  ends the limit of the channel. In rabbitmq-4.3: one limit, the last call sets it. [RabbitMQ guide: consumer prefetch]
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
* QOS-015: Two consumers share a backlog. A backlog is handed consumer by consumer up to its window, then by freed
  slots. [rabbit_queue_consumers / rabbit_fifo]
* QOS-016: The text's meaning of global. In the text qos(n,global=false) limits the sum of unacked over all consumers of
  the channel, those that were there before included, and qos(n,global=true) the sum over all consumers of the
  connection; independently of each other. [AMQP 0-9-1 basic.qos; RabbitMQ guide: consumer prefetch (the table of
  meanings)]
* TIMEOUT-014: A timed-out consumer is gone. The basic.cancel that tells of a timeout says that the consumer is gone: it
  is handed nothing, and not before everything that has timed out is settled in any case; it is not counted, and
  excludes nobody. A broker that announces accept_consumer_cancel_ok may still know it until the client answers with
  basic.cancel-ok, and for a short time without that (TIMEOUT-016, TIMEOUT-030). In rabbitmq-4.3: broken up to 4.3.6:
  counted. [RabbitMQ guide: consumer cancel notification (the consumption has stopped); RabbitMQ guide: consumer
  timeouts (no new messages, and none before all timed-out ones are settled); release notes of RabbitMQ 4.3.7]
* TX-005: Acks in tx take effect at commit. ack/nack/reject only reserve the tag: no new delivery for a full prefetch
  window until the commit, nothing comes back and nothing is dead-lettered before. What follows each other with one
  outcome is carried out as one. basic.recover does not wait, and leaves what is reserved. [rabbit_channel.erl:basic.ack
  tx; AMQP 0-9-1 class tx]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.hooks import first_answer
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
    asked = broker.hooks.shared_limit_holds
    said: bool | None = first_answer(asked, broker, consumer) if asked else None
    if said is not None:
        return said
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
    asked = broker.hooks.has_channel_limit
    said: bool | None = first_answer(asked, broker, channel) if asked else None
    return bool(channel.channel_prefetch) if said is None else said


def sharing(broker: BrokerState, channel: Channel) -> Sequence[Consumer]:
    """The consumers that share a limit with those of the channel."""
    if _connection_limit(broker, channel):
        beside = (each for each in broker.channels.values() if _beside(each, channel))
        return [consumer for each in beside for consumer in each.consumers.values()]
    if not channel.consumers:
        return ()
    asked = broker.hooks.has_channel_limit
    if channel.channel_prefetch or (asked and first_answer(asked, broker, channel) is not None):
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
    for told in broker.hooks.channel_limited:
        told(broker, channel, count)


def gets_under_way(channel: Channel) -> int:
    """How many messages basic.get may bring that have to be settled."""
    return sum(isinstance(owed, PendingGet) and not owed.no_ack for owed in channel.owed)


def nothing_was_got(broker: BrokerState, channel: Channel) -> None:
    """A basic.get that was under way when the limit came has found no message."""
    if channel.counted_below_tag > channel.next_tag:
        channel.counted_below_tag -= 1
        for told in broker.hooks.nothing_got:
            told(broker, channel)


def note_delivery(broker: BrokerState, channel: Channel, consumer: Consumer) -> None:
    """The consumer was handed one more message that it has to settle."""
    consumer.outstanding += 1
    if channel.under_way and can_share(broker, consumer):
        channel.under_way -= 1


# -------------------------------------------------------------------------------------------- what they show


def broken_by_delivery(broker: BrokerState, consumer: Consumer) -> str:
    """The requirement that one more delivery to a consumer without room breaks."""
    if consumer.timed_out:
        return consumer.reason  # TIMEOUT-014, or that which says that what was settled late is not enough
    return next(iter(_holding(broker, consumer)), "QOS-006")


def shown_by_waiting(broker: BrokerState, queue: Queue) -> Iterator[str]:
    """The requirements by which the queue's messages wait, though there are consumers: no consumer has room."""
    active = [] if queue.active.consumer is None else [queue.active.consumer]
    for consumer in active if queue.single_active_consumer else queue.consumers:
        yield from _holding(broker, consumer)


def _holding(broker: BrokerState, consumer: Consumer) -> Iterator[str]:
    """The requirements by which the consumer is held back, the one that says most first."""
    if consumer.timed_out:
        yield "TIMEOUT-014"
        return
    channel = broker.channels[consumer.channel]
    own, shared = own_limit_holds(consumer), shared_limit_holds(broker, consumer)
    if channel.transaction is not None and _holds_on_condition(broker, channel, consumer, own, shared):
        yield "TX-005"
    both = own != shared and consumer.prefetch and channel.channel_prefetch
    if own and both:
        yield "QOS-010"
    if own:
        present = channel.prefetch
        if present != consumer.prefetch and not 0 < present <= consumer.outstanding:
            yield "QOS-003"  # the limit of consumers that are made from now on would leave room
        if consumer.prefetch_from != "QOS-001":
            yield consumer.prefetch_from
        if consumer.stamp > consumer.created:
            yield "QOS-006"  # there was room again in between
        yield "QOS-001"
    if shared:
        if broker.dialect.prefetch_is_shared:
            yield "QOS-016"
        else:
            yield from _holding_channel(broker, channel)
    if both:
        yield "QOS-010"
    if shared and not broker.dialect.prefetch_is_shared:
        yield "QOS-008"
    if shared and consumer.stamp > consumer.created:
        yield "QOS-006"


def _holds_on_condition(broker: BrokerState, channel: Channel, consumer: Consumer, own: bool, shared: bool) -> bool:
    """Is there room as soon as the transaction is committed?"""
    entries = [(tag, entry) for tag, entry in channel.unsettled.items() if not entry.queue.deleted]
    if own and sum(entry.consumer is consumer for _, entry in entries) >= consumer.prefetch:
        return False
    if shared and channel.channel_prefetch:
        return sum(is_counted(broker, channel, tag, entry) for tag, entry in entries) < channel.channel_prefetch
    return own


def _holding_channel(broker: BrokerState, channel: Channel) -> Iterator[str]:
    """What is special about the channel's limit that holds, if it is."""
    before = [entry for tag, entry in channel.unacknowledged.items() if tag < channel.counted_below_tag]
    gets = sum(entry.consumer is None for entry in before)
    if gets and counted(broker, channel) - gets < channel.channel_prefetch:
        yield "QOS-013"
    if len(before) > gets:
        yield "QOS-011"


def shown_by_delivery(channel: Channel, consumer: Consumer) -> Iterator[str]:
    """The requirements by which the consumer could be handed what it was just handed, against an appearance."""
    if consumer.no_ack:
        if 0 < (channel.prefetch or channel.channel_prefetch) < len(channel.automatic):
            yield "QOS-005"
        return
    if not consumer.prefetch and consumer.prefetch_from == "QOS-002" and consumer.outstanding > 1:
        yield "QOS-002"
    if 0 < channel.prefetch < consumer.outstanding:
        yield "QOS-003"
        if channel.prefetch_from in ("QOS-009", "QOS-010"):
            yield "QOS-011"
    others = (other for other in consumer.queue.consumers if other is not consumer)
    if consumer.prefetch and any(map(own_limit_holds, others)):
        yield "QOS-015"


def suspected(broker: BrokerState, consumer: Consumer) -> str | None:
    """The requirement to blame if the consumer has room and is not served; None: no limit explains that."""
    channel = broker.channels[consumer.channel]
    if consumer.no_ack:
        would_be_full = 0 < (channel.prefetch or channel.channel_prefetch) <= len(channel.automatic)
        is_full = 0 < channel.channel_prefetch <= counted(broker, channel)
        return "QOS-005" if would_be_full or is_full else None
    others = sum(entry.consumer is not None for entry in channel.unacknowledged.values()) - consumer.outstanding
    if not consumer.prefetch and consumer.outstanding and consumer.prefetch_from == "QOS-002":
        return "QOS-002"
    if consumer.prefetch and 0 < channel.prefetch <= consumer.outstanding:
        return "QOS-003"
    if consumer.prefetch and others and others + consumer.outstanding >= consumer.prefetch:
        return consumer.prefetch_from
    gets = sum(entry.consumer is None for entry in channel.unacknowledged.values())
    would_be_full = others + gets + consumer.outstanding >= consumer.prefetch > 0
    if gets and would_be_full and consumer.reason != "ACK-002":
        return "GET-003"
    if consumer.prefetch and consumer.outstanding and consumer.reason == "ACK-001":
        return "QOS-004"
    return None
