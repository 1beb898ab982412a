"""What becomes of a broker that is stopped, killed, paused and started again (area DURABLE).

A stop ends the connections first, each with connection.close or without a word (CONN-023), then the broker; a kill ends
all at once. What a client had sent by then may have been processed, or not. Faults of networks and of single nodes
change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.openness import begin_openness, note_undecided
from amqpspec.model.broker.overflow import has_length_limit
from amqpspec.model.broker.queues import Arrival, Exchange, Message, Queue
from amqpspec.model.broker.message_order import put_back_in_place
from amqpspec.model.broker.survival import note_doubts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import OperatorAction
from amqpspec.model.rules.basic.requeue import delivery_limit
from amqpspec.model.rules.connection.ending import end_connection

STOPPED, KILLED = "broker.stop", "broker.kill"
#: The code with which it ends connections when it is stopped.
FORCED = 320
_PERSISTENT = 2
#: As many of the messages that are gone as are remembered (`Queue.gone`).
_REMEMBERED = 64


def go_down(broker: Broker, action: OperatorAction) -> None:
    """From now on it may be down: each connection may end at any moment, and nothing is owed any more."""
    broker.down_by = action.name


def restart(broker: Broker, action: OperatorAction) -> None:
    """It is up again, with what has survived."""
    is_killed = broker.down_by == KILLED
    known = _known(broker, is_killed=is_killed)
    doubted = [queue for queue in broker.queues.values() if _may_be_shared(broker, queue)]
    _end_connections(broker, is_killed=is_killed)
    _forget_clients(broker)
    for queue in list(broker.queues.values()):
        if not _survives(queue):
            broker.fired("DURABLE-001" if not queue.durable else "DURABLE-006")
            broker.end_queue(queue, "DURABLE-001" if not queue.durable else "DURABLE-006")
    _keep_exchanges(broker)
    for queue in broker.queues.values():
        _keep_messages(broker, queue, known, is_killed=is_killed)
    for queue in doubted:
        _doubt_unseen(queue)
    for queue in broker.queues.values():
        _leave_open(broker, queue)
        broker.refresh(queue)
    broker.touched.clear()
    broker.down_by = ""
    note_doubts(broker)


def _known(broker: Broker, *, is_killed: bool) -> set[Message]:
    """The messages that must not be lost: of a classic queue that is killed what its publisher was told of, else what
    was seen to have come.
    """
    held = [entry.message for channel in broker.channels.values() for entry in channel.unacknowledged.values()]
    known: set[Message] = set()
    for queue in broker.queues.values():
        for message in queue.messages:
            if message.is_stored or (message.arrival is not Arrival.PUBLISHED and not _is_lost(queue, is_killed)):
                known.add(message)
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.message.is_stored or not _is_lost(entry.queue, is_killed):
                known.add(entry.message)
    return {message for message in known if not message.may_be_absent} if held or known else known


def _is_lost(queue: Queue, is_killed: bool) -> bool:
    """Does the queue lose what it has and told nobody of?"""
    return is_killed and queue.type is QueueType.CLASSIC


def _may_be_shared(broker: Broker, queue: Queue) -> bool:
    """May what one client held have been handed to another one before that one's connection ended as well?"""
    return len({consumer.channel for consumer in queue.consumers if broker.has_room(consumer)}) > 1


def _doubt_unseen(queue: Queue) -> None:
    for message in queue.messages:
        message.may_be_flagged = message.may_be_flagged or not message.redelivered
        message.unseen += 1


def _end_connections(broker: Broker, *, is_killed: bool) -> None:
    """After a kill nobody is there any more who would delete a queue with its last consumer."""
    kept = [queue for queue in broker.queues.values() if is_killed and queue.auto_delete]
    for queue in kept:
        queue.auto_delete = False
    for connection in list(broker.connections.values()):
        end_connection(broker, connection)
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


def _survives(queue: Queue) -> bool:
    return queue.durable and queue.owner is None and not queue.reply_address


def _keep_exchanges(broker: Broker) -> None:
    for exchange in list(broker.exchanges.values()):
        if not exchange.durable:
            broker.fired("DURABLE-001")
            del broker.exchanges[exchange.name]
            broker.bookkeeping.ended_exchanges[exchange.name] = "DURABLE-001"
    for exchange in list(broker.exchanges.values()):
        broker.exchanges[exchange.name] = _with_bindings(exchange, broker)


def _with_bindings(exchange: Exchange, broker: Broker) -> Exchange:
    kept = tuple(
        [each for each in exchange.bindings if each.destination in (broker.exchanges if each.to_exchange else broker.queues)]
    )
    return replace(exchange, bindings=kept, unbound=())


def _keep_messages(broker: Broker, queue: Queue, known: set[Message], *, is_killed: bool) -> None:
    queue.consumers.clear()
    queue.still_counted = queue.ready_while_gone_counted = queue.handed_out = 0
    queue.dropping.clear()
    if queue.name in broker.expiring:
        queue.idle_since, queue.idle_by = broker.now, broker.latest
        queue.uses += 1
    if queue.type is QueueType.STREAM:
        return
    if queue.type is QueueType.CLASSIC and is_killed:
        _take_back_settled(queue)
    for message in list(queue.messages):
        if queue.type is QueueType.CLASSIC and not _is_persistent(message):
            broker.fired("DURABLE-001")
            queue.messages.remove(message)
            queue.unproven.pop(message, None)
            broker.note_gone(queue, message, "DURABLE-001")
            continue
        is_known = message in known
        message.may_be_absent = message.may_be_absent or not is_known or message.may_be_gone
        message.may_be_gone = False
        message.survived_by = _requirement(queue, message, is_killed)
        if not message.redelivered or is_known:
            message.reason = message.survived_by
        if queue.type is QueueType.CLASSIC and is_killed and not message.redelivered:
            message.may_be_flagged = True
        message.passed_over_by = frozenset()
    queue.returned = min(queue.returned, len(queue.messages))
    queue.reason = "DURABLE-001" if queue.type is QueueType.CLASSIC else "DURABLE-002"
    broker.prove_all(queue)
    queue.at_rest = queue.next_position


def _take_back_settled(queue: Queue) -> None:
    """That they were settled need not have been noted (rabbit_classic_queue_index_v2: acks are flushed in time)."""
    present = set(queue.messages)
    for message in queue.gone:
        if message not in present and _is_persistent(message) and not message.refused_by:
            message.redelivered = True
            message.may_be_absent = True
            put_back_in_place(queue, message)
    queue.gone.clear()


def _is_persistent(message: Message) -> bool:
    return message.content.properties.get("delivery_mode") == _PERSISTENT


def _requirement(queue: Queue, message: Message, is_killed: bool) -> str:
    """By which it is there."""
    if message.redelivered:
        return "DURABLE-003"
    if message.is_stored and is_killed:
        return "DURABLE-004"
    return "DURABLE-001" if queue.type is QueueType.CLASSIC else "DURABLE-002"


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
    if unknown or (absent and len(queue.gone) >= _REMEMBERED):
        why = "restart, of which it is not known what was lost in it"
        begin_openness(broker, queue, why)
        note_undecided(broker, why)


def no_change(broker: Broker, action: OperatorAction) -> None:
    """What a network does, or a node that goes on, changes nothing of what the broker remembers."""


FAULT_RULES: dict[str, Callable[[Broker, OperatorAction], None]] = {
    STOPPED: go_down,
    KILLED: go_down,
    "broker.restart": restart,
}
