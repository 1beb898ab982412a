"""What a limit shows by holding a consumer back, or by letting it be served: requirements to count, or to blame.

Whom the limits hold back: `model.broker.limits`.

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

from collections.abc import Iterator

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.limits import counted, is_counted, own_limit_holds, shared_limit_holds
from amqpspec.model.broker.queues import Consumer, Queue


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
        if 0 < (channel.prefetch or channel.channel_prefetch) < channel.automatic:
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
        would_be_full = 0 < (channel.prefetch or channel.channel_prefetch) <= channel.automatic
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
