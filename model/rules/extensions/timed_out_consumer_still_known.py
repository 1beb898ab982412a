"""What a broker may still know of a consumer that it has cancelled because its time was up: from 4.3 on (area TIMEOUT).

Source: consumer cancel notification. The basic.cancel says that the consumer is gone, so nothing is left of it.
RabbitMQ 4.3.7 (its release notes, and consumer_timeout_SUITE) has it otherwise for a short time, and announces that
with the capability accept_consumer_cancel_ok (`model.broker.timed_out_consumers`): till the client has answered with
basic.cancel-ok, or that time is up, the consumer may still be counted, its tag may still be in use, and it may be
served again when everything that has timed out is settled (source: RabbitMQ guide, consumer timeouts, "recovery").
All of this is the broker's choice: no client can build on it.

The state keeps such a consumer (`Consumer.timed_out`) also of a broker that forgets it at once: it is handed nothing,
not counted, and its tag is free.

Requirements:

* TIMEOUT-030: Tag reuse after a timeout. The server's basic.cancel is final: the client may consume again with the same
  tag, as after a queue deletion. A broker that announces accept_consumer_cancel_ok may refuse it (530) until the client
  has answered with basic.cancel-ok, or a short time has passed. In rabbitmq-4.3: broken up to 4.3.6: 530. [RabbitMQ
  guide: consumer cancel notification; release notes of RabbitMQ 4.3.7; rabbit_channel:cancel_consumer/3 removes the
  tag, handle_queue_actions released does not]
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.internal_events import ConsumerClearing
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import tags_named


def settled_late(channel: Channel, method: Method) -> Iterator[tuple[Outcome, list[int]]]:
    """What has timed out and is settled by the input at once, and in what way."""
    if method.name == "tx.commit":
        for ruling, tags in channel.transaction.batches() if channel.transaction is not None else ():
            yield ruling.outcome, [tag for tag in tags if tag in channel.timed_out]
    elif method.name.startswith("basic.recover"):
        yield Outcome.REQUEUED, list(channel.timed_out)
    elif channel.transaction is None:
        refused = Outcome.REQUEUED if method.arguments.get("requeue") else Outcome.DISCARDED
        outcome = Outcome.ACKNOWLEDGED if method.name == "basic.ack" else refused
        yield outcome, [tag for tag in tags_named(channel, method) or () if tag in channel.timed_out]


def recovering(broker: Broker, method: Method) -> Iterator[tuple[Consumer, Outcome]]:
    """Consumers that have timed out, all of whose late deliveries the input settles; and how it settles the last."""
    channel = broker.open_channel(method)
    if channel is None or not channel.timed_out:
        return
    left = {
        consumer: {tag for tag, entry in channel.timed_out.items() if entry.consumer is consumer}
        for consumer in channel.consumers.values()
        if consumer.timed_out
    }
    for outcome, tags in settled_late(channel, method):
        for consumer, late in left.items():
            if late:
                late.difference_update(tags)
                if not late:
                    yield consumer, outcome


def resume(broker: Broker, consumer: Consumer) -> None:
    """The consumer is served again, as if it had not been cancelled."""
    consumer.timed_out = 0
    consumer.stamp = broker.stamp
    consumer.is_doubtful, consumer.overtaken_by = True, frozenset()
    broker.elect(consumer.queue, consumer.reason)
    broker.refresh(consumer.queue)


def resume_until_cleared(broker: Broker, consumer: Consumer) -> None:
    """It is served again till the broker has forgotten it, which may be at any moment."""
    resume(broker, consumer)
    consumer.may_be_cleared = True
    broker.internal_events.append(ConsumerClearing(consumer.channel, consumer.tag))


def _cleared(broker: Broker, event: ConsumerClearing) -> Consumer | None:
    channel = broker.channels.get(event.key)
    consumer = channel.consumers.get(event.tag) if channel is not None else None
    return consumer if consumer is not None and consumer.may_be_cleared else None


def can_be_cleared(broker: Broker, event: ConsumerClearing) -> bool:
    """Is the consumer still there?"""
    return _cleared(broker, event) is not None


def clear(broker: Broker, event: ConsumerClearing) -> None:
    """The broker forgets it: what it holds stays unacknowledged."""
    consumer = _cleared(broker, event)
    if consumer is not None:
        broker.touch(broker.channels[event.key], consumer.queue)
        broker.remove_consumer(consumer, "TIMEOUT-030")
