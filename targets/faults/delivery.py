"""Faults of delivering: consuming, cancelling, basic.get and limits (areas CONSUME, CANCEL, GET, QOS and ACK)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

DELIVERY = Chapter()
on_input, on_output, in_broker = DELIVERY.on_input, DELIVERY.on_output, DELIVERY.in_broker
_DELIVERING = ("basic.deliver", "basic.get-ok")

# ---------------------------------------------------------------------------------- what a delivery says


@on_output("redelivered-never-set", "ACK-015", "A message that comes again is not marked as redelivered.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, redelivered=False)


@on_output("redelivered-always-set", "ACK-015", "The first delivery is marked as redelivered.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, redelivered=True)


@on_output("delivery-tags-reused", "CONSUME-014", "The second delivery has the tag of the first.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    tag = method.arguments["delivery_tag"]
    yield altered(method, delivery_tag=1 if tag == 2 else tag)


@on_output("delivery-tags-per-consumer", "CONSUME-014", "Each consumer counts its own tags.", "basic.deliver")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    consumer = (method.connection, method.channel, method.arguments["consumer_tag"])
    broker.memory[consumer] = tag = broker.memory.get(consumer, 0) + 1
    yield altered(method, delivery_tag=tag)


@on_output("content-altered", "PUBLISH-016", "The last octet of a body is lost.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    content = method.content or Content()
    yield replace(method, content=Content(content.properties, content.body[:-1]))


@on_output("properties-lost", "PUBLISH-016", "A delivery has no content properties.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    content = method.content or Content()
    yield replace(method, content=Content({}, content.body))


@on_output("message-delivered-twice", "ACK-001", "A consumer gets each message two times at once.", "basic.deliver")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    channel = broker.channel(method.connection, method.channel)
    yield method
    yield altered(method, delivery_tag=channel.next_tag)
    channel.next_tag += 1


# --------------------------------------------------------------------------------------------- basic.get


@on_output("get-count-off-by-one", "GET-001", "basic.get-ok counts its own message as ready.", "basic.get-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, message_count=method.arguments["message_count"] + 1)


@on_output("get-empty-with-messages", "PUBLISH-002", "basic.get finds no message that is ready.", "basic.get-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    channel = broker.channel(method.connection, method.channel)
    entry = channel.unacknowledged.pop(method.arguments["delivery_tag"], None)
    if entry is not None:  # else the message is gone, as the client asked for no acknowledgement
        entry.queue.messages.appendleft(entry.message)
    channel.next_tag -= 1
    yield Method(method.connection, method.channel, "basic.get-empty", {}, sent=False)


# --------------------------------------------------------------------------------- consuming and cancelling


def _pretend_consume_ok(broker: ServedBroker, method: Method) -> None:
    channel = broker.channel(method.connection, method.channel)
    tag = method.arguments.get("consumer_tag") or "amq.ctag-none"
    broker.owe(channel, "basic.consume-ok", {"consumer_tag": tag}, "CONSUME-001")


@on_input(
    "no-ack-keeps-message", "CONSUME-013", "Messages of a no-ack consumer wait for an acknowledgement.", "basic.consume"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, no_ack=False))


@on_input("get-ignores-no-ack", "CONSUME-013", "A message got with no-ack waits for an acknowledgement.", "basic.get")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, no_ack=False))


@on_input("tag-reuse-accepted", "CONSUME-003", "A consumer tag in use is accepted again.", "basic.consume")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    if method.arguments.get("consumer_tag") in channel.consumers:
        _pretend_consume_ok(broker, method)
    else:
        proceed(method)


@on_input(
    "missing-queue-consumed", "CONSUME-006", "A consumer of a queue that is not there is accepted.", "basic.consume"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    name = method.arguments.get("queue")
    if name and name not in broker.queues and channel.state is ChannelState.OPEN:
        _pretend_consume_ok(broker, method)
    else:
        proceed(method)


@on_input(
    "exclusive-consumer-not-exclusive", "CONSUME-007", "An exclusive consumer keeps nobody away.", "basic.consume"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, exclusive=False))


@on_input("cancel-requeues-unacked", "CANCEL-016", "basic.cancel gives back what the consumer holds.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    held = _held_by(broker, method)
    proceed(method)
    channel = broker.channel(method.connection, method.channel)
    for tag in held:
        entry = broker.release(channel, tag, "CANCEL-016")
        entry.queue.messages.appendleft(entry.message)
        broker.refresh(entry.queue)


@on_input("cancel-drops-unacked", "ACK-011", "basic.cancel forgets what the consumer holds.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    for tag in _held_by(broker, method):
        broker.release(broker.channel(method.connection, method.channel), tag, "CANCEL-016")
    proceed(method)


def _held_by(broker: ServedBroker, method: Method) -> list[int]:
    """Tags that the consumer which is being cancelled holds, the newest first."""
    channel = broker.channel(method.connection, method.channel)
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    if consumer is None:
        return []
    return [tag for tag, entry in reversed(channel.unsettled.items()) if entry.consumer is consumer]


# ------------------------------------------------------------------------------------------------- limits


@in_broker("prefetch-off-by-one", "QOS-001", "A consumer is handed one message more than its prefetch count.")
class PrefetchOffByOne(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        return super().has_room(consumer) or consumer.outstanding == consumer.prefetch
