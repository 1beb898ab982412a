"""Whose turn it is: may this consumer be handed that message, or somebody else (areas SAC and PRIORITY)?

The broker decides when a message is ready at the queue; the client sees it later, in any order between channels. So
only what is certain counts against a delivery. Room that a settlement makes is not certain before all is at rest. A
settlement for several consumers reaches the queue consumer by consumer (rabbit_channel:foreach_per_queue): as long as
the queue knows of the first one's room only, it serves that one whatever its priority. Other ready messages may be on
their way to consumers that seem to have been passed over.

Requirements:

* PRIORITY-001: Higher priority served first. A ready message goes to a consumer of the highest priority that has room;
  to those of a lower one only when all of a higher one are full. Without x-priority it is 0, and it may be negative.
  What settles for several consumers at once makes room for one after another, and may serve any of them in between.
  [rabbit_queue_consumers; RabbitMQ Java client test ConsumerPriorities]
* PRIORITY-002: Turns within a priority. Consumers of one priority take turns: while one waits with room, no other is
  served twice before it has had its turn. One without room holds up nobody. Whose turn comes first is open. [RabbitMQ
  guide: consumer priorities; rabbit_queue_consumers:deliver, rabbit_fifo:checkout_one]
* SAC-001: Only one consumer active. With x-single-active-consumer=true one consumer at a time gets deliveries: the
  first registered one, until another follows it. [rabbit test suite single_active_consumer_SUITE]
* SAC-003: Failover on channel close. Unacked messages of the closed channel are delivered first to the next consumer,
  redelivered=true. [rabbit test suite single_active_consumer_SUITE]
* SAC-004: Priority takeover. quorum 4.x: a later consumer with higher x-priority takes over once the active one has no
  unacknowledged messages; until then the active one gets nothing new, unless the other ends before. Classic queues and
  3.10: the active one stays. In rabbitmq-3: no takeover. In rabbitmq-4.0: quorum takeover; broken: not when the last
  message was given back, and not undone when the other ends. In rabbitmq-4.3: quorum takeover; broken: not undone when
  the other ends. [rabbit_fifo:quiescing]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.dispatch import (
    contenders,
    is_chosen,
    priority,
    service_is_unknown,
    stays_after_all,
    was_on_its_way,
)
from amqpspec.model.broker.queues import Arrival, Consumer, Message, Queue
from amqpspec.model.outputs.mismatch import NONE, Mismatches, unexpected
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey

#: Deliveries that a classic queue makes to a channel before one is on the wire (rabbit_queue_consumers:is_ch_blocked).
UNSENT_LIMIT = 200


def check_turn(broker: Broker, queue: Queue, consumer: Consumer, message: Message) -> Mismatches:
    """What is wrong about handing this ready message to this consumer, and not to another."""
    if queue.single_active_consumer:
        return _check_active_consumer(broker, queue, consumer, message)
    if len(queue.consumers) < 2 or service_is_unknown(broker, queue) or not _serves_in_turn(broker):
        return NONE
    others_ready = len(queue.messages) - 1
    above = [other for other in _waiting(broker, queue, consumer) if priority(other) > priority(consumer)]
    if sum(map(_room, above)) > others_ready:
        return unexpected("PRIORITY-001", "basic.deliver to a consumer of lower priority")
    if is_out_of_turn(broker, queue, consumer):
        return unexpected("PRIORITY-002", "basic.deliver to the same consumer before one that waits has had its turn")
    return NONE


def is_out_of_turn(broker: Broker, queue: Queue, consumer: Consumer) -> bool:
    """PRIORITY-002: has it had its turn since another has been waiting, when a single message is ready?"""
    if queue.single_active_consumer or len(queue.messages) != 1 or len(queue.consumers) < 2:
        return False
    if not _serves_in_turn(broker):
        return False
    return any(_key(consumer) in other.overtaken_by for other in _beside(broker, queue, consumer))


def _serves_in_turn(broker: Broker) -> bool:
    """Do consumers take turns? Only a broker with consumer priorities promises that; the text does not."""
    return broker.dialect.has("consumer_priorities")


def _check_active_consumer(broker: Broker, queue: Queue, consumer: Consumer, message: Message) -> Mismatches:
    active = queue.active
    if service_is_unknown(broker, queue):
        return NONE
    if active.consumer is consumer and not (active.is_quiescing and not was_on_its_way(queue, consumer, message.stamp)):
        if active.became_by == "SAC-003" and broker.dialect.extensions and _lost_before(queue, message, consumer.stamp):
            return unexpected("SAC-003", "basic.deliver before the messages that the former consumer held")
        return NONE
    if is_chosen(broker, queue, consumer):
        return NONE
    if was_on_its_way(queue, consumer, message.stamp):
        if not consumer.no_ack:
            stays_after_all(queue, consumer)
        return NONE
    requirement = active.became_by
    takes_over = active.consumer is not None and priority(consumer) > priority(active.consumer)
    if active.is_quiescing or (requirement == "SAC-001" and takes_over):
        requirement = "SAC-004"
    return unexpected(requirement, "basic.deliver to a consumer that is not active")


def _lost_before(queue: Queue, message: Message, stamp: int) -> bool:
    """Is a message ready, ahead of this one, that came back when the active consumer ended?"""
    if message.stamp == stamp or message.unseen or message.recalled:
        return False  # it came back as well, or perhaps did before
    ahead = takewhile(lambda other: other is not message, queue.messages)
    return any(other.stamp == stamp and other.redelivered for other in ahead)


def note_order(queue: Queue, index: int) -> None:
    """The ready message at that place is about to be handed over: which of the others may have been before it?"""
    if len(queue.consumers) < 2:
        return
    taken = queue.messages[index]
    for place, other in enumerate(queue.messages):
        other.is_late |= place < index or (place > index and not _is_certainly_behind(other, taken))


def _is_certainly_behind(other: Message, taken: Message) -> bool:
    if Arrival.RETURNING in (other.arrival, taken.arrival):
        return False
    return abs(other.transit_group) != abs(taken.transit_group) or other.via == taken.via


def note_turn(broker: Broker, queue: Queue, consumer: Consumer, message: Message) -> Iterator[str]:
    """The consumer is being handed a message that has left its queue: what that shows, and what it means for others."""
    queue.active.is_shown = True
    if len(queue.consumers) < 2:
        if queue.single_active_consumer and queue.active.became_by != "SAC-001":
            yield queue.active.became_by
            queue.active.became_by = "SAC-001"
        return
    if queue.single_active_consumer:
        yield "SAC-001"
        if queue.active.became_by != "SAC-001":
            yield queue.active.became_by
            queue.active.became_by = "SAC-001"
        elif any(priority(other) > priority(consumer) for other in queue.consumers):
            yield "SAC-004"
        return
    own = priority(consumer)
    others = [other for other in queue.consumers if other is not consumer]
    if any(priority(other) < own and broker.has_room(other) for other in others):
        yield "PRIORITY-001"
    if any(priority(other) > own for other in others):
        yield "PRIORITY-001"
    beside = list(_beside(broker, queue, consumer))
    if any(_key(other) in consumer.overtaken_by for other in beside):
        yield "PRIORITY-002"
    consumer.overtaken_by = frozenset()
    if not queue.messages and not message.is_late:
        for other in beside:
            other.overtaken_by |= {_key(consumer)}


def turns_come_to_rest(broker: Broker) -> None:
    """Nothing is under way: the queues know of all that was settled, and their consumers of all that was theirs."""
    for queue in broker.queues.values():
        queue.active.previous = None
        for consumer in queue.consumers:
            consumer.is_doubtful = False


def held_up_by(broker: Broker, queue: Queue, consumer: Consumer) -> str | None:
    """The requirement by which a message goes to this consumer though others have no room, if there are such."""
    if not _serves_in_turn(broker):
        return None
    full = [other for other in contenders(broker, queue) if not broker.has_room(other)]
    if not full:
        return None
    return "PRIORITY-001" if any(priority(other) > priority(consumer) for other in full) else "PRIORITY-002"


def _key(consumer: Consumer) -> tuple[ChannelKey, str]:
    return (consumer.channel, consumer.tag)


def _beside(broker: Broker, queue: Queue, consumer: Consumer) -> Iterator[Consumer]:
    """Others of the same priority that certainly wait with room."""
    return (other for other in _waiting(broker, queue, consumer) if priority(other) == priority(consumer))


def _waiting(broker: Broker, queue: Queue, consumer: Consumer) -> Iterator[Consumer]:
    """Other consumers of the queue that certainly have room. One whose channel has a limit hears of it some time
    later, from a process that is neither the channel nor the queue (rabbit_limiter).
    """
    for other in queue.consumers:
        if other is consumer or other.is_doubtful or not other.announced:
            continue
        if other.unheeded_prefetch and queue.type is QueueType.QUORUM:
            continue
        channel = broker.channels[other.channel]
        if channel.state is not ChannelState.OPEN or channel.channel_prefetch or broker.dialect.prefetch_is_shared:
            continue
        if broker.has_room(other):
            yield other


def _room(consumer: Consumer) -> int:
    if consumer.no_ack or not consumer.prefetch:
        return UNSENT_LIMIT
    return consumer.prefetch - consumer.outstanding
