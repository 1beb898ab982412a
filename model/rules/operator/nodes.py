"""What becomes of a cluster when something is done to a node, or to the network between nodes (area CLUSTER).

A node that is stopped or killed takes with it the connections to it, and nothing else of quorum queues, as long as a
majority is left. What its clients held returns. One that is paused or cut off takes part in nothing until that is over:
its connections may end, or go on. Whom a queue then takes for its consumers, and what it has taken back from them, the
other side does not see: such a queue is open (`model.broker.openness`). A classic queue is where its node is.

Requirements:

* CANCEL-008: nowait is true. Server-sent basic.cancel always has nowait=true: the client must not answer.
  [rabbit_channel.erl:cancel_consumer]
* CANCEL-017: Leader change / node down. Consumers of classic queues on a failed node get basic.cancel; quorum consumers
  are kept over a leader change unless x-cancel-on-ha-failover (mirrored queues, <=3.13) was set. In rabbitmq-3:
  mirrored queues exist. In rabbitmq-4.0: no mirroring. In rabbitmq-4.3: no mirroring. [RabbitMQ guide: consumer cancel
  notification]
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.internal_events import NodeTeardown
from amqpspec.model.broker.mirrors import be_open, is_held, is_mirrored
from amqpspec.model.broker.nodes import SIZE, has_majority, node_of
from amqpspec.model.broker.nodes_shown import CANCELLED, FOLLOWED, MOVED
from amqpspec.model.broker.queues import Arrival, Queue
from amqpspec.model.broker.survival import note_doubts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import OperatorAction, TraceEvent
from amqpspec.model.rules.connection.ending import abandon_connection
from amqpspec.model.rules.operator import mirrors
from amqpspec.model.rules.operator.faults import KILLED, STOPPED, keep_messages

_PAUSED, _CUT = "broker.pause", "network.cut"
_RESUMED, _RESTARTED, _HEALED = "broker.resume", "broker.restart", "network.heal"
_TRANSFERRED = "queue.transfer-leader"
#: Of a cluster only, though they name no node.
_BETWEEN_NODES = (_CUT, _HEALED, "network.slow", _TRANSFERRED)


def is_of_nodes(event: TraceEvent) -> bool:
    """Does it happen to a node of a cluster, or between nodes?"""
    return "node" in event.arguments or (event.name in _BETWEEN_NODES and "connection" not in event.arguments)


def at_nodes(broker: Broker, action: OperatorAction) -> None:
    """Process what happens to a node; without its number, to each."""
    broker.is_unsteady = True
    if action.name == _TRANSFERRED:
        _be_led_by(broker, action)
        return
    _do(broker, action)
    mirrors.be_behind(broker, action.time)


def _do(broker: Broker, action: OperatorAction) -> None:
    number = action.arguments.get("node")
    for node in (number,) if number is not None else range(1, SIZE + 1):
        if action.name in (STOPPED, KILLED):
            _go_down(broker, node, action.name)
        elif action.name in (_PAUSED, _CUT):
            _be_away(broker, node, action.name)
        elif action.name == _RESTARTED:
            _come_back(broker, node)
        elif action.name in (_RESUMED, _HEALED):
            _be_there_again(broker, node, _PAUSED if action.name == _RESUMED else _CUT)


def _be_led_by(broker: Broker, action: OperatorAction) -> None:
    queue = broker.queues.get(action.arguments.get("queue", ""))
    if queue is not None:
        queue.node = action.arguments.get("node", 0)
        _note_leader(broker, queue, MOVED)


def _note_leader(broker: Broker, queue: Queue, by: str) -> None:
    queue.led_anew_by, queue.led_anew_at = by, broker.stamp


def _go_down(broker: Broker, node: int, by: str) -> None:
    cut = broker.failed.get(node, frozenset()) & {_CUT}
    broker.failed = {**broker.failed, node: cut | {by}}
    # the queues may hear of it before the end of the connections is seen
    broker.teardowns += [
        NodeTeardown(connection.name)
        for connection in _connections_of(broker, node)
        if connection.state is ConnectionState.OPEN
    ]
    _find_leaders(broker, node)
    for queue in broker.queues.values():
        if queue.type is QueueType.STREAM:
            be_open(broker, queue)
        elif is_mirrored(broker, queue):
            mirrors.go_down(broker, queue, node)
        elif queue.type is QueueType.CLASSIC and queue.node == node and queue.owner is None:
            _lose(broker, queue)


def _lose(broker: Broker, queue: Queue) -> None:
    """A classic queue goes down with its node; consumers at others are told (rabbit_channel:
    handle_consuming_queue_down_or_eol). What clients there hold, or publish, nobody has.
    """
    elsewhere = [consumer for consumer in queue.consumers if node_of(consumer.channel[0]) != queue.node]
    for consumer in elsewhere:
        channel = broker.channels[consumer.channel]
        broker.remove_consumer(consumer, CANCELLED)
        broker.owe_notice(channel, consumer.tag, CANCELLED, "CANCEL-017", "CANCEL-008")
    if elsewhere or not queue.durable or is_held(broker, queue, besides=queue.node):
        be_open(broker, queue)
    queue.is_down = queue.durable
    broker.refresh(queue)


def _be_away(broker: Broker, node: int, by: str) -> None:
    broker.failed = {**broker.failed, node: broker.failed.get(node, frozenset()) | {by}}
    shaken = broker.connections.values() if broker.dialect.nodes_pause_themselves else _connections_of(broker, node)
    broker.shaken |= {connection.name for connection in shaken}
    _find_leaders(broker, node)
    for queue in broker.queues.values():
        has_it = queue.node in (0, node) and queue.type is QueueType.CLASSIC
        if has_it or queue.type is QueueType.STREAM or _is_used_at(broker, queue, node):
            be_open(broker, queue)


def _find_leaders(broker: Broker, node: int) -> None:
    """Quorum queues that the node led find another leader, or find it again."""
    for queue in broker.queues.values():
        if queue.node == node and queue.type is QueueType.QUORUM:
            queue.node = 0
            _note_leader(broker, queue, FOLLOWED)


def _is_used_at(broker: Broker, queue: Queue, node: int) -> bool:
    """Are there consumers of the queue at the node, or does anybody hold its messages there?"""
    if any(node_of(consumer.channel[0]) == node for consumer in queue.consumers):
        return True
    return any(
        entry.queue is queue
        for channel in broker.channels.values()
        if node_of(channel.connection) == node
        for entry in channel.unacknowledged.values()
    )


def _come_back(broker: Broker, node: int) -> None:
    why = broker.failed.get(node, frozenset())
    left = why & {_CUT}
    for connection in _connections_of(broker, node):
        if connection.state is not ConnectionState.CLOSED:
            end_with_node(broker, connection)
    for queue in broker.queues.values():
        if queue.is_down and queue.node == node:
            queue.is_down = False
            if not queue.open_by:
                keep_messages(broker, queue, is_killed=KILLED in why)
                queue.has_come_back = True
    _set(broker, node, left)


def _be_there_again(broker: Broker, node: int, what: str) -> None:
    _set(broker, node, broker.failed.get(node, frozenset()) - {what})


def _set(broker: Broker, node: int, left: frozenset[str]) -> None:
    others = {number: why for number, why in broker.failed.items() if number != node}
    broker.failed = {**others, node: left} if left else others


def _connections_of(broker: Broker, node: int) -> Iterator[Connection]:
    return (connection for connection in list(broker.connections.values()) if node_of(connection.name) == node)


def may_end_with_node(broker: Broker, connection: Connection) -> bool:
    """May the connection end for no reason of its own?"""
    return node_of(connection.name) in broker.failed or connection.name in broker.shaken or _is_alone(broker)


def _is_alone(broker: Broker) -> bool:
    """A node that is left without a majority may end its connections as well."""
    is_left = bool(broker.failed) and not has_majority(broker.failed)
    return is_left and broker.dialect.nodes_pause_themselves


def end_with_node(broker: Broker, connection: Connection) -> None:
    """Its node is down. What it had published may have been lost with it, where nobody was told otherwise. What was
    held there need not count as failed: the queue need not know more than that the node is not there
    (rabbit_fifo:apply, down noconnection).
    """
    if connection.state is ConnectionState.OPEN:
        held = [
            entry
            for channel in broker.channels.values()
            if channel.connection == connection.name
            for entry in channel.unacknowledged.values()
        ]
        for queue in broker.queues.values():
            active = queue.active.consumer
            queue.has_lost_active |= active is not None and active.channel[0] == connection.name
        abandon_connection(broker, connection)
        for entry in held:
            entry.message.was_lost = entry.message in entry.queue.messages
            entry.message.may_have_timed_out = (
                entry.queue.type is QueueType.QUORUM and entry.message in entry.queue.messages
            )
    connection.state = ConnectionState.CLOSED
    connection.may_end = True
    connection.owed.clear()
    broker.debtors.pop((connection.name, 0), None)
    for queue in broker.queues.values():
        for message in queue.messages:
            if (
                message.arrival is Arrival.PUBLISHED
                and not message.stored_by
                and message.via is not None
                and message.via[0] == connection.name
            ):
                message.may_be_absent = True
    note_doubts(broker)


def tear_down_with_node(broker: Broker, event: NodeTeardown) -> None:
    """The queues hear that the connection has ended with its node."""
    connection = broker.connections[event.connection]
    if connection.state is ConnectionState.OPEN:
        end_with_node(broker, connection)
        connection.state = ConnectionState.CLOSING
