"""Faults of streams (area STREAM): where reading begins, what it takes away, and how much at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.model.rules.extensions.stream_consuming import interval
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

STREAM = Chapter()
on_input, on_output, in_broker = STREAM.on_input, STREAM.on_output, STREAM.in_broker
_OFFSET = "x-stream-offset"
_WORDS = ("first", "last", "next")


def _reads_stream(broker: ServedBroker, method: Method) -> bool:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    return queue is not None and queue.type is QueueType.STREAM


def _offset(method: Method) -> Any:
    return (method.arguments.get("arguments") or {}).get(_OFFSET)


def _beginning_at(method: Method, offset: Any) -> Method:
    return altered(method, arguments={**(method.arguments.get("arguments") or {}), _OFFSET: offset})


# -------------------------------------------------------------------------------------------- the beginning


@on_input("stream-offset-off-by-one", "STREAM-008", "An offset that is a number counts from 1.", "basic.consume")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    offset = _offset(method)
    counted = _reads_stream(broker, method) and type(offset) is int
    proceed(_beginning_at(method, offset + 1) if counted else method)


@on_input("stream-last-is-next", "STREAM-008", "The offset `last` leaves the last message out.", "basic.consume")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    is_last = _reads_stream(broker, method) and _offset(method) == "last"
    proceed(_beginning_at(method, "next") if is_last else method)


@on_input("stream-read-from-first", "STREAM-004", "Without an offset a stream is read from the first message on.",
          "basic.consume")  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    is_open = _reads_stream(broker, method) and _offset(method) is None
    proceed(_beginning_at(method, "first") if is_open else method)


@on_input("stream-offset-not-checked", "STREAM-005", "An offset that nobody understands means `next`.",
          "basic.consume")  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    offset = _offset(method)
    is_text = _reads_stream(broker, method) and isinstance(offset, str)
    is_bad = is_text and offset not in _WORDS and interval(offset) is None
    proceed(_beginning_at(method, "next") if is_bad else method)


# ---------------------------------------------------------------------------------------------- the reading


@in_broker("stream-message-read-once", "STREAM-003", "A message of a stream is handed to one consumer only.")
class ReadOnce(ServedBroker):
    def refresh(self, queue: Queue) -> None:
        for consumer in queue.consumers if queue.type is QueueType.STREAM else ():
            while consumer.next_offset < len(queue.log) and queue.log[consumer.next_offset].acquired_count:
                consumer.next_offset = consumer.latest_offset = consumer.next_offset + 1
        super().refresh(queue)


@on_output("stream-offset-header-wrong", "STREAM-003", "The header x-stream-offset counts from 1.", "basic.deliver")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    if method.content is None or _named_offset(method) is None:
        return [method]
    properties = method.content.properties
    headers = {**properties["headers"], _OFFSET: properties["headers"][_OFFSET] + 1}
    return [replace(method, content=Content({**properties, "headers": headers}, method.content.body))]


@on_output("stream-read-again-is-redelivered", "STREAM-003",
           "What another consumer of a stream has read is said to be redelivered.", "basic.deliver")  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    message = _read(broker, method)
    return [altered(method, redelivered=True) if message is not None and message.acquired_count > 1 else method]


def _named_offset(method: Method) -> int | None:
    properties = method.content.properties if method.content else {}
    offset = (properties.get("headers") or {}).get(_OFFSET)
    return offset if isinstance(offset, int) else None


def _read(broker: ServedBroker, method: Method) -> Message | None:
    """The message of a stream that a delivery carries."""
    consumer = broker.channel(method.connection, method.channel).consumers.get(method.arguments["consumer_tag"])
    offset = _named_offset(method)
    if consumer is None or consumer.queue.type is not QueueType.STREAM or offset is None:
        return None
    return consumer.queue.log[offset]


# --------------------------------------------------------------------------------------------- the settling


@in_broker("stream-limit-ignored", "STREAM-006", "A consumer of a stream is handed all there is, whatever its limit.")
class LimitIgnored(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        return consumer.queue.type is QueueType.STREAM or super().has_room(consumer)


@in_broker("stream-credit-never-returned", "STREAM-006",
           "A consumer of a stream is handed as many messages as its limit says, and then no more.")  # fmt: skip
class CreditNeverReturned(ServedBroker):
    def release(self, channel: Channel, tag: int, requirement: str) -> Unacknowledged:
        entry = super().release(channel, tag, requirement)
        if entry.queue.type is QueueType.STREAM and entry.consumer is not None:
            entry.consumer.outstanding += 1
        return entry


def _reading_again(broker: ServedBroker, method: Method, proceed: Proceed, settles: Callable[[int], bool]) -> None:
    """Consumers of streams whose deliveries are settled go back to the first of these."""
    channel = broker.channel(method.connection, method.channel)
    settled = [(tag, entry) for tag, entry in channel.unacknowledged.items() if settles(tag)]
    proceed(method)
    if channel.state is not ChannelState.OPEN:
        return
    for tag, entry in settled:
        consumer = entry.consumer
        if consumer is None or entry.queue.type is not QueueType.STREAM or tag in channel.unacknowledged:
            continue
        if consumer in entry.queue.consumers:
            consumer.next_offset = consumer.latest_offset = min(consumer.next_offset, entry.message.position)
            broker.refresh(entry.queue)


@on_input("stream-nack-requeues", "ACK-021", "A message of a stream that is given back is delivered again.",
          "basic.nack", "basic.reject")  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    named, multiple = method.arguments.get("delivery_tag", 0), method.arguments.get("multiple")
    requeue = bool(method.arguments.get("requeue"))
    _reading_again(
        broker,
        method,
        proceed,
        lambda tag: requeue and (tag == named or bool(multiple and (tag <= named or not named))),
    )


@on_input("stream-recover-reads-again", "STREAM-007", "Recovering delivers a stream's messages again.",
          "basic.recover", "basic.recover-async")  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _reading_again(broker, method, proceed, lambda tag: True)
