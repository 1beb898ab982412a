"""A value that is equal for equal states: to merge explanations, and to know states that the explorer has seen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from model.broker import Broker
from model.state import Channel, Expected, Message, PendingGet, Queue


def fingerprint(broker: Broker) -> Hashable:
    """Everything that can make a difference to what is permitted later; nothing that only words failures."""
    return (
        tuple(sorted((c.name, c.state.value, len(c.owed), c.may_end) for c in broker.connections.values())),
        tuple(sorted((_channel(c) for c in broker.channels.values()), key=repr)),
        tuple(sorted((_queue(q) for q in broker.queues.values()), key=repr)),
        tuple(
            (e.name, e.type, tuple(sorted((b.queue.name, b.routing_key) for b in e.bindings)))
            for e in broker.exchanges.values()
        ),
    )


def _message(message: Message) -> Hashable:
    return (
        message.content.body,
        message.position,
        message.redelivered,
        message.delivery_count,
        message.acquired_count,
        message.arrival.value,
        (message.crowd, message.via),
        tuple(sorted(message.passed_over_by)),
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
            (tag, e.queue.name, _message(e.message), e.consumer.tag if e.consumer else None)
            for tag, e in channel.unacknowledged.items()
        ),
        tuple(
            sorted((c.tag, c.queue.name, c.prefetch, c.outstanding, c.announced) for c in channel.consumers.values())
        ),
        (channel.prefetch, channel.channel_prefetch, channel.confirming, channel.published, channel.last_queue),
        tuple(channel.unconfirmed),
        _owed(channel.owed),
    )


def _queue(queue: Queue) -> Hashable:
    return (
        queue.name,
        queue.type.value,
        queue.owner,
        tuple(_message(message) for message in queue.messages),
        (queue.returned, queue.unproven, queue.leaving, queue.next_position, len(queue.log)),
        tuple((c.channel, c.tag) for c in queue.consumers),
    )
