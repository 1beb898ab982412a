"""Chapter basic, publish and return (0-9-1 sections 1.8.3.6 and 1.8.3.7; area PUBLISH), and publisher confirms."""

from __future__ import annotations

from collections.abc import Iterator

from model.alphabet import EMPTY_CONTENT, Frame
from model.broker import Broker
from model.errors import ProtocolError
from model.rules.lookup import exchange_text, find_exchange
from model.state import Channel, Exchange, Expected, Message, Queue, QueueType


def publish(broker: Broker, channel: Channel, frame: Frame) -> None:
    """Route to every queue once; return what nobody takes if asked to; owe the confirm (CONFIRM-002)."""
    arguments = frame.arguments
    if arguments.get("immediate"):
        raise ProtocolError("PUBLISH-009", 540, "immediate=true")
    name = arguments.get("exchange", "")
    exchange = find_exchange(broker, channel, name, "PUBLISH-001")
    if exchange.internal:
        raise ProtocolError("EXCHANGE-009", 403, f"cannot publish to internal {exchange_text(broker, channel, name)}")
    content = frame.content or EMPTY_CONTENT
    routing_key = arguments.get("routing_key", "")
    copies: list[tuple[Queue, Message]] = []
    reason = "PUBLISH-002"
    for queue, reason in route(broker, exchange, routing_key):
        message = Message(content, name, routing_key, 0, reason=reason, via=channel.key)
        broker.enqueue(queue, message)
        _limits_hold(broker, queue)
        if channel.confirming and any(consumer.channel == channel.key for consumer in broker.recipients(queue)):
            # its confirm and its delivery come on one channel, in any order
            broker.fired("CONFIRM-017")
        broker.touch(channel, queue)
        copies.append((queue, message))
    broker.fired(reason)
    broker.blame(channel, reason)
    if channel.confirming:
        channel.published += 1
    if not copies and arguments.get("mandatory"):
        returned = _returned(broker, channel, name, routing_key, frame)
        channel.owed.append(returned)
        broker.debtors[channel.key] = None
    elif arguments.get("mandatory"):
        broker.fired("PUBLISH-008")
    if channel.confirming:
        channel.unconfirmed[channel.published] = tuple(copies)
        broker.debtors[channel.key] = None


def route(broker: Broker, exchange: Exchange, routing_key: str) -> Iterator[tuple[Queue, str]]:
    """The queues that a message reaches, each once (BIND-003), with the requirement that says so."""
    if not exchange.name:
        queue = broker.queues.get(routing_key)
        if queue is not None:
            yield queue, "PUBLISH-002"
        return
    matching: dict[Queue, int] = {}
    for binding in exchange.bindings:
        if exchange.type == "fanout" or (exchange.type == "direct" and binding.routing_key == routing_key):
            matching[binding.queue] = matching.get(binding.queue, 0) + 1
    for queue, bindings in matching.items():
        if bindings > 1:
            yield queue, "BIND-003"
        else:
            yield queue, "PUBLISH-004" if exchange.type == "fanout" else "PUBLISH-003"


def _limits_hold(broker: Broker, queue: Queue) -> None:
    """QOS-001, QOS-006: a message has come that nobody may be handed, for want of acknowledgements."""
    if queue.type is QueueType.STREAM or queue in broker.deliverable:
        return
    for consumer in queue.consumers:
        if consumer.prefetch and consumer.outstanding >= consumer.prefetch:
            broker.fired("QOS-001", "QOS-006")
            if broker.channels[consumer.channel].prefetch != consumer.prefetch:
                broker.fired("QOS-003")


def _returned(broker: Broker, channel: Channel, exchange: str, routing_key: str, frame: Frame) -> Expected:
    arguments = {"reply_code": 312, "reply_text": "NO_ROUTE", "exchange": exchange, "routing_key": routing_key}
    return Expected(
        "basic.return",
        arguments,
        ("PUBLISH-007", "CONFIRM-009") if channel.confirming else ("PUBLISH-007",),
        content=frame.content or EMPTY_CONTENT,
        counted=broker.counting,
        publish=channel.published if channel.confirming else 0,
    )
