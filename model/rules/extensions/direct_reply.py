"""RabbitMQ's extension direct reply-to (area REPLY, PUBLISH-017): replies without a queue.

A client consumes from the pseudo-queue `amq.rabbitmq.reply-to`. In its requests the broker replaces that name, as
reply-to, by an address of the channel; what is published to the address through the default exchange goes straight to
the consumer. In the model the address is a queue that lives as long as its only consumer.

Requirements:

* CONSUME-002: Server-generated tag. Empty consumer tag yields amq.ctag-<22 chars>. In amqp-0-9-1: any tag that is
  unique. [rabbit_channel.erl; AMQP 0-9-1 basic.consume]
* CONSUME-003: Tag reuse on the same channel. Consuming with a tag in use on the channel is a HARD error 530; the same
  tag on another channel is fine; after cancel-ok it can be reused. [rabbit_channel.erl; AMQP 0-9-1 basic.consume]
* REPLY-001: A reply goes straight to the requester. On a channel that consumes from amq.rabbitmq.reply-to, the reply-to
  amq.rabbitmq.reply-to of a published message is replaced by an address of the channel, which begins with
  amq.rabbitmq.reply-to. and is the same in each of them. What anybody publishes with that address as routing key
  through the default exchange is delivered to that consumer, in the order of publishing, under the next delivery tag,
  with redelivered=false. [rabbit_channel:override_reply_to; rabbit_volatile_queue:deliver (up to 4.1
  rabbit_channel:deliver_reply)]
* REPLY-002: Declaring a reply address asks whether its consumer is there. queue.declare of amq.rabbitmq.reply-to,
  passive or not, is answered with 0 messages and 1 consumer. For any other name that begins so it is answered alike if
  it is the address of a live reply consumer, and is a soft 404 if not. In rabbitmq-4.3: as stated; broken for names
  that are no addresses: hard 541. [rabbit_channel:handle_method queue.declare; the guide on direct reply-to]
* REPLY-005: The tag of a reply consumer is taken. A basic.consume with the tag of the channel's reply consumer is
  refused with a hard 530, as for any other consumer's. In rabbitmq-3: broken: two consumers have one tag. In
  rabbitmq-4.0: broken: two consumers have one tag. In rabbitmq-4.3: broken: two consumers have one tag.
  [rabbit_channel:handle_method basic.consume; AMQP 0-9-1 basic.consume, consumer-tag]
* PUBLISH-017: Direct reply-to. Consuming amq.rabbitmq.reply-to requires no_ack=true; only one per channel; publishing
  with reply_to=amq.rabbitmq.reply-to without such a consumer is 406. [rabbit_channel.erl]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.effects import ConsumerAnnounced
from amqpspec.model.broker.queues import CHOSEN_TAG, UNKNOWN_TAG, Consumer, Queue
from amqpspec.model.broker.reply_addresses import ADDRESS, REPLY_TO
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.model.protocol.patterns import Generated
from amqpspec.model.rules.basic.consume import consume as consume_from_queue
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.lookup import queue_text, without_line_breaks
from amqpspec.model.rules.queue.queue import declare as declare_queue


def consume(broker: Broker, channel: Channel, method: Method) -> None:
    """Whoever names the pseudo-queue consumes replies."""
    if method.arguments.get("queue", "") == REPLY_TO and broker.dialect.has("direct_reply_to"):
        _consume_replies(broker, channel, method)
    else:
        consume_from_queue(broker, channel, method)


def _consume_replies(broker: Broker, channel: Channel, method: Method) -> None:
    """PUBLISH-017; rabbit_channel:handle_method basic.consume of the pseudo-queue, in the order of its checks."""
    tag = method.arguments.get("consumer_tag", "")
    if tag and tag in channel.consumers:
        requirement = "REPLY-005" if channel.consumers[tag].queue.reply_address else "CONSUME-003"
        raise ProtocolError(requirement, 530, f"attempt to reuse consumer tag '{tag}'")
    if not method.arguments.get("no_ack"):
        raise ProtocolError("PUBLISH-017", 406, "reply consumer cannot acknowledge")
    if reply_consumer(channel) is not None:
        raise ProtocolError("PUBLISH-017", 406, "reply consumer already set")
    broker.serial += 1
    generated = not tag
    if generated:
        tag = f"{UNKNOWN_TAG}{broker.serial}"
    address = Generated(ADDRESS, broker.serial).choose()
    broker.reply_addresses[address] = None
    queue = broker.queues[address] = Queue(address, auto_delete=True, reply_address=True)
    nowait = bool(method.arguments.get("nowait"))
    consumer = Consumer(
        tag, channel.key, queue, True, 0, created=broker.stamp, announced=nowait, reason="REPLY-001", stamp=broker.stamp
    )
    taken = tuple(channel.consumers)
    channel.consumers[tag] = consumer
    channel.ended_consumers.pop(tag, None)
    queue.consumers.append(consumer)
    answer(
        broker, channel, method, "basic.consume-ok",
        {"consumer_tag": Generated(CHOSEN_TAG, broker.serial, taken) if generated else tag},
        "CONSUME-002" if generated else "REPLY-001", effect=ConsumerAnnounced(consumer),
    )  # fmt: skip


def reply_consumer(channel: Channel) -> Consumer | None:
    """The channel's consumer of replies."""
    return next((consumer for consumer in channel.consumers.values() if consumer.queue.reply_address), None)


def with_address(broker: Broker, channel: Channel, content: Content) -> Content | None:
    """REPLY-001: the reply-to of a request becomes the channel's address (rabbit_channel:override_reply_to)."""
    if content.properties.get("reply_to") != REPLY_TO or not broker.dialect.has("direct_reply_to"):
        return None
    consumer = reply_consumer(channel)
    if consumer is None:
        raise ProtocolError("PUBLISH-017", 406, "fast reply consumer does not exist")
    return replace(content, properties={**content.properties, "reply_to": consumer.queue.name})


def declare(broker: Broker, channel: Channel, method: Method) -> None:
    """Whoever names the pseudo-queue or an address asks about replies."""
    name = without_line_breaks(method.arguments.get("queue", ""))
    if name.startswith(REPLY_TO) and broker.dialect.has("direct_reply_to"):
        _declare_address(broker, channel, name, method)
    else:
        declare_queue(broker, channel, method)


def _declare_address(broker: Broker, channel: Channel, name: str, method: Method) -> None:
    """REPLY-002: passive whatever the flag says; what there is has one consumer and never a message."""
    queue = broker.queues.get(name)
    if name != REPLY_TO and queue is None:
        raise ProtocolError("REPLY-002", 404, f"no {queue_text(broker, channel, name)}")
    channel.last_queue = name
    arguments = {"queue": name, "message_count": 0, "consumer_count": 1}
    answer(broker, channel, method, "queue.declare-ok", arguments, "REPLY-002")
