"""Deliveries that are not settled in time close their channel: up to 4.2 (area TIMEOUT).

Source: RabbitMQ guide, consumer timeouts, "changes from 4.2". RabbitMQ: rabbit_channel:evaluate_consumer_timeout looks
at the oldest delivery that waits for its settlement, with every tick of the channel.

Requirements:

* TIMEOUT-001: <=4.2: channel closed with 406. When the OLDEST unacked delivery of a channel is older than the timeout,
  the channel is closed with 406, whatever the capabilities and the queue type (classic, quorum, stream, basic.get).
  [RabbitMQ guide: consumer timeouts (the channel is closed whatever the capabilities); rabbit_channel
  v4.0.5:evaluate_consumer_timeout (the oldest one, whatever the queue type)]
* TIMEOUT-002: <=4.2: evaluated only on the channel tick. The check runs every channel_tick_interval (60 s default,
  first tick about 60 s after the channel was created), so the close comes between timeout and timeout+tick. Tests need
  `application:set_env(rabbit,channel_tick_interval,1000)` before opening the channel. [rabbit_channel
  v4.0.5:handle_info(tick)]
* TIMEOUT-003: <=4.2: only the head of the unacked list counts. Only the oldest outstanding tag is examined; acking it
  resets the clock to the next oldest. All consumers of the channel die together. [rabbit_channel
  v4.0.5:evaluate_consumer_timeout]
* TIMEOUT-004: <=4.2: requeue and redelivery. On the close all unacked messages of the channel are requeued; a live
  consumer on another channel gets them redelivered=true, possibly BEFORE it sees the close on the first channel.
  [rabbit_channel.erl]
* TIMEOUT-005: Queue argument before 4.3. x-consumer-timeout as queue argument (and policy consumer-timeout) is honoured
  from 3.12 on for classic and quorum; 3.10 ignores it. In rabbitmq-3: ignored. In rabbitmq-4.0: honoured, min(arg,
  policy), then global. [rabbit_channel v4.0.5:get_queue_consumer_timeout]
* TIMEOUT-032: Stream default on <=4.2. Stream consumers with unacked deliveries are closed by the channel timeout too.
  [rabbit_channel v4.0.5]
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.delivery_timeouts import of_queue_and_policy
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.rules.basic.requeue import was_dropped_at_limit
from amqpspec.model.rules.extensions.timeout_cancels_consumer import close_for


def oldest(channel: Channel) -> tuple[int, Unacknowledged] | None:
    """The oldest delivery that waits for its settlement: the only one that is looked at (TIMEOUT-003)."""
    return next(iter(channel.unsettled.items()), None)


def close_channel(broker: Broker, channel: Channel) -> None:
    """TIMEOUT-001: the channel closes, and what it holds goes back to the queues (TIMEOUT-004)."""
    found = oldest(channel)
    assert found is not None
    tag, entry = found
    requirements = [*_special(broker, channel, entry), "TIMEOUT-001", "TIMEOUT-002"]
    if tag > 1 and channel.over:
        requirements.append("TIMEOUT-003")
    returning = [each for each in channel.unacknowledged.values() if each.queue.type is not QueueType.STREAM]
    if returning:
        requirements.append("TIMEOUT-004")
    with broker.bookkeeping.counting_anyway():
        close_for(broker, channel, entry, *dict.fromkeys(requirements))
    for each in returning:
        if not each.queue.deleted and not was_dropped_at_limit(each.message):
            each.message.reason = each.queue.reason = "TIMEOUT-004"


def _special(broker: Broker, channel: Channel, entry: Unacknowledged) -> Iterator[str]:
    """What the usual close of a channel would not show, and this one does."""
    assert entry.deadline is not None
    if entry.queue.type is QueueType.STREAM:
        yield "TIMEOUT-032"
    ways = broker.dialect.consumer_timeouts
    if ways is ConsumerTimeouts.OF_CHANNELS_BY_QUEUE and of_queue_and_policy(broker, entry.queue) is not None:
        yield "TIMEOUT-005"
    deadlines = (each.deadline for each in channel.unsettled.values())
    if any(each is not None and each.since > entry.deadline.by for each in deadlines):
        yield "TIMEOUT-003"
    if channel.tick > entry.deadline.seconds:
        yield "TIMEOUT-002"
