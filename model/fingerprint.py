"""A value that is equal for equal states: to merge explanations, and to know states that the explorer has seen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from model.broker import Broker
from model.state import Channel, Consumer, Expected, Message, PendingGet, Queue


def fingerprint(broker: Broker) -> Hashable:
    """Everything that can make a difference to what is permitted later; nothing that only words failures."""
    return (
        tuple(sorted((c.name, c.state.value, repr(_owed(c.owed)), c.may_end) for c in broker.connections.values())),
        tuple(sorted((_channel(c) for c in broker.channels.values()), key=repr)),
        tuple(sorted((_queue(q) for q in broker.queues.values()), key=repr)),
        tuple(
            (e.name, e.type, tuple(sorted((b.queue.name, b.routing_key) for b in e.bindings)))
            for e in broker.exchanges.values()
        ),
    )


def _content(message: Message) -> Hashable:
    properties = message.content.properties
    return (message.content.body, repr(properties) if properties else "", message.exchange, message.routing_key)


def _held(message: Message) -> Hashable:
    """A message that is with a client: what is known about its way there makes no difference any more."""
    return (
        _content(message), message.position, message.redelivered, message.delivery_count, message.acquired_count,
        message.via,
    )  # fmt: skip


def _ready(messages: Iterable[Message]) -> Hashable:
    """Crowds by the order in which they appear: their numbers only tell them apart."""
    crowds: dict[int, int] = {}
    return tuple(
        (
            _held(message),
            message.arrival.value,
            crowds.setdefault(message.crowd, len(crowds)),
            tuple(sorted(message.passed_over_by)),
        )
        for message in messages
    )


def _owed(owed: Iterable[Expected | PendingGet]) -> Hashable:
    return tuple(
        ("get", item.queue.name, item.no_ack)
        if isinstance(item, PendingGet)
        else (item.method, repr(sorted(item.arguments.items(), key=lambda pair: pair[0])), item.lane)
        for item in owed
    )


def _channel(channel: Channel) -> Hashable:
    return (
        channel.key,
        channel.state.value,
        channel.next_tag,
        tuple(
            (tag, e.queue.name, _held(e.message), e.consumer.tag if e.consumer else None)
            for tag, e in channel.unacknowledged.items()
        ),
        tuple(sorted(map(_consumer, channel.consumers.values()))),
        (channel.prefetch, channel.channel_prefetch, channel.confirming, channel.published, channel.last_queue),
        tuple(channel.unconfirmed),
        _owed(channel.owed),
    )


def _consumer(consumer: Consumer) -> tuple[str, str, int, int, bool, bool, bool, int]:
    return (
        consumer.tag, consumer.queue.name, consumer.prefetch, consumer.outstanding, consumer.announced,
        consumer.no_ack, consumer.exclusive, consumer.next_offset,
    )  # fmt: skip


def _queue(queue: Queue) -> Hashable:
    consumers = [(consumer.channel, consumer.tag) for consumer in queue.consumers]
    if not queue.single_active_consumer:
        consumers.sort()  # whose turn it is, is nobody's business but the broker's
    # the present crowd goes on growing as long as one of it is on its way
    growing = len(queue.unproven) > 0 and [
        (message.crowd == queue.crowd) - (message.crowd == -queue.crowd) for message in queue.messages
    ]
    return (
        (queue.name, queue.type.value, queue.owner, queue.durable, queue.auto_delete),
        repr(sorted(queue.arguments.items())) if queue.arguments else "",
        _ready(queue.messages),
        tuple(growing or ()),
        (queue.returned, len(queue.unproven), queue.leaving, queue.settling, queue.next_position),
        tuple(map(_content, queue.log)),
        tuple(consumers),
    )
