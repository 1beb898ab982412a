"""Chapter basic, cancel (0-9-1 section 1.8.3.5), and the broker's (source: consumer cancel notification; area CANCEL).

The step is `Broker.remove_consumer`: what the consumer holds stays with its channel, and can be settled there as before
(`model.rules.basic.settlement`); it goes on counting where the channel has a limit of its own (`model.broker.limits`).
The queue's next message goes to another consumer with room (`model.broker.dispatch`); where only one is active, the
next one becomes active now (`model.broker.dispatch.elect`). A new consumer of the same tag has its whole limit
(CONSUME-016). When the client later settles what the cancelled one holds, no consumer of that queue gets room by it,
but for those that share a limit with the channel. The end of a queue, with which its consumers end, is
`Broker.delete_queue`.

Requirements:

* CANCEL-001: Client cancel. basic.cancel is answered by cancel-ok; after cancel-ok no basic.deliver with that tag is
  sent. [RabbitMQ guide: consumer cancel notification; rabbit_channel.erl:cancel_consumer comment; AMQP 0-9-1
  basic.cancel]
* CANCEL-002: No server cancel for client cancel. A client-initiated cancel never causes a server-sent basic.cancel.
  [RabbitMQ guide: consumer cancel notification]
* CANCEL-003: Cancel of an unknown tag. Answered with cancel-ok (echoing the tag), no error; with nowait nothing.
  [rabbit_channel.erl "Spec requires we ignore this situation"; AMQP 0-9-1 basic.cancel]
* CANCEL-004: Cancel after server cancel. Cancelling a consumer the server already cancelled (queue deleted) is answered
  with cancel-ok. [RabbitMQ guide: consumer cancel notification]
* CANCEL-007: Server cancel on queue deletion. When a consumed queue is deleted (by any connection), every consumer on a
  capable connection gets basic.cancel(tag, nowait=true), once; nothing is delivered to it after that. Consumers of
  other queues go on. [RabbitMQ guide: consumer cancel notification]
* CANCEL-008: nowait is true. Server-sent basic.cancel always has nowait=true: the client must not answer.
  [rabbit_channel.erl:cancel_consumer]
* CANCEL-009: Answering with cancel-ok. A client answers a server-sent basic.cancel with basic.cancel-ok: an unhandled
  method (503) up to 4.2; accepted from 4.3, whether the consumer is still there or not. No text says which, so either
  is right of any version, but of one that announces accept_consumer_cancel_ok. A basic.cancel-ok without a basic.cancel
  before it ends the consumer of that tag or is ignored: either is right. In rabbitmq-3: 503. In rabbitmq-4.0: 503. In
  rabbitmq-4.3: accepted. [rabbit_channel.erl:basic.cancel_ok; consumer_timeout_SUITE of 4.3.7
  (unsolicited_cancel_ok_keeps_active_consumer)]
* CANCEL-010: Without the capability. Nothing is sent when the queue is deleted; the consumer is silently gone; a later
  cancel of its tag gets cancel-ok. [RabbitMQ guide: consumer cancel notification]
* CANCEL-011: Order delete-ok / cancel on one channel. Deleting the queue from the channel that consumes it: DeleteOk
  first, then Basic.Cancel (cancel comes with the asynchronous eol event). From another channel the order relative to
  that channel is open. [rabbit_channel.erl:handle_eol]
* CANCEL-016: Cancel holds unacked. After cancel-ok, unacked messages are neither requeued nor lost until acked, nacked
  or channel close. What ends a delivery without its client ends these as well: the time for acknowledging
  (TIMEOUT-011), and the end of an auto-delete queue whose last consumer this was (QUEUE-021, ACK-012). [RabbitMQ Java
  client test NoRequeueOnCancel; AMQP 0-9-1 basic.cancel]
* CANCEL-018: Permission revoked (4.3). After update-secret / credential refresh, consumers that lost read permission
  are cancelled by the server. What they hold stays unacknowledged. In rabbitmq-4.0: as stated, or they go on, as
  versions differ (cancelled from 4.2.6 on). [rabbit_channel.erl:recheck_consumers;
  rabbit_access_control.erl:update_state (the internal backend keeps any secret)]
* CONSUME-005: Pipelined consume and cancel. basic.cancel sent before consume-ok arrived: each request deserves its
  reply; their order is open. In rabbitmq-3: broken: connection.close 541 in most tries. In rabbitmq-4.0: broken:
  connection.close 541 in most tries. In rabbitmq-4.3: broken: the consume-ok never comes in most tries. [AMQP 0-9-1
  2.2.1 (a request is answered); rabbit_channel:handle_cast {command,consume_ok}]
* CONSUME-016: A tag that is used again is a new consumer. After a consumer was cancelled its tag is free (CONSUME-003).
  A consumer made with it is a new one: its prefetch limit counts its own deliveries, not those that the old one left
  unacknowledged. In rabbitmq-3: broken: on quorum queues the old deliveries count; on classic queues and streams the
  new consumer gets more room when they are settled. In rabbitmq-4.0: broken: on quorum queues the old deliveries count;
  on classic queues and streams the new consumer gets more room when they are settled. In rabbitmq-4.3: broken: on
  quorum queues the old deliveries count; on classic queues and streams the new consumer gets more room when they are
  settled. [RabbitMQ guide: consumer prefetch (a limit for each new consumer); v4.3.5 rabbit_fifo:merge_consumer]
* PRIORITY-001: Higher priority served first. A ready message goes to a consumer of the highest priority that has room;
  to those of a lower one only when all of a higher one are full. Without x-priority it is 0, and it may be negative.
  What settles for several consumers at once makes room for one after another, and may serve any of them in between.
  [rabbit_queue_consumers; RabbitMQ Java client test ConsumerPriorities]
* REPLY-004: Cancelling the consumer of replies. basic.cancel of the reply consumer is answered by cancel-ok; its
  address is gone, and what is published to it then reaches nobody. Another consumer of replies may follow on the
  channel, with an address of its own. [rabbit_channel:handle_method basic.cancel, clause of the reply consumer]
* QOS-008: Global qos <=4.2. qos(n, global=true) limits the sum of unacked over all consumers of the channel. [RabbitMQ
  guide: consumer prefetch; rabbit_limiter]
* QOS-016: The text's meaning of global. In the text qos(n,global=false) limits the sum of unacked over all consumers of
  the channel, those that were there before included, and qos(n,global=true) the sum over all consumers of the
  connection; independently of each other. [AMQP 0-9-1 basic.qos; RabbitMQ guide: consumer prefetch (the table of
  meanings)]
* QUORUM-006: consume/cancel are synchronous with the log. basic.consume and basic.cancel on a quorum queue run a raft
  command before the channel handles the next method: what follows on the channel, also when it was sent with it, finds
  the consumer counted, or no longer. [rabbit_fifo_client:checkout]
* QUORUM-008: No ready messages lost by cancel. What a cancelled consumer was handed stays unacknowledged with its
  channel. What was on its way to it is given back by the channel, which counts as basic.nack does (QUORUM-002).
  [rabbit_fifo:maybe_return_all; rabbit_fifo_client:handle_delivery of an unknown tag (issue 3729)]
* SAC-002: Failover on cancel. When the active consumer is cancelled, a waiting one becomes active and gets ready
  messages although the old one still holds unacknowledged ones; what that gives back goes to the new one. Classic
  queues choose by x-priority, then the oldest. In rabbitmq-3: quorum: the oldest, whatever its priority; broken on
  classic: ready messages stay, the next publish crashes the queue or overtakes them. In rabbitmq-4.0: quorum: by
  x-priority, then the one with the greatest limit, then the oldest. In rabbitmq-4.3: quorum: by x-priority, then the
  one with the greatest limit, then the oldest. [rabbit_queue_consumers / rabbit_fifo:activate_next_consumer]
* TIMEOUT-015: The client cancels what has timed out. basic.cancel for the tag of a consumer that was cancelled because
  its time was up gets cancel-ok, as for any that the broker has cancelled; the tag can be used again and returned
  messages are delivered again. [RabbitMQ guide: consumer cancel notification (not an error, answered as normal)]
* TIMEOUT-030: Tag reuse after a timeout. The server's basic.cancel is final: the client may consume again with the same
  tag, as after a queue deletion. A broker that announces accept_consumer_cancel_ok may refuse it (530) until the client
  has answered with basic.cancel-ok, or a short time has passed. In rabbitmq-4.3: broken up to 4.3.6: 530. [RabbitMQ
  guide: consumer cancel notification; release notes of RabbitMQ 4.3.7; rabbit_channel:cancel_consumer/3 removes the
  tag, handle_queue_actions released does not]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import CANCELLING, Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.effects import ConsumerOver, DeletionAnswered
from amqpspec.model.broker.owed import Expected
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.unseen import recall
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.permission import may_read

#: Requirements that end a consumer without its client's doing.
_ENDED_BY_BROKER = frozenset({"CANCEL-007", "CANCEL-018"})


def cancel(broker: Broker, channel: Channel, method: Method) -> None:
    """CANCEL-001, CANCEL-003, CANCEL-004: answered with cancel-ok, known tag or not, unless the client said nowait.
    Another consumer may be served at once (SAC-002, PRIORITY-001), though this one still holds deliveries; limits that
    are shared go on counting these (QOS-008, QOS-016).
    """
    tag = method.arguments.get("consumer_tag", "")
    consumer = channel.consumers.get(tag)
    lane = "channel"
    requirements: tuple[str, ...] = ("CANCEL-003",)
    if consumer is not None:
        requirements = ("CANCEL-001",)
        if not consumer.announced:
            requirements = ("CONSUME-005", "CANCEL-001")
        if _is_told(broker, channel):
            # the client has the capability, so it is told of each other end of a consumer
            requirements += ("CANCEL-002",)
        if consumer.timed_out:
            requirements = ("TIMEOUT-015", *requirements)
        if consumer.outstanding:
            broker.fired("CANCEL-016")
            if consumer.queue.type is QueueType.QUORUM:
                broker.fired("QUORUM-008")
        # a lane of its own (`Expected.lane`): its order towards the consume-ok is open (CONSUME-005)
        if consumer.queue.reply_address:
            requirements = ("REPLY-004",)
        else:
            lane = f"{CANCELLING}{consumer.queue.name}"
            broker.touch(channel, consumer.queue)
            if consumer.queue in broker.deliverable and broker.has_room(consumer):
                # what was sent to it before the cancel may be read after what another channel is sent later; without a
                # cancel-ok nothing marks the last one
                channel.may_still_be_served[tag] = consumer
        has_recalled = recall(broker, consumer)
        if has_recalled:
            # it may have come before cancel-ok just as well, where it is read after what others were handed later
            channel.may_still_be_served[tag] = consumer
        broker.remove_consumer(consumer, "CANCEL-001")
        if consumer.queue.type is QueueType.QUORUM and not has_recalled:
            # QUORUM-006: the queue knows of it before the client does
            consumer.queue.still_counted = max(consumer.queue.still_counted - 1, 0)
    elif channel.ended_consumers.get(tag) in _ENDED_BY_BROKER:
        requirements = ("CANCEL-004",) if _is_told(broker, channel) else ("CANCEL-010",)
        notice, later = _notice(channel, tag), _announced_later(channel, tag)
        if notice is not None:
            # basic.cancel is sent before cancel-ok
            lane = notice.lane
            requirements = (notice.crossing, *requirements) if notice.crossing else requirements
        elif later is not None and _is_told(broker, channel):
            requirements = (later[2], *requirements)
        # from now on it is the client that has ended it
        channel.ended_consumers[tag] = "CANCEL-001"
    effect = ConsumerOver(channel.key, tag) if tag in channel.may_still_be_served else None
    answer(broker, channel, method, "basic.cancel-ok", {"consumer_tag": tag}, *requirements, lane=lane, effect=effect)


def _is_told(broker: Broker, channel: Channel) -> bool:
    return broker.connections[channel.connection].is_told_of_cancels


def _notice(channel: Channel, tag: str) -> Expected | None:
    """The broker's basic.cancel that is still to come for the consumer; the latest, as the tag may be used again."""
    for owed in reversed(channel.owed):
        if isinstance(owed, Expected) and owed.method == "basic.cancel" and owed.arguments["consumer_tag"] == tag:
            return owed
    return None


def _announced_later(channel: Channel, tag: str) -> tuple[Expected, tuple[str, ...], str] | None:
    """The delete-ok after which the consumer's notice will be owed (CANCEL-011), who else is told, and crossing."""
    for owed in channel.owed:
        if isinstance(owed, Expected) and isinstance(owed.effect, DeletionAnswered) and tag in owed.effect.tags:
            return owed, tuple(other for other in owed.effect.tags if other != tag), owed.effect.crossing
    return None


def crossing_of(broker: Broker, method: Method) -> str:
    """The requirement of a basic.cancel of a consumer whose queue is gone, if the client has not been told yet."""
    channel = broker.open_channel(method)
    if channel is None or not _is_told(broker, channel):
        return ""
    tag = method.arguments.get("consumer_tag", "")
    if tag in channel.consumers:
        return ""
    notice, later = _notice(channel, tag), _announced_later(channel, tag)
    if notice is not None:
        return notice.crossing
    return later[2] if later is not None else ""


def crosses_notice(broker: Broker, method: Method) -> bool:
    """Is the client to be told of the end of the consumer that it cancels?"""
    return bool(crossing_of(broker, method))


def withdraw_notice(broker: Broker, method: Method) -> None:
    """The client's own cancel came to its channel before the news of the queue's end: it is not told of that."""
    channel = broker.channels[(method.connection, method.channel)]
    tag = method.arguments.get("consumer_tag", "")
    notice, later = _notice(channel, tag), _announced_later(channel, tag)
    if notice is not None:
        channel.owed = [owed for owed in channel.owed if owed is not notice]
    elif later is not None:
        reply, others, crossing = later
        told = DeletionAnswered(channel.key, others, crossing)
        channel.owed = [replace(reply, effect=told) if owed is reply else owed for owed in channel.owed]
    broker.settle_debts(channel)


def client_cancel_ok(broker: Broker, channel: Channel, method: Method) -> None:
    """CANCEL-009: from 4.3 it ends the consumer, if there is one (rabbit_channel:handle_method basic.cancel_ok). It may
    be ignored as well (`model.judging.alternatives_of_timeouts`).
    """
    if not broker.dialect.client_cancel_ok:
        raise ProtocolError("CANCEL-009", 503, "unimplemented method")
    broker.comes_under(channel, "CANCEL-009")
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    if consumer is not None:
        broker.touch(channel, consumer.queue)
        broker.remove_consumer(consumer, "CANCEL-009")
        if consumer.timed_out:
            channel.ended_consumers[consumer.tag] = "TIMEOUT-030"  # which it is the answer to


def recheck_consumers(broker: Broker, connection: Connection) -> None:
    """CANCEL-018: the client's credentials are new; what they do not allow to read is read no longer.

    rabbit_channel:recheck_consumers; consumers of direct replies are none of the channel's there.
    """
    for key, channel in broker.channels.items():
        if key[0] != connection.name or channel.state is not ChannelState.OPEN:
            continue
        for consumer in list(channel.consumers.values()):
            if not consumer.queue.reply_address and not may_read(broker, channel, consumer.queue.name):
                broker.touch(channel, consumer.queue)
                broker.remove_consumer(consumer, "CANCEL-018")
                broker.owe_notice(channel, consumer.tag, "CANCEL-018", "CANCEL-008")
