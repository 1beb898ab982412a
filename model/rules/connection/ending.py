"""What the end of a channel or connection does, whoever ended it.

Area CHAN (CHAN-016); RabbitMQ: rabbit_channel:terminate, notify_queues; rabbit_reader:terminate_channels,
rabbit_queue_collector.

Requirements:

* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* CONFIRM-018: Pending confirms at channel error. If the channel dies, outstanding confirms are never sent.
  [rabbit_channel.erl:terminate]
* CONN-021: Abrupt socket close is asynchronous. After a TCP close without connection.close the server cleans up later:
  an exclusive queue may still exist (405 from others) for some milliseconds. [observed; rabbit_queue_collector]
* GET-004: Unacked get is requeued at channel close. An unacked get returns to its queue (redelivered=true) when the
  channel's process ends, which is just after close-ok; before close-ok only on a classic queue that the channel also
  consumes from. After a server-sent channel.close this waits for the client's close-ok.
  [rabbit_channel.erl:notify_queues]
* QUEUE-020: Exclusive queue lifetime. Exclusive queues survive the declaring channel and die with the connection.
  [rabbit_queue_collector; AMQP 0-9-1 class queue]
* TX-009: Closing an uncommitted tx. The end of the channel, by whomever and however, discards uncommitted publishes and
  acks (messages are requeued). [rabbit_channel.erl]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.connections import Connection
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.effects import Committed
from amqpspec.model.broker.internal_events import ConnectionCleanup
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.uncommitted import drop
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey
from amqpspec.model.rules.basic.requeue import give_back, leave_order_open, lost_order
from amqpspec.model.rules.basic.unseen import expect_exceeded_limits, expect_losses, lose, may_serve_anybody
from amqpspec.model.rules.common.steps import Step

#: The message was on its way to that channel, which has ended: it is the latest that the queue has again.
unseen_is_back: Step[Broker, Queue, Message, ChannelKey] = Step()


def end_channel(broker: Broker, channel: Channel, requirement: str = "CHAN-016") -> None:
    """Consumers go, unacknowledged messages return to their queues, and open confirms are never sent (CONFIRM-018).

    In which order they come back: `lost_order`; where, how they are counted, and when they are dropped: `give_back`
    (`model.rules.basic.requeue`). In the state they are back at once; that they may come later (CHAN-016) is
    `Arrival.RETURNING`.
    """
    returning: dict[Queue, list[tuple[int, Unacknowledged]]] = {}
    for tag, entry in channel.unacknowledged.items():
        if entry.queue.type is not QueueType.STREAM:
            returning.setdefault(entry.queue, []).append((tag, entry))
    if returning or channel.consumers:
        broker.fired(requirement)
    dropped_by = "TX-009" if broker.dialect.extensions else requirement
    drop(broker, channel, dropped_by)
    tags = channel.transaction.reserved if channel.transaction is not None else ()
    reserved = {channel.queue_of(tag) for tag in tags}
    channel.unacknowledged = {}
    channel.timed_out = {}
    for queue in _as_they_hear(broker, channel, returning, requirement):
        entries = returning[queue]
        broker.used(queue)
        order = lost_order(broker, queue, entries)
        reason = "GET-004" if all(entry.consumer is None for _, entry in entries) else requirement
        reason = dropped_by if queue in reserved else reason
        give_back(broker, queue, order, reason, failed=True, holder=channel.key, lost_holder=True)
        leave_order_open(channel.key, queue, entries)
        broker.touch(channel, queue)
    _take_back_unseen(broker, channel, returning)
    channel.unconfirmed = {}
    channel.transaction = None
    broker.paused -= {channel.key}
    channel.may_still_be_served = {}
    broker.refresh_sharing(channel)
    broker.settle_debts(channel)
    expect_exceeded_limits(broker)
    expect_losses(broker)


def _take_back_unseen(broker: Broker, channel: Channel, returning: Collection[Queue]) -> None:
    """What was on its way to the channel counts again: queues that get nothing else back look at their limits.

    Not where others may have been handed it, or where it need not come back.
    """
    last: dict[Queue, Message] = {}
    never: set[Queue] = set(returning)
    for lost in channel.lost:
        queue = lost.consumer.queue
        if lost.consumer.no_ack or queue.type is QueueType.STREAM or queue in broker.deliverable:
            never.add(queue)
        elif lost.message in queue.messages:
            last[queue] = lost.message
    for queue, message in last.items():
        if queue not in never and not queue.deleted:
            unseen_is_back(broker, queue, message, channel.key)


def _as_they_hear(broker: Broker, channel: Channel, returning: Collection[Queue], requirement: str) -> Iterator[Queue]:
    """The queues of what comes back, as they hear of the end of the channel, whose consumers there are gone then.

    First classic queues that it consumes from (rabbit_channel:notify_queues), in any order: what these give up for good
    may be handed to its consumers on the others yet.
    """
    consumers = list(channel.consumers.values())
    classic = dict.fromkeys(consumer.queue for consumer in consumers if consumer.queue.type is QueueType.CLASSIC)
    for queue in sorted(classic, key=lambda queue: not (queue in returning and EXCHANGE in queue.in_force)):
        _leave(broker, channel, [consumer for consumer in consumers if consumer.queue is queue], requirement)
        if queue in returning:
            yield queue
    _leave(broker, channel, [consumer for consumer in consumers if consumer.queue not in classic], requirement)
    yield from (queue for queue in returning if queue not in classic)


def _leave(broker: Broker, channel: Channel, consumers: Collection[Consumer], requirement: str) -> None:
    lose(broker, channel, consumers)
    for consumer in consumers:
        broker.touch(channel, consumer.queue)
        broker.remove_consumer(consumer, requirement)


def end_connection(broker: Broker, connection: Connection) -> None:
    """All channels end, then the queues that are exclusive to the connection are deleted (QUEUE-020)."""
    end_channels(broker, connection)
    _delete_own_queues(broker, connection.name, "QUEUE-020")


def abandon_connection(broker: Broker, connection: Connection) -> None:
    """The client is gone without a word: the broker notices it, and deletes its queues some time later (CONN-021)."""
    end_channels(broker, connection)
    cleanup = ConnectionCleanup(connection.name)
    if has_left_queues(broker, cleanup):
        broker.internal_events.append(cleanup)


def clean_up(broker: Broker, event: ConnectionCleanup) -> None:
    """The broker comes to clean up after a client that is gone."""
    _delete_own_queues(broker, event.connection, "CONN-021")


def has_left_queues(broker: Broker, event: ConnectionCleanup) -> bool:
    """Is anything left to clean up?"""
    return any(queue.owner == event.connection for queue in broker.queues.values())


def _delete_own_queues(broker: Broker, connection: str, requirement: str) -> None:
    for queue in list(broker.queues.values()):
        if queue.owner == connection:
            broker.fired("QUEUE-020")
            broker.end_queue(queue, requirement)


def end_channels(broker: Broker, connection: Connection) -> None:
    """All of the connection's channels end, in an order that is the broker's business."""
    takers = _takers(broker, connection)
    returning = _note_unseen(broker, connection, takers) if takers else []
    _end_each(broker, connection)
    for message, most in returning:
        message.unseen = max(message.unseen, most)
    expect_exceeded_limits(broker)
    expect_losses(broker)


def _takers(broker: Broker, connection: Connection) -> dict[Queue, set[ChannelKey]]:
    """By queue, the connection's channels with a consumer that has room for a message of it."""
    takers: dict[Queue, set[ChannelKey]] = {}
    for key, channel in broker.channels.items():
        if key[0] == connection.name and channel.state is ChannelState.OPEN:
            for consumer in channel.consumers.values():
                if consumer.queue.type is not QueueType.STREAM and broker.has_room(consumer):
                    takers.setdefault(consumer.queue, set()).add(key)
        if key[0] == connection.name:
            for name in channel.may_be_served_by & broker.queues.keys():
                takers.setdefault(broker.queues[name], set()).add(key)
    return takers


def _another_may_become_active(queue: Queue, keys: Collection[ChannelKey]) -> bool:
    """Does the active consumer end with the connection, and may another one there become active before it ends?"""
    active = queue.active.consumer
    return active is not None and any(key != active.channel and key[0] == active.channel[0] for key in keys)


def _note_unseen(
    broker: Broker, connection: Connection, takers: dict[Queue, set[ChannelKey]]
) -> list[tuple[Message, int]]:
    """Messages that may be handed to such a consumer while the connection ends, and how often then: nobody sees it, but
    the queue counts it. What one channel holds comes back when it ends, and another may end after it.
    """
    noted = [
        (message, message.unseen + len(keys))
        for queue, keys in takers.items()
        if queue in broker.deliverable or may_serve_anybody(broker, queue) or _another_may_become_active(queue, keys)
        for message in queue.messages
    ]
    for key, channel in broker.channels.items():
        if key[0] == connection.name:
            for entry in channel.unacknowledged.values():
                others = takers.get(entry.queue, set()) - {key}
                if others:
                    entry.message.may_be_gone |= any(
                        consumer.no_ack and consumer.channel in others for consumer in entry.queue.consumers
                    )
                    noted.append((entry.message, entry.message.unseen + len(others)))
    return noted


def _end_each(broker: Broker, connection: Connection) -> None:
    for key, channel in broker.channels.items():
        if key[0] == connection.name:
            if channel.state is ChannelState.OPEN:
                channel.unread = replies_owed(channel)
                end_channel(broker, channel)
            channel.state = ChannelState.CLOSED
            channel.owed = []
            broker.settle_debts(channel)


def replies_owed(
    channel: Channel, chosen: Callable[[Expected | PendingGet], bool] = lambda _: True
) -> tuple[Expected, ...]:
    """What may have been said before the channel ended; it changes nothing any more."""
    said = filter(chosen, channel.owed)
    replies = (owed for owed in said if isinstance(owed, Expected) and owed.method.endswith("-ok"))
    return tuple(replace(owed, effect=None) for owed in replies)


def is_said_by_queue(owed: Expected | PendingGet) -> bool:
    """Is it what a queue's process has the channel say?"""
    if not isinstance(owed, Expected):
        return False
    return owed.lane != "channel" or isinstance(owed.effect, Committed)
