"""What becomes of a broker that is stopped, killed, paused and started again (area DURABLE).

A stop ends the connections first, each with connection.close or without a word (CONN-023), then the broker; a kill ends
all at once. What clients had sent by then may have been processed, or not (`model.judging.restarts`). What is left then
may be less than there was, and of some messages nobody can know whether they are left (`model.broker.survival`). Faults
of networks change nothing here.

Requirements:

* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* CONN-023: Operator close. rabbitmqctl close_connection/close_all_connections, node stop, and deletion of the vhost or
  the user close with hard code 320, also a connection that an alarm has blocked. In amqp-0-9-1: code 320, with a text
  of the server's choice. [rabbit_reader.erl:handle_other {shutdown,..}; AMQP 0-9-1 class connection]
* GET-004: Unacked get is requeued at channel close. An unacked get returns to its queue (redelivered=true) when the
  channel's process ends, which is just after close-ok; before close-ok only on a classic queue that the channel also
  consumes from. After a server-sent channel.close this waits for the client's close-ok.
  [rabbit_channel.erl:notify_queues]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.facts import REMEMBERED
from amqpspec.model.broker.length_limits import has_length_limit
from amqpspec.model.broker.message_order import put_back_in_place
from amqpspec.model.broker.openness import begin_openness, note_undecided
from amqpspec.model.broker.queues import Arrival, Message, Queue
from amqpspec.model.broker.survival import (
    COMMITTED,
    DURABLE,
    EXCLUSIVE,
    EXPIRES,
    GIVEN_BACK,
    HALF_CONTENT,
    HELD,
    OFFSETS,
    PAUSED,
    QUORUM,
    SET_UP,
    SETTLED,
    WITHOUT_CONSUMERS,
    note_doubts,
)
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.model.rules.basic.requeue import delivery_limit
from amqpspec.model.rules.connection.ending import end_channels

STOPPED, KILLED = "broker.stop", "broker.kill"
#: The code with which it ends connections when it is stopped.
FORCED = 320
_PERSISTENT = 2
#: Of what came back: its channel had ended.
_BY_END = ("CHAN-016", "GET-004")


def go_down(broker: Broker, action: OperatorAction) -> None:
    """From now on it may be down: each connection may end at any moment, and nothing is owed any more."""
    if broker.down_by != KILLED:
        broker.down_by = action.name
    if action.name == STOPPED:
        for queue in broker.queues.values():
            _doubt_who_was_served(broker, queue)


def _doubt_who_was_served(broker: Broker, queue: Queue) -> None:
    """Connections end one after the other: what one of them held may be handed to another one, unseen."""
    others = len({consumer.channel[0] for consumer in queue.consumers}) - 1
    if others < 1 or queue.type is QueueType.STREAM:
        return
    may_be_lost = any(consumer.no_ack for consumer in queue.consumers)
    for message in (*queue.messages, *_held(broker, queue)):
        message.unseen += others
        message.may_be_gone |= may_be_lost


def _held(broker: Broker, queue: Queue | None = None) -> list[Message]:
    """What clients hold, of the queue."""
    entries = (entry for channel in broker.channels.values() for entry in channel.unacknowledged.values())
    return [entry.message for entry in entries if queue is None or entry.queue is queue]


def _coming_back(broker: Broker) -> list[Message]:
    """What clients held whose connections have ended."""
    messages = (message for queue in broker.queues.values() for message in queue.messages)
    return [message for message in messages if message.arrival is Arrival.RETURNING]


def resume(broker: Broker, action: OperatorAction) -> None:
    """It goes on where it was paused, as if no time had passed."""
    if broker.connections:
        broker.fired(PAUSED)
    for channel in broker.channels.values():
        broker.blame(channel, PAUSED)


def restart(broker: Broker, action: OperatorAction) -> None:
    """It is up again, with what has survived."""
    life = _life(broker, is_killed=broker.down_by == KILLED)
    for channel in broker.channels.values():
        _note_unfinished(broker, channel)
    _end_connections(broker, is_killed=life.is_killed)
    _forget_clients(broker)
    for queue in list(broker.queues.values()):
        if not _survives(queue):
            requirement = DURABLE if queue.owner is None else EXCLUSIVE
            broker.fired(requirement)
            broker.end_queue(queue, requirement)
    _keep_exchanges(broker)
    for queue in broker.queues.values():
        queue.survived = True
        _keep_messages(broker, queue, life)
        if not broker.is_punctual:  # who serves decides it
            _leave_open(broker, queue)
        broker.refresh(queue)
    if broker.policies:
        broker.fired(SET_UP)
    broker.users = {name: replace(user, survived=True) for name, user in broker.users.items()}
    broker.touched.clear()
    broker.down_by = ""
    if broker.is_punctual:
        _decide(broker)
    note_doubts(broker)


def keep_messages(broker: Broker, queue: Queue, *, is_killed: bool) -> None:
    """Of one queue alone, whose node of a cluster is up again."""
    _keep_messages(broker, queue, _life(broker, is_killed=is_killed))
    _leave_open(broker, queue)
    broker.refresh(queue)
    note_doubts(broker)


class _Life(NamedTuple):
    """How the life before ended: the messages that must not be lost, and those that clients held."""

    is_killed: bool
    certain: Collection[Message]
    held: Collection[Message]
    #: by queue, whom it counts as consumers: those, and who holds something
    counted: Mapping[Queue, int]


def _life(broker: Broker, *, is_killed: bool) -> _Life:
    counted = {queue: len(queue.consumers) + broker.holders(queue) for queue in broker.queues.values()}
    held = {*_held(broker), *_coming_back(broker)}
    return _Life(is_killed, _certain(broker, is_killed=is_killed), held, counted)


def _certain(broker: Broker, *, is_killed: bool) -> set[Message]:
    """Of a classic queue that is killed what its publisher was told of, else what was seen to have come."""
    certain: set[Message] = set()
    for queue in broker.queues.values():
        keeps = not (is_killed and queue.type is QueueType.CLASSIC)
        arrived = [message for message in queue.messages if message.arrival is not Arrival.PUBLISHED]
        came = (*arrived, *_held(broker, queue)) if keeps else ()
        told = (message for message in (*queue.messages, *_held(broker, queue)) if message.stored_by)
        certain.update(message for message in (*came, *told) if not message.may_be_absent)
    return certain


def _note_unfinished(broker: Broker, channel: Channel) -> None:
    """What the client had not completed is nothing, and is to blame if it turns up."""
    if channel.assembly is not None:
        broker.fired(HALF_CONTENT)
        broker.bookkeeping.note_published(HALF_CONTENT, b"".join(channel.assembly.pieces))
    transaction = channel.transaction
    if transaction is not None and (transaction.publications or transaction.rulings):
        broker.fired(COMMITTED)
        bodies = [publication.pattern.content.body for publication in transaction.publications]
        broker.bookkeeping.note_published(COMMITTED, *bodies)
        channel.transaction = None


def _end_connections(broker: Broker, *, is_killed: bool) -> None:
    """After a kill nobody is there any more who would delete a queue with its last consumer."""
    kept = [queue for queue in broker.queues.values() if queue.auto_delete and queue.durable]
    if kept:
        broker.fired(WITHOUT_CONSUMERS)
    for queue in kept:
        queue.auto_delete = not is_killed
    for connection in list(broker.connections.values()):
        end_channels(broker, connection)
    for queue in kept:
        queue.auto_delete = True


def _forget_clients(broker: Broker) -> None:
    broker.connections.clear()
    broker.channels.clear()
    broker.debtors.clear()
    broker.deliverable.clear()
    broker.timing.clear()
    broker.paused = frozenset()
    broker.teardowns.clear()
    broker.internal_events.clear()
    broker.reply_addresses.clear()
    broker.deleted_of_late.clear()
    broker.known_before_deletion.clear()
    broker.settings.clear()
    broker.alarm = False
    broker.failed.clear()
    broker.shaken = frozenset()


def _survives(queue: Queue) -> bool:
    return queue.durable and queue.owner is None and not queue.reply_address


def _keep_exchanges(broker: Broker) -> None:
    for exchange in list(broker.exchanges.values()):
        if not exchange.durable:
            broker.fired(DURABLE)
            del broker.exchanges[exchange.name]
            broker.bookkeeping.ended_exchanges[exchange.name] = DURABLE
    for exchange in list(broker.exchanges.values()):
        kept = tuple(
            [each for each in exchange.bindings if not each.to_exchange or each.destination in broker.exchanges]
        )
        broker.exchanges[exchange.name] = replace(exchange, bindings=kept, unbound=(), survived=bool(kept))


def _keep_messages(broker: Broker, queue: Queue, life: _Life) -> None:
    is_late = life.is_killed and queue.type is QueueType.QUORUM
    queue.still_counted = life.counted.get(queue, 0) if is_late else 0
    queue.consumers.clear()
    queue.active.consumer = queue.active.previous = None
    queue.ready_while_gone_counted = queue.handed_out = 0
    queue.dropping.clear()
    if "x-expires" in queue.arguments:
        broker.fired(EXPIRES)
        broker.used(queue)
    if queue.type is QueueType.STREAM:
        for message in queue.log:
            message.survived_by = OFFSETS
        return
    if any(not each.message.refused_by for each in queue.gone):
        broker.fired(SETTLED)
    if queue.type is QueueType.CLASSIC and life.is_killed and not broker.is_punctual:
        _take_back_settled(queue)
    queue.gone = tuple([replace(each, requirement=SETTLED) for each in queue.gone])
    for message in list(queue.messages):
        if _is_kept(queue, message):
            _keep(queue, message, life)
        elif broker.dialect.extensions:
            broker.fired(DURABLE)
            _lose(broker, queue, message)
        else:
            message.may_be_absent = True  # the text promises nothing of it
    queue.reason = QUORUM if queue.type is QueueType.QUORUM else DURABLE
    broker.prove_all(queue)
    if queue.type is QueueType.QUORUM:
        _be_late(queue, life)
    queue.at_rest = queue.next_position


def _lose(broker: Broker, queue: Queue, message: Message) -> None:
    place = list(queue.messages).index(message)
    queue.returned -= place < queue.returned
    del queue.messages[place]
    queue.unproven.pop(message, None)
    broker.note_gone(queue, message, DURABLE)


def _keep(queue: Queue, message: Message, life: _Life) -> None:
    message.may_be_absent |= message not in life.certain or message.may_be_gone
    message.may_be_gone = False
    message.passed_over_by = frozenset()
    message.survived_by = _requirement(queue, message, life)
    message.reason = message.survived_by
    if queue.type is QueueType.CLASSIC and life.is_killed and not message.redelivered:
        message.may_be_flagged = True  # what was handed out is not noted (rabbit_variable_queue:init)


def _requirement(queue: Queue, message: Message, life: _Life) -> str:
    """By which it is there."""
    if message.reason == SETTLED:
        return SETTLED
    if message.redelivered:
        return HELD if message.reason in _BY_END else GIVEN_BACK
    if message.stored_by == COMMITTED or (message.stored_by and life.is_killed):
        return message.stored_by
    return QUORUM if queue.type is QueueType.QUORUM else DURABLE


def _be_late(queue: Queue, life: _Life) -> None:
    """It answers before it has its messages again (rabbit_quorum_queue: its counts are metrics), and what clients held
    comes back when it has seen that they are gone.
    """
    for message in queue.messages:
        message.may_be_late = life.is_killed and message in life.held
        message.arrival = Arrival.RETURNING if message in life.held else Arrival.PUBLISHED
        queue.unproven[message] = None


def _take_back_settled(queue: Queue) -> None:
    """That they were settled need not have been noted (rabbit_classic_queue_index_v2: acks are flushed in time)."""
    present = {message.position for message in queue.messages}
    for gone in queue.gone:
        message = gone.message
        was_there = message.position >= 0 and not message.refused_by
        if was_there and message.position not in present and _is_kept(queue, message):
            back = replace(message, redelivered=True, is_first_here=False, may_be_absent=True, reason=SETTLED)
            put_back_in_place(queue, back)
            queue.gone = tuple([each for each in queue.gone if each is not gone])


def _is_kept(queue: Queue, message: Message) -> bool:
    """Does its queue keep such a message on a disk?"""
    return queue.type is not QueueType.CLASSIC or message.content.properties.get("delivery_mode") == _PERSISTENT


def _leave_open(broker: Broker, queue: Queue) -> None:
    """What depends on a message that may be absent nobody can follow: what a limit drops, the offsets of a stream, what
    a delivery limit makes of deliveries that nobody saw.
    """
    if queue.open_by:
        return
    absent = [message for message in queue.messages if message.may_be_absent]
    if queue.type is QueueType.STREAM:
        unknown = any(message.arrival is not Arrival.PROVEN for message in queue.log)
    else:
        limit = delivery_limit(broker, queue) if queue.type is QueueType.QUORUM else None
        exceeded = limit is not None and any(each.delivery_count + each.unseen > limit for each in queue.messages)
        unknown = exceeded or (bool(absent) and has_length_limit(broker, queue))
    if unknown or (absent and len(queue.gone) >= REMEMBERED):
        why = "restart, of which it is not known what was lost in it"
        begin_openness(broker, queue, why)
        note_undecided(broker, why)


def _decide(broker: Broker) -> None:
    """A broker that judges no other one keeps all that it may, and delivers nothing again that was settled."""
    for queue in broker.queues.values():
        for message in [each for each in queue.messages if not _is_kept(queue, each)]:
            _lose(broker, queue, message)
        for message in queue.messages:
            message.redelivered |= message.may_be_flagged
            message.may_be_absent = message.may_be_late = message.may_be_flagged = False
            message.unseen = 0
        queue.still_counted = 0
        broker.prove_all(queue)
        broker.refresh(queue)


def no_change(broker: Broker, action: OperatorAction) -> None:
    """It changes nothing of what the broker remembers."""


FAULT_RULES: dict[str, Callable[[Broker, OperatorAction], None]] = {
    STOPPED: go_down,
    KILLED: go_down,
    "broker.resume": resume,
    "broker.restart": restart,
}
