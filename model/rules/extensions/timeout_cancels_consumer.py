"""Deliveries to quorum queues' consumers that are not settled in time: from 4.3 on (area TIMEOUT).

Source: RabbitMQ guide, consumer timeouts. The message goes back to its queue. The consumer is gone, and the client is
told so by basic.cancel; a client that does not understand that has its channel closed. RabbitMQ: rabbit_fifo:apply
{timeout, evaluate_consumer_timeout}; rabbit_channel:handle_queue_actions released.

When the time of a delivery is up is known as a span (`model.broker.deadlines`). Within it the acceptor tries at every
point whether it has timed out already: an internal event, `DeliveryTimeout`. A consumer's deliveries time out in
their order, so one of these is open for each consumer, and the next comes with it.

Requirements:

* CANCEL-008: nowait is true. Server-sent basic.cancel always has nowait=true: the client must not answer.
  [rabbit_channel.erl:cancel_consumer]
* TIMEOUT-001: <=4.2: channel closed with 406. When the OLDEST unacked delivery of a channel is older than the timeout,
  the channel is closed with 406, whatever the capabilities and the queue type (classic, quorum, stream, basic.get).
  [RabbitMQ guide: consumer timeouts (the channel is closed whatever the capabilities); rabbit_channel
  v4.0.5:evaluate_consumer_timeout (the oldest one, whatever the queue type)]
* TIMEOUT-008: basic.cancel on timeout, once. With consumer_cancel_notify the server sends basic.cancel(tag,
  nowait=true) at (delivery time + timeout), within about 10 ms on an idle broker; the channel and its other consumers
  live on. It is told once: when another delivery of the consumer times out, or its queue is deleted, nothing more is
  said of it. A broker that announces accept_consumer_cancel_ok has a setting by which it closes the channel instead
  (consumer_timeout_response). In rabbitmq-4.3: broken up to 4.3.6: told again. [RabbitMQ guide: consumer timeouts;
  RabbitMQ guide: consumer cancel notification (the consumer is gone, of which the client is told); release notes of
  RabbitMQ 4.3.7 (the setting); rabbit_channel.erl:handle_queue_actions released]
* TIMEOUT-009: Without the capability: channel close. Channel is closed with 406; the text names the timeout value used.
  In rabbitmq-4.3: broken: the text names -1 ms. [RabbitMQ guide: consumer timeouts (the channel is closed);
  rabbit_channel.erl:handle_consumer_timed_out(-1,..) (406, the text)]
* TIMEOUT-010: basic.get and the timeout. An unacknowledged message of basic.get times out as well. There is no consumer
  to cancel: the channel is closed with 406, with the capability as without. In rabbitmq-4.3: broken: the text names -1
  ms. [rabbit test suite consumer_timeout_SUITE:consumer_timeout_basic_get]
* TIMEOUT-011: Timeout of what a consumer that is gone has left. A consumer is gone, cancelled by its client or by the
  broker because its time was up, and the client still holds unacknowledged messages of it; their time passes. They go
  back to their queue, and a client with the capability keeps its channel and is told nothing. In rabbitmq-4.3: broken:
  the channel is closed. [RabbitMQ guide: consumer timeouts (with the capability the channel remains open); RabbitMQ
  guide: consumer cancel notification; rabbitmq-server discussion 18207; rabbit_channel.erl: is_map_key(CTag,
  consumer_mapping)]
* TIMEOUT-012: Messages are returned. Timed-out messages become ready at once: passive declare counts them, another
  consumer gets them with redelivered=true. [RabbitMQ guide: consumer timeouts (ready, for any consumer); AMQP 0-9-1
  basic.deliver (redelivered)]
* TIMEOUT-013: Return does not count as a delivery failure. A timed-out message gets x-acquired-count +1 but no
  x-delivery-count, so timeouts alone never hit the delivery limit. [rabbit_fifo return_multiple delivery_failed=false]
* TIMEOUT-014: A timed-out consumer is gone. The basic.cancel that tells of a timeout says that the consumer is gone: it
  is handed nothing, and not before everything that has timed out is settled in any case; it is not counted, and
  excludes nobody. A broker that announces accept_consumer_cancel_ok may still know it until the client answers with
  basic.cancel-ok, and for a short time without that (TIMEOUT-016, TIMEOUT-030). In rabbitmq-4.3: broken up to 4.3.6:
  counted. [RabbitMQ guide: consumer cancel notification (the consumption has stopped); RabbitMQ guide: consumer
  timeouts (no new messages, and none before all timed-out ones are settled); release notes of RabbitMQ 4.3.7]
* TIMEOUT-020: Partial timeout. Only deliveries past their own deadline return; younger ones stay with the client,
  though their consumer is gone, and time out at their own deadlines. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-021: Every deadline is kept. Each unsettled delivery of a queue times out at its own deadline, also when it is
  not the first of that queue and the queue is otherwise idle. In rabbitmq-4.3: broken: now and then the next deadline
  is forgotten. [rabbit_fifo:handle_aux eval (LastConTimeout0 < Ts), maybe_add_consumer_timeout_effect]
* TIMEOUT-022: Other consumers of the channel unaffected. Two consumers on one channel with different timeouts: only the
  expired one is cancelled. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-027: Consumer argument 0. x-consumer-timeout=0 is accepted by consume, and means no time at all: every
  delivery times out at once. [rabbit_queue_type:get_consumer_timeout]
* TIMEOUT-028: Values are fixed at consume time. Changing the global value or a policy does not affect consumers that
  already exist. [rabbit_quorum_queue:consume Spec timeout]
* TIMEOUT-029: Single active consumer. Timeout of the active consumer activates the next waiting one, which gets the
  returned message. [RabbitMQ guide: consumers, single active consumer (another one is active when the active one is
  cancelled or dies); rabbit_fifo apply timeout, evaluate_consumer_timeout]
* TIMEOUT-030: Tag reuse after a timeout. The server's basic.cancel is final: the client may consume again with the same
  tag, as after a queue deletion. A broker that announces accept_consumer_cancel_ok may refuse it (530) until the client
  has answered with basic.cancel-ok, or a short time has passed. In rabbitmq-4.3: broken up to 4.3.6: 530. [RabbitMQ
  guide: consumer cancel notification; release notes of RabbitMQ 4.3.7; rabbit_channel:cancel_consumer/3 removes the
  tag, handle_queue_actions released does not]
* TIMEOUT-031: Timeouts on 4.3 need no tick. The deadline is a raft timer in the queue leader, evaluated exactly at
  delivery time + timeout (first deadline of a queue: within 20 ms in all runs), not on a channel tick.
  [rabbit_fifo:maybe_add_consumer_timeout_effect]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Lost, TimedOut, Unacknowledged
from amqpspec.model.broker.delivery_timeouts import (
    OF_CONSUMER,
    OF_QUEUE,
    OF_SERVER,
    due_with_tick,
    of_queue_and_policy,
    time_of,
)
from amqpspec.model.broker.measurement import Due
from amqpspec.model.broker.nodes_shown import TIMED_ANEW
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.rules.basic.requeue import delivery_limit, give_back
from amqpspec.model.rules.connection.closing import fail

#: How often something may have been handed to a channel and timed out there, after the close that nobody has answered.
_MOST_BEHIND_CLOSE = 2


def begin(broker: Broker, channel: Channel, consumer: Consumer) -> None:
    """The consumer has been made: later settings and policies are none of its business (TIMEOUT-028)."""
    ways = broker.dialect.consumer_timeouts
    if ways is ConsumerTimeouts.OF_QUORUM_QUEUES and consumer.queue.type is QueueType.QUORUM:
        consumer.timeout, consumer.timeout_from = time_of(broker, consumer.queue, consumer.arguments)


def time_out(broker: Broker, channel: Channel, tag: int, together: Sequence[int] = ()) -> None:
    """The time of that delivery is up. `together`: that of others as well, before the client is told of it."""
    entry, is_first, is_served = _release(broker, channel, tag)
    queues = [entry.queue, *(_release(broker, channel, other)[0].queue for other in together)]
    with broker.bookkeeping.counting_anyway():
        _tell(broker, channel, entry, is_first=is_first, is_served=is_served)
    for queue in queues:
        queue.timeouts += 1


def is_told_by_close(broker: Broker, channel: Channel, entry: Unacknowledged) -> bool:
    """Is the client told by the close of its channel when that delivery times out?"""
    return entry.consumer is None or not is_told(broker, channel)


def _release(broker: Broker, channel: Channel, tag: int) -> tuple[Unacknowledged, bool, bool]:
    """The message goes back. Was it the first of its consumer to time out, and was that one served till then?"""
    entry = channel.unacknowledged.pop(tag)
    queue, consumer = entry.queue, entry.consumer
    is_first = consumer is None or not consumer.timed_out
    is_served = consumer is not None and channel.consumers.get(consumer.tag) is consumer
    channel.timed_out[tag] = TimedOut(queue, consumer, entry.message)
    broker.touch(channel, queue, keeps_state=False)
    broker.used(queue)
    if consumer is not None:
        consumer.outstanding -= 1
        consumer.stamp = broker.stamp
        consumer.is_doubtful, consumer.overtaken_by = True, frozenset()
    if consumer is not None and is_served:
        consumer.timed_out += 1
        consumer.may_be_cleared = False
        if is_first:
            consumer.cancelled_at = max(broker.latest, broker.looked_ahead_until)
        consumer.reason = "TIMEOUT-014"
        broker.elect(queue, "TIMEOUT-029")
    with broker.bookkeeping.counting_anyway():
        if not is_first:
            broker.fired("TIMEOUT-020")
        requirement = _returned_by(broker, channel, entry, is_first=is_first)
        give_back(broker, queue, [entry.message], requirement, failed=False, holder=channel.key)
    if consumer is not None:
        # those of several consumers come back in any order
        entry.message.via = (f"{channel.connection}.{channel.number} {consumer.tag}", 0)
    return entry, is_first, is_served


def _returned_by(broker: Broker, channel: Channel, entry: Unacknowledged, *, is_first: bool) -> str:
    """The requirement by which this message, and no other one, is ready again."""
    limit = delivery_limit(broker, entry.queue)
    if limit is not None and entry.message.delivery_count >= limit:
        return "TIMEOUT-013"
    return "TIMEOUT-020" if not is_first or _holds_younger(channel, entry) else "TIMEOUT-012"


def _holds_younger(channel: Channel, entry: Unacknowledged) -> bool:
    """Does its consumer hold another delivery, which was certainly made later?"""
    if entry.consumer is None or entry.deadline is None:
        return False
    others = (each for each in channel.unacknowledged.values() if each.consumer is entry.consumer)
    return any(each.deadline is not None and each.deadline.since > entry.deadline.by for each in others)


def _tell(broker: Broker, channel: Channel, entry: Unacknowledged, *, is_first: bool, is_served: bool) -> None:
    """What the client is told of it."""
    consumer = entry.consumer
    if consumer is None:
        close_for(broker, channel, entry, "TIMEOUT-010")
    elif not is_told(broker, channel):
        close_for(broker, channel, entry, "TIMEOUT-009")
    elif not is_served:
        broker.fired("TIMEOUT-011")
    elif is_first:
        _notify(broker, channel, entry, consumer)
    else:
        # it has been told that the consumer is gone
        broker.fired("TIMEOUT-011")


def _notify(broker: Broker, channel: Channel, entry: Unacknowledged, consumer: Consumer) -> None:
    requirements = [*contested(broker, consumer), "TIMEOUT-008", "TIMEOUT-031", consumer.timeout_from]
    if entry.queue.timeouts:
        requirements.insert(0, "TIMEOUT-021")
    if consumer.timeout == 0:
        requirements.insert(0, "TIMEOUT-027")
    if len(channel.consumers) > 1:
        requirements.append("TIMEOUT-022")
    if entry.queue.led_anew_at > consumer.created:
        requirements.append(TIMED_ANEW)
    broker.owe(
        channel, "basic.cancel", {"consumer_tag": consumer.tag, "nowait": True}, *dict.fromkeys(requirements),
        blame={"nowait": "CANCEL-008"}, lane=f"timeout of {consumer.tag}",
        due=Due("TIMEOUT-031", entry.deadline) if entry.deadline is not None else None,
    )  # fmt: skip


def contested(broker: Broker, consumer: Consumer) -> list[str]:
    """The requirement by which the consumer's time is what it is, where something else could have said so as well."""
    queue = consumer.queue
    if not consumer.timeout_from:
        return []  # it is not its time that counts
    if time_of(broker, queue, consumer.arguments)[0] != consumer.timeout:
        return ["TIMEOUT-028"]
    if consumer.timeout_from == OF_SERVER:
        return [OF_SERVER]  # nobody waits for as long as it says by itself
    is_contested = consumer.timeout_from == OF_CONSUMER and of_queue_and_policy(broker, queue) is not None
    if consumer.timeout_from == OF_QUEUE:
        is_contested = any(policy.queue == queue.name for policy in broker.policies.values())
    return [consumer.timeout_from] if is_contested else []


def close_for(broker: Broker, channel: Channel, entry: Unacknowledged, *requirements: str) -> None:
    """The channel is closed because of the delivery, with a text that names the time which was up."""
    assert entry.deadline is not None
    milliseconds = round(entry.deadline.seconds * 1000)
    close_saying(broker, channel, requirements[0], milliseconds)
    close = channel.owed[-1]
    assert isinstance(close, Expected)
    is_known = broker.dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES
    due = Due("TIMEOUT-031", entry.deadline) if is_known else due_with_tick(channel, entry.deadline)
    channel.owed[-1] = replace(
        close,
        requirements=tuple(dict.fromkeys((*requirements, *close.requirements))),
        blame={**close.blame, "reply_text": "TIMEOUT-009" if is_known else "TIMEOUT-001"},
        due=due,
    )


def close_saying(broker: Broker, channel: Channel, requirement: str, milliseconds: int) -> None:
    """Close the channel, with a text that names this time. As long as the client has not answered, what times out there
    may be handed to another consumer on it.
    """
    error = ProtocolError(requirement, 406, close_text(channel.number, milliseconds))
    held = [entry for entry in channel.unacknowledged.values() if entry.deadline is not None]
    consumers = list(channel.consumers.values())
    fail(broker, channel, None, error)
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return
    for entry in held:
        takers = [each for each in consumers if each.queue is entry.queue and each is not entry.consumer]
        if not takers or entry.message not in entry.queue.messages:
            continue
        # it has come back, and has not failed
        failures = max(entry.message.failures - 1, 0)
        as_it_was = replace(entry.message, delivery_count=entry.message.delivery_count - 1, failures=failures)
        channel.lost += (Lost(taker, entry.message, replace(as_it_was)) for taker in takers)
        entry.message.recalled += 1
    for lost in channel.lost:
        lost.as_it_was.recalled += _MOST_BEHIND_CLOSE


def close_text(channel: int, milliseconds: int) -> str:
    return (
        f"delivery acknowledgement on channel {channel} timed out. Timeout value used: {milliseconds} ms."
        " This timeout value can be configured, see consumers doc guide to learn more"
    )


def is_told(broker: Broker, channel: Channel) -> bool:
    """Is the client told of consumers that the broker cancels?"""
    return broker.connections[channel.connection].is_told_of_cancels


def end_timed_out(broker: Broker, channel: Channel, consumer: Consumer) -> None:
    """TIMEOUT-030: a client that was told that the consumer is cancelled may use its tag for another one."""
    if not consumer.timed_out or not is_told(broker, channel):
        return
    broker.fired("TIMEOUT-030")
    consumer.timed_out = 0
    broker.remove_consumer(consumer, "TIMEOUT-030")
