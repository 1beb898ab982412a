"""Which of a queue's messages a delivery carries, and why it cannot be one of them.

Requirements:

* ACK-001: Single ack. ack(tag,false) removes exactly that delivery. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; AMQP 0-9-1 basic.ack]
* CANCEL-016: Cancel holds unacked. After cancel-ok, unacked messages are neither requeued nor lost until acked, nacked
  or channel close. What ends a delivery without its client ends these as well: the time for acknowledging
  (TIMEOUT-011), and the end of an auto-delete queue whose last consumer this was (QUEUE-021, ACK-012). [RabbitMQ Java
  client test NoRequeueOnCancel; AMQP 0-9-1 basic.cancel]
* DLX-005: Routing. Dead-lettering uses x-dead-letter-routing-key or the original keys; the delivered exchange is the
  name of the dead-letter exchange. [RabbitMQ Java client test DeadLetterExchange]
* DLX-009: Order. What is rejected together is dead-lettered in delivery order, and what a limit on length drops at one
  time from the head on. In rabbitmq-3: broken: of what a quorum queue drops at one time the latest comes first. In
  rabbitmq-4.0: broken up to 4.2.0: of what a quorum queue drops at one time the latest comes first. [RabbitMQ release
  notes of 4.2.1 and 4.3.0 (correct order); rabbit_fifo:drop_head]
* PUBLISH-015: Per-channel publish order per queue. Messages published on one channel to one queue through one exchange
  path are enqueued in publish order, and come out in it where one channel takes them, by basic.get or as consumer.
  [AMQP 0-9-1 4.7; rabbit_channel.erl]
* PUBLISH-016: Properties and body are preserved bit-exact. Properties, header table and body (also empty and
  multi-frame) arrive unchanged apart from broker-added headers (x-death*, x-delivery-count, x-acquired-count,
  x-stream-offset) and BCC removal. In rabbitmq-3: as stated; a long-long-int of type L may come back as l. In
  rabbitmq-4.0: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l. In
  rabbitmq-4.3: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l.
  [rabbit_channel.erl:handle_deliver0; AMQP 0-9-1 basic.publish]
"""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import CYCLES, is_dead_letter, is_likely
from amqpspec.model.broker.dispatch import service_is_unknown, taker_before
from amqpspec.model.broker.drops_in_doubt import undo_drop
from amqpspec.model.broker.message_order import (
    is_broken_priority,
    may_be_overtaken,
    may_come_later,
    priority_requirement,
)
from amqpspec.model.broker.queues import Arrival, Gone, Message, Queue
from amqpspec.model.broker.routing import ALTERNATE, EXCHANGE_BINDING, FURTHER_KEYS, SEVERAL_BINDINGS
from amqpspec.model.broker.survival import AGE, LETTERS, ORDER, SETTLED, none_is_there
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.requeue import place_requirement
from amqpspec.model.rules.extensions.message_expiry import too_early

#: Requirements by which a queue gets one copy of a message that reaches it by several ways.
ONE_COPY = (SEVERAL_BINDINGS, EXCHANGE_BINDING, FURTHER_KEYS, ALTERNATE)


def find(broker: Broker, channel: Channel, queue: Queue, method: Method) -> int | str:
    """Place of the delivered message among the ready ones, or the requirement that forbids it to be delivered now.

    Messages ahead of it may be skipped when they can be on their way back to the queue, or came at the same time by
    another channel, or can be on their way to somebody else: the frames of different channels reach the client in any
    order; not those of one channel, if these are in order.
    """
    body = method.content.body if method.content else b""
    messages = queue.messages
    place = _place(messages, method, body)
    if place < 0 and queue.dropping:
        dropping = [each.message for each in queue.dropping]
        if (among := _place(dropping, method, body)) >= 0:
            undo_drop(broker, queue, dropping[among])
            place = queue.returned
    if place < 0 and method.content is not None and is_dead_letter(method.content):
        return _stray_letter(broker, queue, body)
    if place < 0:
        return _whereabouts(broker, queue, body, method.arguments.get("redelivered", False))
    key = channel.key
    found = messages[place]
    ahead = [
        m
        for m in list(messages)[:place]
        if m.arrival is not Arrival.RETURNING
        and not (m.may_be_absent or m.may_be_late)
        and (m.transit_group != found.transit_group or m.via == found.via)
        and not may_come_later(queue, m, found)
        and not may_be_overtaken(queue, m, found)
        # who came back first is not known of those that may have been away
        and not (_is_doubtful(m) or _is_doubtful(found))
        and not _may_be_anywhere(broker, m, found)
    ]
    may_be_elsewhere = len(ahead) <= _room(broker, queue, key) + _taken_before(queue, key, ahead)
    if key in found.passed_over_by or not (may_be_elsewhere and _all_have_takers(broker, queue, key, ahead)):
        if found.deaths and any(m.is_first_here and m.via == found.via for m in ahead):
            return "DLX-009"
        if found.survived_by and ahead and all(m.survived_by for m in ahead):
            return ORDER
        return _order_requirement(broker, queue, place, ahead[0] if ahead else None)
    # a classic queue of which it is unknown whom it serves has not handed to anybody what is skipped
    is_kept = queue.type is QueueType.CLASSIC and service_is_unknown(broker, queue)
    for message in ahead if not is_kept else ():
        message.passed_over_by |= {key}
    return place


def passed_over(broker: Broker, channel: Channel, queue: Queue, place: int) -> int:
    """The message at that place leaves the queue: how many in front of it that may have been lost are so, by that."""
    if _room(broker, queue, channel.key):
        return 0  # they may be with others
    found = queue.messages[place]
    ahead = [
        index
        for index, m in enumerate(list(queue.messages)[:place])
        if m.may_be_absent and (m.transit_group != found.transit_group or m.via == found.via)
    ]
    none_is_there(broker, queue, ahead)
    return len(ahead)


def out_of_order(broker: Broker, queue: Queue, method: Method, requirement: str) -> int | None:
    """The place of a message that comes before others that were published first: that it is gone from there is clear.

    None: it is not there, or the matter is another. Of RabbitMQ's defects each knows how it goes on.
    """
    if broker.dialect.extensions or requirement != "PUBLISH-015" or method.content is None:
        return None
    place = _place(queue.messages, method, method.content.body)
    return None if place < 0 else place


def _may_be_anywhere(broker: Broker, *messages: Message) -> bool:
    """Has any of them been given back, or is a dead letter? The text does not say where it goes."""
    return not broker.dialect.extensions and any(message.redelivered or message.deaths for message in messages)


def _is_doubtful(message: Message) -> bool:
    return bool(message.unseen or message.recalled or message.may_have_timed_out)


def _stray_letter(broker: Broker, queue: Queue, body: bytes) -> str:
    """The requirement that a dead letter breaks which should not be in the queue."""
    gone = [each for each in queue.gone if each.body == body]
    if any(each.requirement == CYCLES for each in gone):
        return CYCLES
    held = (entry.message for each in broker.channels.values() for entry in each.unacknowledged.values())
    places = (*(each.message for each in gone), *(message for message in held if message.content.body == body))
    if any(message.survived_by for message in places):
        return LETTERS
    return too_early(broker, body) or "DLX-005"


def _place(messages: Iterable[Message], method: Method, body: bytes) -> int:
    """Where a message with that body is, -1 if there is none; of several, the one whose way and history are told."""
    first = -1
    for place, message in enumerate(messages):
        if message.content.body != body:
            continue
        if is_likely(message, method):
            return place
        first = place if first < 0 else first
    return first


def _room(broker: Broker, queue: Queue, apart_from: ChannelKey) -> float:
    """How many messages can be on their way to consumers, but for those on that channel."""
    room = float("inf") if service_is_unknown(broker, queue) else 0.0
    for consumer in broker.with_room(queue):
        if consumer.channel != apart_from:
            room += consumer.prefetch - consumer.outstanding if consumer.prefetch else float("inf")
    return room


def _all_have_takers(broker: Broker, queue: Queue, key: ChannelKey, ahead: Iterable[Message]) -> bool:
    """May each of these be on its way to another channel, which has not been handed a later one?"""
    skipped = [message for message in ahead if message.passed_over_by]
    if not skipped or service_is_unknown(broker, queue):
        return True
    others = {consumer.channel for consumer in broker.with_room(queue)} - {key}
    for message in skipped:
        before = taker_before(queue, message)
        takers = others if before is None else others | ({before.channel} - {key})
        if takers <= message.passed_over_by:
            return False
    return True


def _taken_before(queue: Queue, apart_from: ChannelKey, ahead: Iterable[Message]) -> int:
    """How many of these the active consumer before may have been handed, if it is not on that channel."""
    takers = (taker_before(queue, message) for message in ahead)
    return sum(taker is not None and taker.channel != apart_from for taker in takers)


def _order_requirement(broker: Broker, queue: Queue, place: int, skipped: Message | None) -> str:
    """Which rule of order a delivery out of turn breaks: that of priorities if these say which message is first, else
    that of requeueing if any of these came back.
    """
    if skipped is not None:
        from_returned = queue.messages.index(skipped) < queue.returned
        if is_broken_priority(queue, skipped, queue.messages[place], from_returned):
            return priority_requirement(queue)
    if not any(message.redelivered for message in list(queue.messages)[: place + 1]):
        return "PUBLISH-015"
    if not broker.dialect.extensions:
        return "PUBLISH-015"  # the text does not say where the others go: it is the order of those that never came back
    return place_requirement(broker, queue)


def _whereabouts(broker: Broker, queue: Queue, body: bytes, redelivered: bool) -> str:
    """The requirement that a delivery of this content breaks, by where the content is."""
    routed = routed_by(broker, body)
    if routed in ONE_COPY and not redelivered:
        return routed  # one more copy of a message that could come by several ways
    for gone in reversed(queue.gone):
        if gone.body == body:
            return _gone_after_restart(gone) if gone.message.survived_by else gone.requirement
    for channel in broker.channels.values():
        for tag, entry in channel.unacknowledged.items():
            if entry.queue is queue and entry.message.content.body == body:
                if channel.transaction is not None and (why := channel.transaction.holds(tag)):
                    return why
                if entry.message.survived_by:
                    return SETTLED
                cancelled = entry.consumer is not None and entry.consumer.tag not in channel.consumers
                return "CANCEL-016" if cancelled else "ACK-001"
    for other in broker.queues.values():
        for message in other.messages:
            if message.content.body == body:
                return message.reason
    return routed or "PUBLISH-016"


def _gone_after_restart(gone: Gone) -> str:
    """It has left its queue, where it was after a restart."""
    return AGE if gone.requirement.startswith("TTL") else SETTLED


def routed_by(broker: Broker, body: bytes) -> str | None:
    """The requirement that decided where a message of late went, or that it went nowhere."""
    return next((each.requirement for each in reversed(broker.bookkeeping.published) if each.body == body), None)
