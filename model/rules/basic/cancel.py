"""Chapter basic, cancel (0-9-1 section 1.8.3.5), and the broker's (seed: consumer cancel notification; area CANCEL).

Consumers end with their queue in `Broker.delete_queue`.

Requirements:

* CANCEL-007: When a consumed queue is deleted (by any connection), every consumer on a capable connection gets
  basic.cancel(tag, nowait=true), once; nothing is delivered to it behind that. Consumers of other queues go on.
  [RabbitMQ guide: consumer cancel notification]
* CANCEL-018: After update-secret / credential refresh, consumers that lost read permission are cancelled by the server.
  What they hold stays unacknowledged. [rabbit_channel.erl:recheck_consumers; rabbit_access_control.erl:update_state
  (the internal backend keeps any secret)]
* CANCEL-003: Answered with cancel-ok (echoing the tag), no error; with nowait nothing. [rabbit_channel.erl "Spec
  requires we ignore this situation"; AMQP 0-9-1 basic.cancel]
* CANCEL-001: basic.cancel is answered by cancel-ok; after cancel-ok no basic.deliver with that tag is sent. [RabbitMQ
  guide: consumer cancel notification; rabbit_channel.erl:cancel_consumer comment; AMQP 0-9-1 basic.cancel]
* CONSUME-005: basic.cancel sent before consume-ok arrived: each request deserves its reply; their order is open.
  [rabbit_channel:handle_cast {command,consume_ok}]
* CANCEL-002: A client-initiated cancel never causes a server-sent basic.cancel. [RabbitMQ guide: consumer cancel
  notification]
* TIMEOUT-015: Sending basic.cancel for the timed-out tag gets cancel-ok and removes the consumer; the tag can be reused
  and returned messages are delivered again. [observed]
* CANCEL-016: After cancel-ok, unacked messages are neither requeued nor lost until acked, nacked or channel close.
  [RabbitMQ Java client test NoRequeueOnCancel; AMQP 0-9-1 basic.cancel]
* QUORUM-008: What a cancelled consumer was handed stays unacknowledged with its channel. What was on its way to it is
  given back by the channel, which counts as basic.nack does (QUORUM-002). [rabbit_fifo:maybe_return_all;
  rabbit_fifo_client:handle_delivery of an unknown tag (issue 3729)]
* REPLY-004: basic.cancel of the reply consumer is answered by cancel-ok; its address is gone, and what is published to
  it then reaches nobody. Another consumer of replies may follow on the channel, with an address of its own.
  [rabbit_channel:handle_method basic.cancel, clause of the reply consumer]
* CANCEL-004: Cancelling a consumer the server already cancelled (queue deleted) is answered with cancel-ok. [RabbitMQ
  guide: consumer cancel notification]
* CANCEL-010: Nothing is sent when the queue is deleted; the consumer is silently gone; a later cancel of its tag gets
  cancel-ok. [RabbitMQ guide: consumer cancel notification]
* CANCEL-009: A client that answers a server-sent basic.cancel with basic.cancel-ok: an unhandled method (503) up to
  4.2; accepted from 4.3, whether the consumer lives still or not. [rabbit_channel.erl:basic.cancel_ok]
* CANCEL-008: Server-sent basic.cancel always has nowait=true: the client must not answer.
  [rabbit_channel.erl:cancel_consumer]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import CANCELLING, Broker
from amqpspec.model.broker.effects import ConsumerOver, DeletionAnswered
from amqpspec.model.broker.state import Channel, ChannelState, Connection, Expected
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.answer import answer
from amqpspec.model.rules.permission import may_read
from amqpspec.model.rules.unseen import recall

#: Requirements that end a consumer without its client's doing.
_ENDED_BY_BROKER = frozenset({"CANCEL-007", "CANCEL-018"})


def cancel(broker: Broker, channel: Channel, frame: Frame) -> None:
    """CANCEL-001, CANCEL-003, CANCEL-004: always answered, known tag or not."""
    tag = frame.arguments.get("consumer_tag", "")
    consumer = channel.consumers.get(tag)
    for told in broker.hooks.cancel_asked:
        told(broker, channel, tag)
    lane = "channel"
    requirements: tuple[str, ...] = ("CANCEL-003",)
    if consumer is not None:
        requirements = ("CANCEL-001",)
        if not consumer.announced:
            requirements = ("CONSUME-005", "CANCEL-001")
        if _is_told(broker, channel):
            # it would be told of any other end of its consumer
            requirements += ("CANCEL-002",)
        if consumer.timed_out:
            requirements = ("TIMEOUT-015", *requirements)
        if consumer.outstanding:
            broker.fired("CANCEL-016")
            if consumer.queue.type is QueueType.QUORUM:
                broker.fired("QUORUM-008")
        # a lane of its own: its order towards the consume-ok is open (CONSUME-005)
        if consumer.queue.reply_address:
            requirements = ("REPLY-004",)
        else:
            lane = f"{CANCELLING}{consumer.queue.name}"
            broker.touch(channel, consumer.queue)
            if frame.arguments.get("nowait") and consumer.queue in broker.deliverable and broker.has_room(consumer):
                # no cancel-ok says where what the queue has handed over ends
                channel.leaving[tag] = consumer
        has_recalled = recall(broker, consumer)
        if has_recalled:
            # it may have come before cancel-ok just as well, where it is read behind what others were handed later
            channel.leaving[tag] = consumer
        broker.remove_consumer(consumer, "CANCEL-001")
        if consumer.queue.type is QueueType.QUORUM and not has_recalled:
            # QUORUM-006: the queue knows of it before the client does
            consumer.queue.leaving = max(consumer.queue.leaving - 1, 0)
    elif channel.ended_consumers.get(tag) in _ENDED_BY_BROKER:
        requirements = ("CANCEL-004",) if _is_told(broker, channel) else ("CANCEL-010",)
        notice, later = _notice(channel, tag), _announced_later(channel, tag)
        if notice is not None:
            # it is told before it is answered
            lane = notice.lane
            requirements = (notice.crossing, *requirements) if notice.crossing else requirements
        elif later is not None and _is_told(broker, channel):
            requirements = (later[2], *requirements)
        # from now on it is the client that has ended it
        channel.ended_consumers[tag] = "CANCEL-001"
    effect = ConsumerOver(channel.key, tag) if tag in channel.leaving else None
    answer(broker, channel, frame, "basic.cancel-ok", {"consumer_tag": tag}, *requirements, lane=lane, effect=effect)


def _is_told(broker: Broker, channel: Channel) -> bool:
    return broker.connections[channel.connection].is_told_of_cancels


def _notice(channel: Channel, tag: str) -> Expected | None:
    """The broker's basic.cancel that is still to come for the consumer; the latest, as the tag may be used again."""
    for owed in reversed(channel.owed):
        if isinstance(owed, Expected) and owed.method == "basic.cancel" and owed.arguments["consumer_tag"] == tag:
            return owed
    return None


def _announced_later(channel: Channel, tag: str) -> tuple[Expected, tuple[str, ...], str] | None:
    """The delete-ok behind which the consumer's notice will be owed (CANCEL-011), who else is told, and crossing."""
    for owed in channel.owed:
        if isinstance(owed, Expected) and isinstance(owed.effect, DeletionAnswered) and tag in owed.effect.tags:
            return owed, tuple(other for other in owed.effect.tags if other != tag), owed.effect.crossing
    return None


def crossing_of(broker: Broker, frame: Frame) -> str:
    """The requirement of a basic.cancel of a consumer whose queue is gone, if the client has not been told yet."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN or not _is_told(broker, channel):
        return ""
    tag = frame.arguments.get("consumer_tag", "")
    if tag in channel.consumers:
        return ""
    notice, later = _notice(channel, tag), _announced_later(channel, tag)
    if notice is not None:
        return notice.crossing
    return later[2] if later is not None else ""


def crosses_notice(broker: Broker, frame: Frame) -> bool:
    """Is the client to be told of the end of the consumer that it cancels?"""
    return bool(crossing_of(broker, frame))


def withdraw_notice(broker: Broker, frame: Frame) -> None:
    """The client's own cancel came to its channel before the news of the queue's end: it is not told of that."""
    channel = broker.channels[(frame.connection, frame.channel)]
    tag = frame.arguments.get("consumer_tag", "")
    notice, later = _notice(channel, tag), _announced_later(channel, tag)
    if notice is not None:
        channel.owed = [owed for owed in channel.owed if owed is not notice]
    elif later is not None:
        reply, others, crossing = later
        told = DeletionAnswered(channel.key, others, crossing)
        channel.owed = [replace(reply, effect=told) if owed is reply else owed for owed in channel.owed]
    broker.settle_debts(channel)


def client_cancel_ok(broker: Broker, channel: Channel, frame: Frame) -> None:
    """CANCEL-009: from 4.3 it ends the consumer, if there is one (rabbit_channel:handle_method basic.cancel_ok)."""
    if not broker.dialect.client_cancel_ok:
        raise ProtocolError("CANCEL-009", 503, "unimplemented method")
    broker.fired("CANCEL-009")
    broker.blame(channel, "CANCEL-009")
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", ""))
    if consumer is not None:
        broker.touch(channel, consumer.queue)
        broker.remove_consumer(consumer, "CANCEL-009")


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
