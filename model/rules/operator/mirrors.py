"""What becomes of a mirrored classic queue when a node fails (`model.broker.mirrors`).

When its leader goes, a mirror becomes the leader. CLUSTER-014: consumers go on, or with x-cancel-on-ha-failover are
told as CANCEL-017 and CANCEL-008 say. CLUSTER-013: it has all that was confirmed. Nobody is told who leads from then
on, so only the first such change is followed. What clients held comes again, and what they settled just before may:
such a queue is open. So is one with several consumers, which are consumed anew in any order, and one of whose mirrors
nobody knows what they have: the policy came later than the queue, or their nodes were gone.

Source: rabbit_mirror_queue_misc:remove_from_queue, rabbit_mirror_queue_slave:promote_me;
rabbit_channel:handle_consuming_queue_down_or_eol, queue_down_consumer_action.

Requirements:

* CANCEL-008: nowait is true. Server-sent basic.cancel always has nowait=true: the client must not answer.
  [rabbit_channel.erl:cancel_consumer]
* CANCEL-017: Leader change / node down. Consumers of classic queues on a failed node get basic.cancel; quorum consumers
  are kept over a leader change unless x-cancel-on-ha-failover (mirrored queues, <=3.13) was set. In rabbitmq-3:
  mirrored queues exist. In rabbitmq-4.0: no mirroring. In rabbitmq-4.3: no mirroring. [RabbitMQ guide: consumer cancel
  notification]
* CLUSTER-013: Mirrored: a confirm waits for all mirrors. A publish to a classic queue that a policy mirrors (ha-mode)
  is confirmed when each mirror has it: who is told so finds it there when the leader is lost. [RabbitMQ 3.10 guide:
  classic queue mirroring (publisher confirms); v3.10.9 rabbit_mirror_queue_master]
* CLUSTER-014: Mirrored: consumers and a new leader. When a mirror becomes the leader of a mirrored classic queue, its
  consumers go on; those with x-cancel-on-ha-failover are cancelled. [RabbitMQ 3.10 guide: classic queue mirroring
  (cancellation); v3.10.9 rabbit_mirror_queue_slave:promote_me; rabbit_channel:handle_consuming_queue_down_or_eol]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.mirrors import UNTIL_GONE, be_open, is_held
from amqpspec.model.broker.nodes import node_of
from amqpspec.model.broker.nodes_shown import MIRRORED, PROMOTED
from amqpspec.model.broker.queues import Queue
from amqpspec.model.rules.operator.faults import KILLED, STOPPED

#: Any number of positions.
_ALL = 2**62


def go_down(broker: Broker, queue: Queue, node: int) -> None:
    """The node is down."""
    led_by, mirrors = queue.node, queue.mirrors - {node}
    queue.mirrors = mirrors
    if led_by == node and mirrors:
        _promote(broker, queue)
    elif led_by in (0, node):
        be_open(broker, queue)
        queue.node = 0


def _promote(broker: Broker, queue: Queue) -> None:
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.queue is queue and entry.consumer is not None:
                entry.consumer.outstanding, entry.consumer = 0, None  # the new leader knows nothing of it
    staying = 0
    for consumer in [each for each in queue.consumers if node_of(each.channel[0]) != queue.node]:
        if consumer.arguments.get("x-cancel-on-ha-failover") is True:
            channel = broker.channels[consumer.channel]
            broker.remove_consumer(consumer, PROMOTED)
            broker.owe_notice(channel, consumer.tag, PROMOTED, "CANCEL-017", "CANCEL-008")
        else:
            staying += 1
    if queue.next_position > len(queue.messages) or staying > 1 or is_held(broker, queue):
        be_open(broker, queue)
    for message in queue.messages:
        message.may_be_flagged = True  # mirrors keep all as handed out (rabbit_mirror_queue_slave:process_instruction)
        if message.stored_by:
            message.reason = MIRRORED
    queue.node = 0
    queue.led_anew_by, queue.led_anew_at = PROMOTED, broker.stamp
    broker.refresh(queue)


def be_behind(broker: Broker, now: float) -> None:
    """Something was done to a node: note which queues wait for mirrors that do not answer."""
    away = {node for node, why in broker.failed.items() if not why & {STOPPED, KILLED}}
    for queue in broker.queues.values():
        waits, since = bool(queue.mirrors & away), queue.behind_since
        if waits and since is None:
            queue.behind_since, queue.behind = now, range(queue.next_position, _ALL)
        elif since is not None and not waits:
            if now >= since + UNTIL_GONE:
                be_open(broker, queue)  # the others may have gone on without it, and it without them
            queue.behind_since, queue.behind = None, range(queue.behind.start, queue.next_position)
    for channel in broker.channels.values():
        if channel.unconfirmed:
            broker.settle_debts(channel)
