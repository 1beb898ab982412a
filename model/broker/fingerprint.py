"""A value that is equal for equal states: to merge explanations, and to know states that the explorer has seen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dispatch import priority, service_is_unknown
from amqpspec.model.broker.queues import Consumer, Exchange, Message, Queue
from amqpspec.model.broker.state import Channel, Connection, Expected, PendingGet
from amqpspec.model.broker.transaction import Transaction


def fingerprint(broker: Broker) -> Hashable:
    """Everything that can make a difference to what is permitted later; nothing that only words failures, and not
    where the chunks of streams begin, which can be left open (`model.broker.stream_log.know_no_more_than`).
    """
    return (
        tuple(
            sorted(
                (
                    c.name,
                    c.state.value,
                    repr(_owed(c.owed)),
                    c.may_end,
                    c.blocked,
                    len(c.held),
                    c.out_of_step,
                    c.prefetch,
                    _agreed(c),
                )
                for c in broker.connections.values()
            )
        ),
        (repr(sorted(broker.users.items())), repr(sorted(broker.vhosts.items()))),
        (broker.alarm, broker.is_unpredictable),
        tuple(guest.fingerprint(broker) for guest in broker.hooks.guests if guest.name in broker.memories),
        broker.not_before if broker.not_before > broker.latest else 0.0,
        tuple(broker.reply_addresses.items()),
        tuple(sorted((_channel(c) for c in broker.channels.values()), key=repr)),
        tuple(sorted((_queue(broker, q) for q in broker.queues.values()), key=repr)),
        tuple(sorted(map(_exchange, broker.exchanges.values()))),
    )


def _agreed(connection: Connection) -> Hashable:
    """What the handshake settled, or has settled so far."""
    place = (connection.user, connection.vhost)
    offered = sorted(connection.offered.items())
    limits = (connection.channel_max, connection.frame_max, connection.heartbeat)
    return (place, connection.mechanisms, tuple(offered), limits, connection.may_announce_end)


def _exchange(exchange: Exchange) -> tuple[str, str, tuple[bool, bool, bool], str, tuple[tuple[object, ...], ...]]:
    bindings = sorted(
        (isinstance(b.destination, Queue), b.destination.name, b.routing_key, b.identity) for b in exchange.bindings
    )
    return (
        exchange.name,
        exchange.type,
        (exchange.durable, exchange.auto_delete, exchange.internal),
        exchange.alternate or "",
        tuple(bindings),
    )


def _content(message: Message) -> Hashable:
    properties = message.content.properties
    return (
        message.content.body, repr(properties) if properties else "", message.exchange, message.routing_key,
        message.hidden_keys, len(message.deaths), message.sent_history,
    )  # fmt: skip


def _held(message: Message) -> Hashable:
    """A message that is with a client: what is known about its way there makes no difference any more."""
    return (
        _content(message), message.position, message.redelivered, message.delivery_count, message.acquired_count,
        message.via, message.unseen, message.may_be_gone, message.recalled, message.failures, message.deadline,
        message.in_front_by, message.may_have_timed_out,
    )  # fmt: skip


def _ready(messages: Iterable[Message]) -> Hashable:
    """Groups in transit by the order in which they appear: their numbers only tell them apart."""
    transit_groups: dict[int, int] = {}
    return tuple(
        (
            _held(message),
            message.arrival.value,
            message.priority,
            message.is_late,
            transit_groups.setdefault(message.transit_group, len(transit_groups)),
            tuple(sorted(message.passed_over_by)),
        )
        for message in messages
    )


def _owed(owed: Iterable[Expected | PendingGet]) -> Hashable:
    return tuple(
        ("get", item.queue.name, item.no_ack, item.missed, item.position_limit if item.queue.dropping else 0)
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
            (
                tag,
                e.queue.name,
                e.queue.deleted,
                _held(e.message),
                e.consumer.tag if e.consumer else None,
                e.deadline,
            )
            for tag, e in channel.unacknowledged.items()
        ),
        tuple((tag, e.queue.name, e.consumer.tag if e.consumer else None) for tag, e in channel.timed_out.items()),
        tuple(channel.may_be_told.items()),
        tuple(sorted(map(_consumer, channel.consumers.values()))),
        (channel.prefetch, channel.channel_prefetch, channel.confirming, channel.published, channel.last_queue),
        (tuple(map(_unconfirmed, channel.unconfirmed.items())), channel.batch),
        tuple(sorted((queue.name, admission.value) for queue, admission in channel.admissions.items())),
        (_owed(channel.owed), _owed(channel.unread)),
        channel.direct_replies,
        None if channel.assembly is None else repr(channel.assembly),
        (channel.limited_since, channel.under_way, channel.counts_anew) if channel.channel_prefetch else None,
        tuple(sorted(map(_leaving, channel.may_still_be_served.values()))),
        tuple((each.consumer.tag, each.consumer.queue.name, each.as_it_was.position) for each in channel.lost),
        None if channel.transaction is None else _transaction(channel.transaction),
    )


def _transaction(transaction: Transaction) -> Hashable:
    publications = (
        (_content(each.pattern), each.mandatory, tuple((queue.name, queue.deleted) for queue in each.routes.queues))
        for each in transaction.publications
    )
    arriving = ((queue.name, message.position) for queue, message in transaction.arriving)
    return (tuple(publications), repr(transaction.rulings), tuple(arriving))


def _unconfirmed(publish: tuple[int, tuple[tuple[Queue, Message], ...]]) -> tuple[int, bool]:
    number, copies = publish
    return number, any(message.refused_by for _, message in copies)


def _consumer(consumer: Consumer) -> tuple[str, str, int, int, bool, bool, bool, tuple[int | bool | str, ...]]:
    return (
        consumer.tag, consumer.queue.name, consumer.prefetch, consumer.outstanding, consumer.announced,
        consumer.no_ack, consumer.exclusive,
        (
            consumer.next_offset, consumer.latest_offset, consumer.has_begun,
            consumer.unheeded_prefetch,
            repr(consumer.known_since),
            consumer.timed_out,
        ),
    )  # fmt: skip


def _leaving(consumer: Consumer) -> tuple[str, tuple[bytes, ...]]:
    """One that is gone, and what may be under way to it."""
    queue = consumer.queue
    dropped = [message for message in queue.gone if message.stamp == consumer.stamp] if queue.deleted else []
    return repr(_consumer(consumer)), tuple(message.content.body for message in [*dropped, *queue.log])


def _queue(broker: Broker, queue: Queue) -> Hashable:
    consumers = [(consumer.channel, consumer.tag) for consumer in queue.consumers]
    if not queue.single_active_consumer:
        consumers.sort()  # whose turn it is, is nobody's business but the broker's
    # the present group goes on growing as long as one of it is on its way
    present = queue.transit_group
    growing = len(queue.unproven) > 0 and [
        (message.transit_group == present) - (message.transit_group == -present) for message in queue.messages
    ]
    return (
        (queue.name, queue.type.value, queue.owner, queue.durable, queue.auto_delete),
        repr(sorted(queue.arguments.items())) if queue.arguments else "",
        _ready(queue.messages),
        tuple((_held(each.message), each.cause.position) for each in queue.dropping),
        (tuple(growing or ()), queue.transit_group_via if growing else None),
        (
            queue.returned,
            len(queue.unproven),
            queue.still_counted,
            queue.next_position,
            queue.turn,
            queue.at_rest,
        ),
        tuple((_content(message), message.arrival.value) for message in queue.log),
        (queue.uses, queue.idle_since, queue.idle_by) if "x-expires" in queue.arguments else (),
        tuple(consumers),
        _turns(broker, queue),
    )


def _turns(broker: Broker, queue: Queue) -> Hashable:
    """Whose turn it is, as far as it matters to somebody else (`model.broker.dispatch`)."""
    if queue.single_active_consumer:
        seat = queue.seat
        holder, former = (None if c is None else (c.channel, c.tag) for c in (seat.holder, seat.former))
        last = seat.unseen_before if former else 0
        return holder, seat.is_being_left, former, last
    if len(queue.consumers) < 2 or service_is_unknown(broker, queue):
        return None
    waiting = ((c.channel, c.tag, priority(c), c.is_doubtful, sorted(c.overtaken_by)) for c in queue.consumers)
    return repr(sorted(waiting, key=lambda each: each[:2]))
