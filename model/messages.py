"""Which message a delivery carries, and what its content must look like (PUBLISH-016, QUORUM-001, STREAM-003)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.alphabet import Frame
from model.broker import Broker
from model.mismatch import Mismatch
from model.queues import Arrival, Consumer, Message, Queue, QueueType
from model.reply_addresses import agree
from model.routing import ALTERNATE, EXCHANGE_BINDING, FURTHER_KEYS, SEVERAL_BINDINGS
from model.rules.requeue import place_requirement
from model.state import Channel
from model.verdict import Shape

#: Known departure: messages are kept in a stream as AMQP 1.0, whose application properties hold simple values only;
#: tables and arrays among the headers are lost (rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on).
STREAM_DROPS_NESTED_HEADERS = "stream-drops-nested-headers"

#: Known departure: a direct reply has the delivery tag that the next delivery has as well (rabbit_channel:handle_cast
#: deliver_reply leaves next_tag as it is; up to 4.1).
DIRECT_REPLIES_NOT_COUNTED = "direct-replies-not-counted"


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
        if message.delivery_count or (by_get and dialect.quorum_count_on_first_get):
            added["x-delivery-count"] = message.delivery_count
        if message.acquired_count and dialect.quorum_acquired_count:
            added["x-acquired-count"] = message.acquired_count
    if not added:
        return properties
    return {**properties, "headers": {**properties.get("headers", {}), **added}}


def check_delivery(
    broker: Broker, channel: Channel, queue: Queue, message: Message, frame: Frame, by_get: bool
) -> tuple[Mismatch, ...]:
    """Compare everything that a deliver or get-ok says about a message that may be delivered. Empty if right."""
    arguments = frame.arguments
    wrong: list[Mismatch] = []
    tag = arguments["delivery_tag"]
    if tag != channel.next_tag:
        allowed, departure = str(channel.next_tag), ""
        if channel.uncounted_replies and tag == channel.next_tag - channel.uncounted_replies:
            departure = DIRECT_REPLIES_NOT_COUNTED
            channel.next_tag, channel.uncounted_replies = tag, 0
        detail = f"{frame.method} delivery-tag"
        requirement = "REPLY-006" if departure else "CONSUME-014"
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, not departure, allowed, departure))
    if message.unseen and arguments.get("redelivered"):
        message.redelivered = True
    if arguments.get("redelivered", False) is not message.redelivered:
        allowed = str(message.redelivered).lower()
        wrong.append(Mismatch("ACK-015", Shape.WRONG_ARGUMENT, f"{frame.method} redelivered", False, allowed))
    if arguments.get("exchange", "") != message.exchange or arguments.get("routing_key", "") != message.routing_key:
        allowed = f"exchange={message.exchange} routing-key={message.routing_key}"
        requirement = message.reason if message.reason in ONE_COPY else "PUBLISH-002"
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, f"{frame.method} exchange or key", False, allowed))
    observed = frame.content.properties if frame.content else {}
    expected = expected_properties(broker, queue, message, by_get)
    if message.unseen:
        expected = _counted_unseen(broker, queue, message, observed, by_get)
    if not agree(broker, expected, observed):
        wrong.append(_wrong_property(queue, message, frame, observed, expected))
    return tuple(wrong)


def _counted_unseen(
    broker: Broker, queue: Queue, message: Message, observed: Mapping[str, Any], by_get: bool
) -> Mapping[str, Any]:
    """The properties by that number of unseen deliveries which fits what is observed; known from then on."""
    first = expected = expected_properties(broker, queue, message, by_get)
    for times in range(message.unseen + 1):
        if times:
            message.delivery_count += 1
            message.acquired_count += 1
            expected = expected_properties(broker, queue, message, by_get)
        if expected == observed:
            message.unseen = 0
            return expected
    message.delivery_count -= message.unseen
    message.acquired_count -= message.unseen
    return first


def _wrong_property(
    queue: Queue, message: Message, frame: Frame, observed: Mapping[str, Any], expected: Mapping[str, Any]
) -> Mismatch:
    names = sorted({*observed, *expected})
    name = next(name for name in names if observed.get(name) != expected.get(name))
    requirement = "PUBLISH-016"
    if name == "headers" and "BCC" in (observed.get(name) or {}):
        requirement = FURTHER_KEYS
    elif name == "headers" and queue.type is QueueType.QUORUM:
        requirement = "RECOVER-005" if message.reason.startswith("RECOVER") else "QUORUM-001"
    departure = ""
    if name == "headers" and queue.type is QueueType.STREAM:
        flat = {key: value for key, value in expected["headers"].items() if not isinstance(value, dict | list)}
        if "x-stream-offset" not in observed.get(name, {}):
            requirement = "STREAM-003"
        elif observed[name] == flat:
            departure = STREAM_DROPS_NESTED_HEADERS
    allowed = f"{name}={expected.get(name, 'none')}"
    return Mismatch(requirement, Shape.WRONG_ARGUMENT, f"{frame.method} {name}", False, allowed, departure)


def find(broker: Broker, channel: Channel, queue: Queue, frame: Frame, consumer: Consumer | None) -> int | str:
    """Place of the delivered message among the ready ones, or the requirement that forbids it to be delivered now.

    Messages ahead of it may be skipped when they can be on their way back to the queue, or came at the same time by
    another channel, or can be on their way to somebody else: the frames of different channels reach the client in any
    order.
    """
    body = frame.content.body if frame.content else b""
    messages = queue.messages
    place = -1
    for index, message in enumerate(messages):
        if message.content.body == body:
            place = index
            break
    if place < 0:
        return _whereabouts(broker, queue, body, frame.arguments.get("redelivered", False))
    key = channel.key
    found = messages[place]
    ahead = [
        m
        for m in list(messages)[:place]
        if m.arrival is not Arrival.RETURNING and (m.crowd != found.crowd or m.via == found.via)
    ]
    if key in found.passed_over_by or len(ahead) > _room_elsewhere(broker, queue, channel):
        return _order_requirement(broker, queue, place)
    for message in ahead:
        message.passed_over_by |= {key}
    return place


def _room_elsewhere(broker: Broker, queue: Queue, channel: Channel) -> float:
    """How many messages can be on their way to consumers on other channels."""
    room = 0.0
    for consumer in broker.recipients(queue):
        if consumer.channel != channel.key:
            room += consumer.prefetch - consumer.outstanding if consumer.prefetch else float("inf")
    return room


def _order_requirement(broker: Broker, queue: Queue, place: int) -> str:
    """Which rule of order a delivery out of turn breaks: that of requeueing if any of these came back."""
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
        for entry in channel.unacknowledged.values():
            if entry.queue is queue and entry.message.content.body == body:
                cancelled = entry.consumer is not None and entry.consumer.tag not in channel.consumers
                return "CANCEL-016" if cancelled else "ACK-001"
    for other in broker.queues.values():
        for message in other.messages:
            if message.content.body == body:
                return message.reason
    return routed or "PUBLISH-016"


def routed_by(broker: Broker, body: bytes) -> str | None:
    """The requirement that decided where a message of late went, or that it went nowhere."""
    return next((reason for published, reason in reversed(broker.published) if published == body), None)
