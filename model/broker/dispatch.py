"""Who is served: which of a queue's consumers may be handed its next message (areas SAC and PRIORITY).

RabbitMQ: rabbit_queue_consumers:deliver and rabbit_amqqueue_process:new_single_active_consumer_after_* for classic
queues, rabbit_fifo:checkout_one and activate_next_consumer for quorum queues. Source: guides "consumer priorities" and
"single active consumer".

Requirements:

* PRIORITY-001: Higher priority served first. A ready message goes to a consumer of the highest priority that has room;
  to those of a lower one only when all of a higher one are full. Without x-priority it is 0, and it may be negative.
  What settles for several consumers at once makes room for one after another, and may serve any of them in between.
  [rabbit_queue_consumers; RabbitMQ Java client test ConsumerPriorities]
* SAC-001: Only one consumer active. With x-single-active-consumer=true one consumer at a time gets deliveries: the
  first registered one, until another follows it. [rabbit test suite single_active_consumer_SUITE]
* SAC-004: Priority takeover. quorum 4.x: a later consumer with higher x-priority takes over once the active one has no
  unacknowledged messages; until then the active one gets nothing new, unless the other ends before. Classic queues and
  3.10: the active one stays. In rabbitmq-3: no takeover. In rabbitmq-4.0: quorum takeover; broken: not when the last
  message was given back, and not undone when the other ends. In rabbitmq-4.3: quorum takeover; broken: not undone when
  the other ends. [rabbit_fifo:quiescing]
* TIMEOUT-014: A timed-out consumer is gone. The basic.cancel that tells of a timeout says that the consumer is gone: it
  is handed nothing, and not before everything that has timed out is settled in any case; it is not counted, and
  excludes nobody. A broker that announces accept_consumer_cancel_ok may still know it until the client answers with
  basic.cancel-ok, and for a short time without that (TIMEOUT-016, TIMEOUT-030). In rabbitmq-4.3: broken up to 4.3.6:
  counted. [RabbitMQ guide: consumer cancel notification (the consumption has stopped); RabbitMQ guide: consumer
  timeouts (no new messages, and none before all timed-out ones are settled); release notes of RabbitMQ 4.3.7]
"""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.promises.queue_types import QueueType

#: The credit of a quorum queue's consumer without limit (rabbit_fifo_client: UNLIMITED_PREFETCH_COUNT).
UNLIMITED = 2000


def priority(consumer: Consumer) -> int:
    """The consumer's own, of which the highest comes first; not that of messages."""
    return int(consumer.arguments.get("x-priority", 0))


def contenders(broker: BrokerState, queue: Queue) -> list[Consumer]:
    """The consumers among whom the queue's next message goes: all, or the active one if there is but one (SAC-001)."""
    active = queue.active
    if not queue.single_active_consumer:
        return queue.consumers
    return [] if active.consumer is None or active.is_quiescing else [active.consumer]


def service_is_unknown(broker: BrokerState, queue: Queue) -> bool:
    """Can nobody know what the queue does? Then it may deliver to any consumer, or to none."""
    return bool(queue.open_by) or queue.is_down


def highest(consumers: Iterable[Consumer]) -> list[Consumer]:
    """Those of the highest priority among them, in their order (PRIORITY-001)."""
    candidates = list(consumers)
    if len(candidates) < 2:
        return candidates
    best = max(map(priority, candidates))
    return [consumer for consumer in candidates if priority(consumer) == best]


def successor(broker: BrokerState, queue: Queue, takeover: bool) -> Consumer | None:
    """The waiting consumer that becomes the active one next. `takeover`: quorum queues look at priorities (SAC-004).

    Classic: the highest priority, then the oldest (the head of the service queue). Quorum without takeover: the oldest
    (`Waiting ++ [New]`). Quorum with takeover: the highest priority, then the greatest limit, then the oldest
    (rabbit_fifo:sort_waiting).
    """
    others = (each for each in queue.consumers if each is not queue.active.consumer)
    waiting = [each for each in others if not each.timed_out]  # TIMEOUT-014
    if not waiting:
        return None
    if queue.type is QueueType.CLASSIC:
        return highest(waiting)[0]
    if not takeover:
        return waiting[0]
    return max(waiting, key=rank)


def rank(consumer: Consumer) -> tuple[int, int, int]:
    """Of the waiting consumers the one with the highest rank is next (rabbit_fifo:sort_waiting)."""
    return (priority(consumer), _credit(consumer), -consumer.created)


def _credit(consumer: Consumer) -> int:
    """One without acknowledgements has the limit of its channel as well (rabbit_quorum_queue:consume)."""
    return consumer.prefetch or consumer.unheeded_prefetch or UNLIMITED


def elect(broker: BrokerState, queue: Queue, requirement: str) -> None:
    """Consumers came, went or settled: which is the active consumer now?

    `requirement`: the one by which a consumer becomes active where there is no active one. SAC-004: where a quorum
    queue knows takeover, a waiting consumer of higher priority becomes active as soon as the active one holds nothing;
    until then the active one gets nothing new.
    """
    active, takeover = queue.active, broker.dialect.quorum_active_by_priority
    if active.consumer is not None and (active.consumer not in queue.consumers or active.consumer.timed_out):
        active.consumer, active.is_quiescing = None, False
    following = successor(broker, queue, takeover)
    if active.consumer is None:
        if following is not None:
            _activate(queue, following, broker.stamp, requirement)
        return
    if queue.type is not QueueType.QUORUM or not takeover:
        return
    if following is None or priority(following) <= priority(active.consumer):
        active.is_quiescing = False
        return
    if not active.is_quiescing:
        active.is_quiescing = True
        active.previous, active.previous_may_hold_before = active.consumer, broker.stamp
    if not active.consumer.outstanding:
        _activate(queue, following, broker.stamp, "SAC-004")


def _activate(queue: Queue, consumer: Consumer, stamp: int, requirement: str) -> None:
    active = queue.active
    active.consumer, active.is_quiescing, active.became_by, active.is_shown = consumer, False, requirement, False
    if requirement != "SAC-001":
        consumer.reason, consumer.stamp = requirement, stamp


def was_on_its_way(queue: Queue, consumer: Consumer, stamp: int) -> bool:
    """May a message that has been ready since `stamp` have been handed to the previous active consumer?

    The frames of different channels come in any order: one that is being replaced is still seen to be served.
    """
    return consumer is queue.active.previous and stamp < queue.active.previous_may_hold_before


def taker_before(queue: Queue, message: Message) -> Consumer | None:
    """The previous active consumer, if it may have been handed the message unseen before it gave way.

    One that acknowledges is seen to do so first, and holds the place until then.
    """
    previous = queue.active.previous
    if previous is None or previous not in queue.consumers or not previous.no_ack:
        return None
    return previous if was_on_its_way(queue, previous, message.stamp) else None


def is_chosen(broker: BrokerState, queue: Queue, consumer: Consumer) -> bool:
    """It is handed something: may it be the active one, which only that shows? Which of those that wait is the next one
    is RabbitMQ's way; that it stays is the feature (SAC-001).
    """
    if broker.dialect.extensions or queue.active.is_shown or consumer not in queue.consumers:
        return False
    _activate(queue, consumer, broker.stamp, queue.active.became_by)
    return True


def stays_after_all(queue: Queue, consumer: Consumer) -> None:
    """It was seen to be handed a message to acknowledge, so it is still the active consumer (SAC-004)."""
    queue.active.consumer, queue.active.is_quiescing = consumer, True
