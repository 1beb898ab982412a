"""What a test sees of the broker: values that do not change when the broker does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.wording import value_text
from amqpspec.targets.embedded.served_broker import ServedBroker

#: Gives what a client calls its connection.
TitleOf = Callable[[str], str]


class QueueInfo(NamedTuple):
    """A queue. `ready` and `unacknowledged` count messages; `consumers` has their tags."""

    name: str
    virtual_host: str
    type: str
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: Mapping[str, Any]
    ready: int
    unacknowledged: int
    consumers: tuple[str, ...]


class ConnectionInfo(NamedTuple):
    """A client's connection. `name` is what the client calls it, or "". `blocked`: it has published during an alarm,
    and is not read until that is over. `channels` counts the open ones.
    """

    name: str
    user: str
    virtual_host: str
    channels: int
    blocked: bool


class Holder(NamedTuple):
    """Who was delivered a message, and has not settled it. `connection` is what the client calls it, or "".

    `consumer_tag` is "" where basic.get took it.
    """

    connection: str
    channel: int
    consumer_tag: str
    delivery_tag: int


class MessageInfo(NamedTuple):
    """A message in a queue. `holder` is None while it is ready. `properties` are those that are set, by name."""

    body: bytes
    properties: Mapping[str, Any]
    exchange: str
    routing_key: str
    redelivered: bool
    holder: Holder | None

    @property
    def headers(self) -> Mapping[str, Any]:
        return _headers(self.properties)


class Published(NamedTuple):
    """A message as it was published, and the `queues` that it was routed to."""

    body: bytes
    properties: Mapping[str, Any]
    exchange: str
    routing_key: str
    queues: tuple[str, ...]

    @property
    def headers(self) -> Mapping[str, Any]:
        return _headers(self.properties)


def _headers(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    headers: Mapping[str, Any] = properties.get("headers") or {}
    return headers


def connection_infos(brokers: Iterable[ServedBroker], own_user: str, title_of: TitleOf) -> list[ConnectionInfo]:
    return [
        ConnectionInfo(
            title_of(each.name),
            each.user or own_user,
            each.vhost,
            sum(key[0] == each.name and channel.state is ChannelState.OPEN for key, channel in broker.channels.items()),
            each.blocked,
        )
        for broker in brokers
        for each in broker.connections.values()
        if each.state is ConnectionState.OPEN
    ]


def queue_infos(broker: ServedBroker) -> dict[str, QueueInfo]:
    held: dict[Queue, int] = {}
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            held[entry.queue] = held.get(entry.queue, 0) + 1
    return {
        queue.name: QueueInfo(
            queue.name,
            queue.vhost,
            queue.type.value,
            queue.durable,
            queue.owner is not None,
            queue.auto_delete,
            dict(queue.arguments),
            len(_ready(queue)),
            held.get(queue, 0),
            tuple(consumer.tag for consumer in queue.present_consumers),
        )
        for queue in broker.queues.values()
        if not queue.reply_address
    }


def message_infos(broker: ServedBroker, queue: Queue, title_of: TitleOf) -> list[MessageInfo]:
    """In the order of the queue: what is held, and then what is ready. A stream has all that was published to it."""
    if queue.type is QueueType.STREAM:
        return [_info(message, None) for message in queue.log]
    held = sorted(_held(broker, queue, title_of), key=lambda pair: pair[0].position)
    return [_info(message, holder) for message, holder in (*held, *((each, None) for each in queue.messages))]


def publications(broker: ServedBroker, exchange: str) -> list[Published]:
    return [
        Published(each.content.body, dict(each.content.properties), each.exchange, each.routing_key, each.queues)
        for each in broker.publications
        if each.exchange == exchange
    ]


def described(brokers: Mapping[str, ServedBroker], title_of: TitleOf) -> str:
    """What is in the queues of these virtual hosts, for people."""
    told = {name: _described(broker, title_of) for name, broker in brokers.items()}
    return (
        "\n".join(
            line
            for name, lines in told.items()
            for line in ([f"virtual host {name}:", *lines] if lines and len(told) > 1 else lines)
        )
        or "there are no queues"
    )


def _described(broker: ServedBroker, title_of: TitleOf, most: int = 10) -> list[str]:
    lines = []
    for info in queue_infos(broker).values():
        consumers = f", consumers {' '.join(info.consumers)}" if info.consumers else ""
        lines.append(f"{info.name} ({info.type}): {info.ready} ready, {info.unacknowledged} unacknowledged{consumers}")
        messages = message_infos(broker, broker.queues[info.name], title_of)
        for message in messages[:most]:
            whose = f"  held by {_holder_text(message.holder)}" if message.holder is not None else ""
            again = "  redelivered" if message.redelivered else ""
            lines.append(f"    {value_text(message.body)}{whose}{again}")
        if len(messages) > most:
            lines.append(f"    and {len(messages) - most} more")
    return lines


def _holder_text(holder: Holder) -> str:
    where = f"channel {holder.channel}" + (f" of {holder.connection}" if holder.connection else "")
    return f"consumer {holder.consumer_tag} on {where}" if holder.consumer_tag else f"basic.get on {where}"


def _ready(queue: Queue) -> list[Message]:
    return queue.log if queue.type is QueueType.STREAM else list(queue.messages)


def _held(broker: ServedBroker, queue: Queue, title_of: TitleOf) -> Iterator[tuple[Message, Holder]]:
    for channel in broker.channels.values():
        for tag, entry in channel.unacknowledged.items():
            if entry.queue is queue:
                consumer = entry.consumer.tag if entry.consumer is not None else ""
                yield entry.message, Holder(title_of(channel.connection), channel.number, consumer, tag)


def _info(message: Message, holder: Holder | None) -> MessageInfo:
    content = message.content
    return MessageInfo(
        content.body,
        dict(content.properties),
        message.exchange,
        message.routing_key,
        message.redelivered,
        holder,
    )
