"""The frames that a world can form: all that a broker could say there, right or wrong.

They are made of what is there: of each channel its owed frames in any order, an answer to its get with each message,
each number of its publishes confirmed in each way, and each message of a queue handed to each of its consumers. What
`model.outputs.permitted` enumerates is among them. Which of them a broker may send is `observe`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from amqpspec.conformance.explore.position import Position
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.dead_letter_headers import chosen
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.outputs.expected_properties import expected_properties
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method, Table, TraceEvent, event_of
from amqpspec.model.protocol.patterns import choose

#: Most messages of a queue that are tried in a delivery.
MOST_MESSAGES = 4


def formable(position: Position) -> list[TraceEvent]:
    """Frames that may be tried, each once; those that are permitted come first."""
    broker = position.broker
    found: dict[str, TraceEvent] = {}
    for event in (*permitted(broker), *_others(broker), *_to_nobody(position)):
        found.setdefault(str(event), event)
    return [replace(event, time=position.now) for event in found.values()]


def _others(broker: Broker) -> Iterator[TraceEvent]:
    for channel in broker.channels.values():
        if channel.state is ChannelState.CLOSED and not channel.owed:
            continue
        yield from _owed(channel.connection, channel.number, channel.owed)
        yield from _confirms(channel)
        yield from _answers_to_get(broker, channel)
        for consumer in (*channel.consumers.values(), *channel.may_still_be_served.values()):
            yield from _deliveries(broker, channel, consumer)
        for lost in channel.lost:
            yield from _delivery(broker, channel, lost.consumer, lost.consumer.queue, lost.as_it_was)
    for connection in broker.connections.values():
        yield from _owed(connection.name, 0, connection.owed)


def _owed(connection: str, number: int, owed: Iterable[Expected | PendingGet]) -> Iterator[TraceEvent]:
    for each in owed:
        if isinstance(each, Expected):
            arguments = {name: choose(value) for name, value in each.arguments.items()}
            yield event_of(connection, number, each.method, arguments, sent=False, content=each.content)


def _confirms(channel: Channel) -> Iterator[Method]:
    if not channel.confirming and not channel.published:
        return
    for number in range(1, channel.published + 2):
        for multiple in (False, True):
            arguments: Table = {"delivery_tag": number, "multiple": multiple}
            yield Method(channel.connection, channel.number, "basic.ack", arguments, sent=False)
            nack = {**arguments, "requeue": True}
            yield Method(channel.connection, channel.number, "basic.nack", nack, sent=False)


def _answers_to_get(broker: Broker, channel: Channel) -> Iterator[Method]:
    for pending in channel.owed:
        if isinstance(pending, PendingGet):
            yield Method(channel.connection, channel.number, "basic.get-empty", {}, sent=False)
            queue = pending.queue
            for message in list(queue.messages)[:MOST_MESSAGES]:
                for count in range(len(queue.messages) + 1):
                    told: Table = {"message_count": count}
                    yield from _content_method(broker, channel, queue, message, "basic.get-ok", told)
            return


def _deliveries(broker: Broker, channel: Channel, consumer: Consumer) -> Iterator[Method]:
    queue = consumer.queue
    messages = queue.log if queue.type is QueueType.STREAM else [*queue.messages, *queue.dropped_at_deletion]
    for message in list(messages)[:MOST_MESSAGES]:
        yield from _delivery(broker, channel, consumer, queue, message)


def _to_nobody(position: Position) -> Iterator[Method]:
    """Deliveries to each tag by which a client of the world consumes at some time, and not now."""
    for command in (*position.world.setup, *position.world.commands):
        channel = position.broker.channels.get((command.connection, command.channel))
        queue = position.broker.queues.get(command.arguments.get("queue", ""))
        tag = command.arguments.get("consumer_tag")
        if command.method != "basic.consume" or channel is None or queue is None or tag in channel.consumers:
            continue
        if channel.state is ChannelState.OPEN and tag and queue.messages:
            told = {"consumer_tag": tag}
            yield from _content_method(position.broker, channel, queue, queue.messages[0], "basic.deliver", told)


def _delivery(
    broker: Broker, channel: Channel, consumer: Consumer, queue: Queue, message: Message
) -> Iterator[Method]:
    return _content_method(broker, channel, queue, message, "basic.deliver", {"consumer_tag": consumer.tag})


def _content_method(
    broker: Broker, channel: Channel, queue: Queue, message: Message, name: str, more: Table
) -> Iterator[Method]:
    """With the number that is next and the one behind it, and with both values of redelivered."""
    properties = expected_properties(broker, queue, message, name == "basic.get-ok")
    if message.deaths:
        properties = chosen(properties)
    content = message.content if properties is message.content.properties else Content(properties, message.content.body)
    for tag in (channel.next_tag, channel.next_tag + 1):
        for redelivered in (message.redelivered, not message.redelivered):
            arguments: Table = {
                **more, "delivery_tag": tag, "redelivered": redelivered, "exchange": message.exchange,
                "routing_key": message.routing_key,
            }  # fmt: skip
            yield Method(channel.connection, channel.number, name, arguments, sent=False, content=content)
