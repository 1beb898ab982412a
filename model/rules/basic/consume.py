"""Chapter basic, consume (0-9-1 section 1.8.3.3; area CONSUME).

Requirements:

* CANCEL-007: Server cancel on queue deletion. When a consumed queue is deleted (by any connection), every consumer on a
  capable connection gets basic.cancel(tag, nowait=true), once; nothing is delivered to it after that. Consumers of
  other queues go on. [RabbitMQ guide: consumer cancel notification]
* CANCEL-013: Tag free after server cancel. After a server cancel due to deletion the tag can be reused on the channel
  at once. [rabbit_channel.erl:cancel_consumer maps:remove]
* CONSUME-001: consume-ok precedes deliveries. consume-ok for a tag is sent before the first basic.deliver with that tag
  (unless nowait, then no consume-ok). [rabbit_channel.erl:basic_consume]
* CONSUME-002: Server-generated tag. Empty consumer tag yields amq.ctag-<22 chars>. In amqp-0-9-1: any tag that is
  unique. [rabbit_channel.erl; AMQP 0-9-1 basic.consume]
* CONSUME-003: Tag reuse on the same channel. Consuming with a tag in use on the channel is a HARD error 530; the same
  tag on another channel is fine; after cancel-ok it can be reused. [rabbit_channel.erl; AMQP 0-9-1 basic.consume]
* CONSUME-006: Missing queue. Consuming from a queue that does not exist is a soft 404. In rabbitmq-3: broken: 541 where
  it crosses the deletion of a quorum queue. In rabbitmq-4.0: broken: 541 where it crosses the deletion of a quorum
  queue. In rabbitmq-4.3: broken: 541 where it crosses the deletion of a quorum queue. [rabbit_channel.erl; AMQP 0-9-1
  basic.consume]
* CONSUME-007: Exclusive consumer, classic. exclusive=true with any other consumer, or any consume while an exclusive
  consumer exists, is 403. [rabbit_amqqueue_process:check_exclusive_access; AMQP 0-9-1 basic.consume]
* CONSUME-008: Exclusive consumer, quorum and stream. An exclusive consumer is the only one: a consume with
  exclusive=true beside another consumer, or any consume beside an exclusive one, is refused. On a queue with
  x-single-active-consumer the flag is ignored. In rabbitmq-3: broken: ignored, consume-ok for every consumer. In
  rabbitmq-4.0: broken: ignored, consume-ok for every consumer. In rabbitmq-4.3: broken: ignored, consume-ok for every
  consumer. [rabbit_quorum_queue:consume; AMQP 0-9-1 basic.consume]
* CONSUME-009: Exclusive consume on a classic SAC queue. exclusive=true on a queue with x-single-active-consumer is 403.
  [rabbit_amqqueue_process]
* CONSUME-010: no_local ignored. no_local=true has no effect. [rabbit_channel.erl]
* CONSUME-016: A tag that is used again is a new consumer. After a consumer was cancelled its tag is free (CONSUME-003).
  A consumer made with it is a new one: its prefetch limit counts its own deliveries, not those that the old one left
  unacknowledged. In rabbitmq-3: broken: on quorum queues the old deliveries count; on classic queues and streams the
  new consumer gets more room when they are settled. In rabbitmq-4.0: broken: on quorum queues the old deliveries count;
  on classic queues and streams the new consumer gets more room when they are settled. In rabbitmq-4.3: broken: on
  quorum queues the old deliveries count; on classic queues and streams the new consumer gets more room when they are
  settled. [RabbitMQ guide: consumer prefetch (a limit for each new consumer); v4.3.5 rabbit_fifo:merge_consumer]
* REPLY-005: The tag of a reply consumer is taken. A basic.consume with the tag of the channel's reply consumer is
  refused with a hard 530, as for any other consumer's. In rabbitmq-3: broken: two consumers have one tag. In
  rabbitmq-4.0: broken: two consumers have one tag. In rabbitmq-4.3: broken: two consumers have one tag.
  [rabbit_channel:handle_method basic.consume; AMQP 0-9-1 basic.consume, consumer-tag]
* QOS-012: Quorum queue or stream with global qos. consume on a quorum queue or a stream while a channel limit is active
  is hard 540 (<=4.2). In rabbitmq-3: 540. In rabbitmq-4.0: 540. [rabbit_quorum_queue:consume,
  rabbit_stream_queue:consume, limiter_active]
* SAC-001: Only one consumer active. With x-single-active-consumer=true one consumer at a time gets deliveries: the
  first registered one, until another follows it. [rabbit test suite single_active_consumer_SUITE]
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

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.effects import ConsumerAnnounced
from amqpspec.model.broker.limits import has_channel_limit
from amqpspec.model.broker.queues import CHOSEN_TAG, UNKNOWN_TAG, Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.model.protocol.patterns import Generated
from amqpspec.model.rules.basic.requeue import known_since
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.lookup import find_queue, queue_text, shortcut
from amqpspec.model.rules.common.permission import check_read
from amqpspec.model.rules.common.steps import Step

#: The argument of the extension consumer_priorities: where there is none, it says nothing that anybody promised.
PRIORITY = "x-priority"

#: The tag of that consumer is wanted for another one: an extension may end it.
used_again: Step[Broker, Channel, Consumer] = Step()
#: A consumer of the queue is asked for, with acknowledgements or without (True), with these arguments.
asked_for: Step[Broker, Channel, Queue, bool, Table] = Step()
#: The consumer has been made, and neither its queue nor its channel knows of it.
made: Step[Broker, Channel, Consumer] = Step()


def consume(broker: Broker, channel: Channel, method: Method) -> None:
    """rabbit_channel:handle_method basic.consume. The tag is checked before the queue is looked for."""
    arguments = method.arguments
    name = shortcut(broker, channel, arguments.get("queue", ""))
    tag = arguments.get("consumer_tag", "")
    former = channel.consumers.get(tag)
    if former is not None:
        used_again(broker, channel, former)
    if tag in channel.consumers:
        requirement = "REPLY-005" if channel.consumers[tag].queue.reply_address else "CONSUME-003"
        raise ProtocolError(requirement, 530, f"attempt to reuse consumer tag '{tag}'")
    check_read(broker, channel, name, "queue")
    queue = find_queue(broker, channel, name, "CONSUME-006")
    no_ack = bool(arguments.get("no_ack"))
    exclusive = bool(arguments.get("exclusive"))
    table: Table = dict(arguments.get("arguments") or {})
    asked_for(broker, channel, queue, no_ack, table)
    heeds_no_channel_limit = queue.type is not QueueType.CLASSIC and not broker.dialect.prefetch_is_shared
    if heeds_no_channel_limit and has_channel_limit(broker, channel):
        raise ProtocolError("QOS-012", 540, f"{queue_text(broker, channel, name)} does not support global qos")
    _check_exclusive(broker, channel, queue, exclusive)
    known = table if broker.dialect.has("consumer_priorities") else {k: v for k, v in table.items() if k != PRIORITY}
    consumer = Consumer(
        tag, channel.key, queue, no_ack, 0 if no_ack else channel.prefetch, exclusive, known,
        created=broker.stamp, announced=bool(arguments.get("nowait")), stamp=broker.stamp,
        prefetch_from=channel.prefetch_from,
        unheeded_prefetch=channel.prefetch if no_ack else 0,
    )  # fmt: skip
    made(broker, channel, consumer)
    generated = not tag
    if generated:
        broker.serial += 1
        consumer.tag = tag = f"{UNKNOWN_TAG}{broker.serial}"
    consumer.reason = requirement = "CONSUME-002" if generated else _announcement(broker, channel, tag)
    consumer.known_since = known_since(broker, consumer)
    taken = tuple(channel.consumers)
    channel.consumers[tag] = consumer
    channel.ended_consumers.pop(tag, None)
    if len(queue.consumers) == 1:
        # while it was alone nobody kept account of its turns, nor compares it
        queue.consumers[0].is_doubtful, queue.consumers[0].overtaken_by = True, frozenset()
    queue.consumers.append(consumer)
    broker.elect(queue, "SAC-001")
    broker.refresh(queue)
    broker.touch(channel, queue)
    if arguments.get("no_local") and _own_message_waits(channel, consumer):
        broker.fired("CONSUME-010")
        consumer.reason = "CONSUME-010"
    answer(
        broker,
        channel,
        method,
        "basic.consume-ok",
        {"consumer_tag": Generated(chosen_tags_begin(broker), broker.serial, taken) if generated else tag},
        requirement,
        lane=f"queue {queue.name}",
        effect=ConsumerAnnounced(consumer),
    )


def chosen_tags_begin(broker: Broker) -> str:
    """What the tags that the broker chooses begin with."""
    return "" if broker.dialect.text.any_generated_tag else CHOSEN_TAG


def _own_message_waits(channel: Channel, consumer: Consumer) -> bool:
    """Is there a message for the consumer that its own connection has published?"""
    queue = consumer.queue
    waiting = queue.log[consumer.next_offset :] if queue.type is QueueType.STREAM else queue.messages
    return any(message.via is not None and message.via[0] == channel.connection for message in waiting)


def _announcement(broker: Broker, channel: Channel, tag: str) -> str:
    """What the consume-ok of a tag shows: that a tag can be used again, or on a second channel, if it is (CONSUME-003).

    CANCEL-013: it can also be used again when it was the broker that ended its consumer.
    """
    if channel.ended_consumers.get(tag) == "TIMEOUT-030":
        return "TIMEOUT-030"
    if any(late.consumer is not None and late.consumer.tag == tag for late in channel.timed_out.values()):
        return "TIMEOUT-015"
    if any(entry.consumer is not None and entry.consumer.tag == tag for entry in channel.unacknowledged.values()):
        return "CONSUME-016"
    if tag in channel.ended_consumers:
        return "CANCEL-013" if channel.ended_consumers[tag] == "CANCEL-007" else "CONSUME-003"
    others = (c for key, c in broker.channels.items() if key[0] == channel.connection and c is not channel)
    return "CONSUME-003" if any(tag in other.consumers for other in others) else "CONSUME-001"


def _check_exclusive(broker: Broker, channel: Channel, queue: Queue, exclusive: bool) -> None:
    """CONSUME-007, CONSUME-008, CONSUME-009: an exclusive consumer is the only one."""
    requirement = "CONSUME-007"
    if queue.type is not QueueType.CLASSIC:
        requirement = "CONSUME-008"
        if queue.single_active_consumer:
            return  # not refused: only one consumer is active anyway
    elif queue.single_active_consumer and exclusive:
        requirement = "CONSUME-009"
        raise _in_exclusive_use(broker, channel, queue, requirement)
    present = queue.present_consumers
    if (exclusive and present) or any(consumer.exclusive for consumer in present):
        raise _in_exclusive_use(broker, channel, queue, requirement)


def _in_exclusive_use(broker: Broker, channel: Channel, queue: Queue, requirement: str) -> ProtocolError:
    return ProtocolError(requirement, 403, f"{queue_text(broker, channel, queue.name)} in exclusive use")
