"""Which message a delivery carries, and what its content must look like (PUBLISH-016, QUORUM-001, STREAM-003).

Requirements:

* ACK-001: Single ack. ack(tag,false) removes exactly that delivery. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; AMQP 0-9-1 basic.ack]
* ACK-015: redelivered flag. false on first delivery of a message from this queue, true on every later delivery after
  requeue by nack, reject, recover, cancel+close, channel/connection close, timeout - whether or not the client saw the
  first delivery. [AMQP 0-9-1 basic.deliver; rabbit_channel.erl]
* CANCEL-016: Cancel holds unacked. After cancel-ok, unacked messages are neither requeued nor lost until acked, nacked
  or channel close. What ends a delivery without its client ends these as well: the time for acknowledging
  (TIMEOUT-011), and the end of an auto-delete queue whose last consumer this was (QUEUE-021, ACK-012). [RabbitMQ Java
  client test NoRequeueOnCancel; AMQP 0-9-1 basic.cancel]
* CONSUME-014: Delivery tags are shared per channel. Tags start at 1 per channel and increase by 1 over ALL deliveries
  and get-oks of the channel, ack or no-ack, across consumers and queues. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; rabbit_channel.erl:record_sent]
* DLX-005: Routing. Dead-lettering uses x-dead-letter-routing-key or the original keys; the delivered exchange is the
  name of the dead-letter exchange. [RabbitMQ Java client test DeadLetterExchange]
* DLX-009: Order. What is rejected together is dead-lettered in delivery order, and what a limit on length drops at one
  time from the head on. In rabbitmq-3: broken: of what a quorum queue drops at one time the latest comes first. In
  rabbitmq-4.0: broken up to 4.2.0: of what a quorum queue drops at one time the latest comes first. [RabbitMQ release
  notes of 4.2.1 and 4.3.0 (correct order); rabbit_fifo:drop_head]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* PUBLISH-002: Default exchange routes by queue name. routing key = queue name; unknown name is unroutable.
  [rabbit_exchange:route; AMQP 0-9-1 basic.publish]
* PUBLISH-015: Per-channel publish order per queue. Messages published on one channel to one queue through one exchange
  path are enqueued in publish order, and come out in it where one channel takes them, by basic.get or as consumer.
  [AMQP 0-9-1 4.7; rabbit_channel.erl]
* PUBLISH-016: Properties and body are preserved bit-exact. Properties, header table and body (also empty and
  multi-frame) arrive unchanged apart from broker-added headers (x-death*, x-delivery-count, x-acquired-count,
  x-stream-offset) and BCC removal. In rabbitmq-3: as stated; a long-long-int of type L may come back as l. In
  rabbitmq-4.0: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l. In
  rabbitmq-4.3: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l.
  [rabbit_channel.erl:handle_deliver0; AMQP 0-9-1 basic.publish]
* QUORUM-001: x-delivery-count header. Counts earlier failed deliveries; absent on the first delivery from 4.0 on, 0 on
  basic.get in 3.10. A client's own header of that name comes through as long as the broker has no count. Classic queues
  count nothing. In rabbitmq-3: 0 or absent on first get, as versions differ (absent from 3.12.0 on), absent on first
  deliver. In rabbitmq-4.0: absent first, then 1,2.. In rabbitmq-4.3: absent unless failed; x-acquired-count counts
  every return. [rabbit_fifo_client:add_delivery_count_header]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
* RECOVER-005: recover on quorum counts like nack. 4.0: x-delivery-count +1; 4.3: only x-acquired-count +1. In
  rabbitmq-3: x-delivery-count 1, message to tail. In rabbitmq-4.0: x-delivery-count 1. In rabbitmq-4.3:
  x-acquired-count 1. [rabbit_fifo]
* STREAM-003: Non-destructive, offset header. Reading a stream takes nothing away: every consumer is handed the same
  messages, in the order of the log, also after others have acknowledged them. Deliveries carry x-stream-offset (from
  0), and redelivered is always false. [RabbitMQ guide: streams; rabbit_stream_queue:stream_entries]
* TIMEOUT-012: Messages are returned. Timed-out messages become ready at once: passive declare counts them, another
  consumer gets them with redelivered=true. [RabbitMQ guide: consumer timeouts (ready, for any consumer); AMQP 0-9-1
  basic.deliver (redelivered)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import (
    CYCLES,
    as_seen,
    is_dead_letter,
    is_first_here,
    is_likely,
    wrong_of_death,
)
from amqpspec.model.broker.dispatch import service_is_unknown
from amqpspec.model.broker.drops_in_doubt import undo_drop
from amqpspec.model.broker.hooks import answer
from amqpspec.model.broker.message_order import (
    is_broken_priority,
    may_be_overtaken,
    may_come_later,
    priority_requirement,
)
from amqpspec.model.broker.queues import Arrival, Message, Queue
from amqpspec.model.broker.reply_addresses import agree
from amqpspec.model.broker.routing import ALTERNATE, EXCHANGE_BINDING, FURTHER_KEYS, SEVERAL_BINDINGS
from amqpspec.model.outputs.carried_counts import (
    counts_are_open,
    may_be_redelivered,
    note_brought,
    possible_counts,
    with_acquired_as_told,
)
from amqpspec.model.outputs.free_properties import as_free
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.choices import CarriedFailures
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.erlang_wording import wire_type
from amqpspec.model.protocol.field_types import retyped
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.requeue import place_requirement
from amqpspec.model.rules.extensions.message_expiry import too_early

#: Requirements by which a queue gets one copy of a message that reaches it by several ways.
ONE_COPY = (SEVERAL_BINDINGS, EXCHANGE_BINDING, FURTHER_KEYS, ALTERNATE)


def expected_properties(broker: Broker, queue: Queue, message: Message, by_get: bool) -> Mapping[str, Any]:
    """The properties as published, and the headers that the queue type adds."""
    if queue.type is QueueType.CLASSIC:
        return message.content.properties
    added: dict[str, Any] = {}
    properties = message.content.properties
    if queue.type is QueueType.STREAM:
        added["x-stream-offset"] = message.position
        if broker.dialect.stream_names_delivery_mode and properties.get("delivery_mode") != 2:
            properties = {**properties, "delivery_mode": 1}
    else:
        dialect = broker.dialect
        # what a dead letter brings along shows until it is given back (rabbit_fifo_client:add_delivery_count_header)
        count = message.delivery_count or message.failures
        acquired = message.acquired_count or message.failures
        if count or (by_get and dialect.quorum_count_on_first_get):
            added["x-delivery-count"] = count
        if acquired and dialect.quorum_acquired_count:
            added["x-acquired-count"] = acquired
    if not added:
        return properties
    return {**properties, "headers": {**properties.get("headers", {}), **added}}


def check_delivery(
    broker: Broker, channel: Channel, queue: Queue, message: Message, method: Method, by_get: bool
) -> tuple[Mismatch, ...]:
    """Compare everything that a deliver or get-ok says about a message that may be delivered. Empty if right."""
    arguments = method.arguments
    wrong: list[Mismatch] = []
    tag = arguments["delivery_tag"]
    if tag > channel.next_tag and not broker.dialect.extensions:
        channel.next_tag = tag  # that numbers are left out is forbidden by no text
    if tag != channel.next_tag:
        allowed, detail = str(channel.next_tag), f"{method.name} delivery-tag"
        right = channel.next_tag
        wrong.append(Mismatch("CONSUME-014", Shape.WRONG_ARGUMENT, detail, True, allowed, "delivery_tag", right, queue))
    if answer(broker.hooks.serves_unseen, broker, queue):
        _take_as_told(message, method)
    if (message.unseen or message.recalled) and arguments.get("redelivered"):
        message.redelivered = True
    if may_be_redelivered(queue, message):
        message.redelivered = bool(arguments.get("redelivered"))
    if arguments.get("redelivered", False) is not message.redelivered:
        allowed = str(message.redelivered).lower()
        requirement = "STREAM-003" if queue.type is QueueType.STREAM else "ACK-015"
        if is_first_here(message):
            requirement = "DLX-010"
        elif message.reason.startswith("TIMEOUT") and message.redelivered:
            requirement = "TIMEOUT-012"
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, f"{method.name} redelivered", False, allowed))
    if arguments.get("exchange", "") != message.exchange or arguments.get("routing_key", "") != message.routing_key:
        allowed = f"exchange={message.exchange} routing-key={message.routing_key}"
        requirement = message.reason if message.reason in ONE_COPY else "PUBLISH-002"
        if message.deaths:
            requirement = "DLX-005"
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, f"{method.name} exchange or key", False, allowed))
    observed = method.content.properties if method.content else {}
    expected = expected_properties(broker, queue, message, by_get)
    if message.unseen or message.recalled or message.may_have_timed_out or counts_are_open(queue, message):
        expected = _counted_unseen(broker, queue, message, observed, by_get)
    if message.deaths:
        expected = as_seen(expected, observed)
    expected = as_free(broker.dialect, queue, message, expected, observed)
    if not agree(broker, expected, observed):
        wrong.append(_wrong_property(queue, message, method, observed, expected))
    elif name := retyped(message.content.properties.get("headers"), observed.get("headers")):
        allowed = f"{name} of type {wire_type(message.content.properties['headers'][name])}"
        detail = f"{method.name} headers"
        wrong.append(Mismatch("PUBLISH-016", Shape.WRONG_ARGUMENT, detail, False, allowed, "headers"))
    for told in broker.hooks.delivery_seen:
        told(broker, channel, queue, expected, wrong)
    return tuple(wrong)


def _take_as_told(message: Message, method: Method) -> None:
    """A channel gives back what comes for a consumer that it does not know, and is handed it again: as often as there
    is time for (rabbit_fifo_client:handle_delivery).
    """
    message.redelivered = bool(method.arguments.get("redelivered"))
    headers = method.content.properties.get("headers", {}) if method.content else {}
    if isinstance(count := headers.get("x-delivery-count"), int) and message.redelivered:
        message.delivery_count = count


def _counted_unseen(
    broker: Broker, queue: Queue, message: Message, observed: Mapping[str, Any], by_get: bool
) -> Mapping[str, Any]:
    """The properties by that number of unseen deliveries which fits what is observed; known from then on. The same for
    what a dead letter has brought along.
    """
    first = expected_properties(broker, queue, message, by_get)
    is_open, is_first = counts_are_open(queue, message), is_first_here(message)
    usual = message.failures, message.delivery_count, message.acquired_count
    spared = int(message.may_have_timed_out)
    # of a dead letter: in the queue that it came from, or in this one
    places = (False, True) if is_first else (True,)
    ways = product(
        possible_counts(message) if is_open else [usual],
        range(message.unseen + 1), range(message.recalled + 1), range(spared + 1), places,
    )  # fmt: skip
    for counts, times, back, less, is_here in ways:
        message.failures, message.delivery_count, message.acquired_count = counts
        _count_unseen(broker, message, times, is_here=is_here)
        _count_failed(message, -less)
        _count_recalled(broker, message, back)
        expected = expected_properties(broker, queue, message, by_get)
        if is_open and broker.dialect.quorum_acquired_count:
            expected = with_acquired_as_told(message, expected, observed)
        if agree(broker, as_free(broker.dialect, queue, message, as_seen(expected, observed), observed), observed):
            if is_open:
                note_brought(message, counts, observed, is_first=is_first)
            break
    else:
        message.failures, message.delivery_count, message.acquired_count = usual
        expected = first
    message.unseen = message.recalled = 0
    message.may_have_timed_out = False
    return expected


def _count_unseen(broker: Broker, message: Message, times: int, *, is_here: bool) -> None:
    """Add so many deliveries that failed with their connection, in this queue or in the one that it came from."""
    carried = broker.dialect.carried_failures
    if carried is not CarriedFailures.NONE:
        message.failures += times
    if is_here or carried is CarriedFailures.OF_ALL_QUEUES:
        message.delivery_count += times
    if is_here:
        message.acquired_count += times


def _count_failed(message: Message, times: int) -> None:
    """Add so many failures, or take them away: its time was up, and it is not counted as failed (QUORUM-002)."""
    message.delivery_count += times
    message.failures = max(message.failures + times, 0)


def _count_recalled(broker: Broker, message: Message, times: int) -> None:
    """Add so many deliveries to a consumer that was cancelled, given back as by basic.nack (QUORUM-002)."""
    message.acquired_count += times
    if not broker.dialect.quorum_nack_has_not_failed:
        message.delivery_count += times


def _wrong_property(
    queue: Queue,
    message: Message,
    method: Method,
    observed: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> Mismatch:
    names = sorted({*observed, *expected})
    name = next(name for name in names if observed.get(name) != expected.get(name))
    requirement = "PUBLISH-016"
    if name == "headers" and "BCC" in (observed.get(name) or {}):
        requirement = FURTHER_KEYS
    elif message.deaths and name in ("headers", "expiration") and (of_death := wrong_of_death(expected, observed)):
        requirement = of_death
    elif name == "headers" and queue.type is QueueType.CLASSIC and _counts(observed) != _counts(expected):
        requirement = "QUORUM-001"
    elif name == "headers" and queue.type is QueueType.QUORUM:
        requirement = "RECOVER-005" if message.reason.startswith("RECOVER") else _wrong_count(expected, observed)
    elif name == "headers" and queue.type is QueueType.STREAM and _offset(observed) != _offset(expected):
        requirement = "STREAM-003"
    allowed = f"{name}={expected.get(name, 'none')}"
    detail = f"{method.name} {name}"
    return Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, False, allowed, "properties", expected, queue)


def _offset(properties: Mapping[str, Any]) -> Any:
    return (properties.get("headers") or {}).get("x-stream-offset")


def _counts(properties: Mapping[str, Any]) -> tuple[Any, Any]:
    headers = properties.get("headers") or {}
    return headers.get("x-delivery-count"), headers.get("x-acquired-count")


def _wrong_count(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> str:
    """Deliveries are counted right, and which of them failed is not (QUORUM-002); else QUORUM-001."""
    (_, acquired), (_, told) = _counts(expected), _counts(observed)
    return "QUORUM-002" if acquired is not None and told == acquired else "QUORUM-001"


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
        and (m.transit_group != found.transit_group or m.via == found.via)
        and not may_come_later(queue, m, found)
        and not may_be_overtaken(queue, m, found)
        # who came back first is not known of those that may have been away
        and not (_is_doubtful(m) or _is_doubtful(found))
        and not _may_be_anywhere(broker, m, found)
    ]
    in_order = not ahead or answer(broker.hooks.are_in_order, broker, channel) is not False
    if key in found.passed_over_by or len(ahead) > _room(broker, queue, key if in_order else None):
        if found.deaths and any(is_first_here(m) and m.via == found.via for m in ahead):
            return "DLX-009"
        return _order_requirement(broker, queue, place, ahead[0] if ahead else None)
    # a classic queue of which it is unknown whom it serves has not handed to anybody what is skipped
    is_kept = queue.type is QueueType.CLASSIC and service_is_unknown(broker, queue)
    for message in ahead if in_order and not is_kept else ():
        message.passed_over_by |= {key}
    return place


def out_of_order(broker: Broker, queue: Queue, method: Method, requirement: str) -> int | None:
    """The place of a message that comes before others that were published first: that it is gone from there is clear.

    None: it is not there, or the matter is another. Of RabbitMQ's defects each knows how it goes on.
    """
    if broker.dialect.extensions or requirement != "PUBLISH-015" or method.content is None:
        return None
    place = _place(queue.messages, method, method.content.body)
    return None if place < 0 else place


def _may_be_anywhere(broker: Broker, *messages: Message) -> bool:
    """Has any of them been given back, of which the text does not say where it goes?"""
    return not broker.dialect.extensions and any(message.redelivered for message in messages)


def _is_doubtful(message: Message) -> bool:
    return bool(message.unseen or message.recalled or message.may_have_timed_out)


def _stray_letter(broker: Broker, queue: Queue, body: bytes) -> str:
    """The requirement that a dead letter breaks which should not be in the queue."""
    for message in reversed(queue.gone):
        if message.content.body == body and message.reason == CYCLES:
            return CYCLES
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


def _room(broker: Broker, queue: Queue, apart_from: ChannelKey | None) -> float:
    """How many messages can be on their way to consumers, but for those on that channel."""
    room = float("inf") if service_is_unknown(broker, queue) else 0.0
    for consumer in broker.with_room(queue):
        if consumer.channel != apart_from:
            room += consumer.prefetch - consumer.outstanding if consumer.prefetch else float("inf")
    return room


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
    return place_requirement(broker, queue)


def _whereabouts(broker: Broker, queue: Queue, body: bytes, redelivered: bool) -> str:
    """The requirement that a delivery of this content breaks, by where the content is."""
    routed = routed_by(broker, body)
    if routed in ONE_COPY and not redelivered:
        return routed  # one more copy of a message that could come by several ways
    for message in reversed(queue.gone):
        if message.content.body == body:
            return message.reason
    for channel in broker.channels.values():
        for tag, entry in channel.unacknowledged.items():
            if entry.queue is queue and entry.message.content.body == body:
                if channel.transaction is not None and (why := channel.transaction.holds(tag)):
                    return why
                cancelled = entry.consumer is not None and entry.consumer.tag not in channel.consumers
                return "CANCEL-016" if cancelled else "ACK-001"
    for other in broker.queues.values():
        for message in other.messages:
            if message.content.body == body:
                return message.reason
    return routed or "PUBLISH-016"


def routed_by(broker: Broker, body: bytes) -> str | None:
    """The requirement that decided where a message of late went, or that it went nowhere."""
    return next((reason for published, reason in reversed(broker.bookkeeping.published) if published == body), None)
