"""Faults of quorum queues' counts and limits, and of dead-lettering (areas QUORUM and DLX)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.dead_letter_headers import HISTORY, in_a_cycle
from amqpspec.model.broker.message_order import put_back_in_front
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method, Table
from amqpspec.model.rules.basic.requeue import delivery_limit
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

QUORUM = Chapter()
on_input, on_output, in_broker = QUORUM.on_input, QUORUM.on_output, QUORUM.in_broker

_DELIVERIES = ("basic.deliver", "basic.get-ok")
_COUNTS = ("x-delivery-count", "x-acquired-count")


def _headers(method: Method) -> Table:
    return dict(method.content.properties.get("headers") or {}) if method.content is not None else {}


def _with_headers(method: Method, headers: Table) -> Method:
    assert method.content is not None
    properties: dict[str, Any] = {**method.content.properties, "headers": headers}
    if not headers:
        del properties["headers"]
    return replace(method, content=Content(properties, method.content.body))


def _history(headers: Table) -> list[Table]:
    """Of a dead letter; what clients send under that name may be anything."""
    told = headers.get(HISTORY)
    return told if isinstance(told, list) else []


def _rejected(broker: ServedBroker, method: Method) -> tuple[Queue, Message] | None:
    """What the frame gives back to a quorum queue, if it is a single delivery."""
    channel = broker.channel(method.connection, method.channel)
    entry = channel.unacknowledged.get(method.arguments.get("delivery_tag", 0))
    if entry is None or entry.queue.type is not QueueType.QUORUM or not method.arguments.get("requeue"):
        return None
    return entry.queue, entry.message


# ------------------------------------------------------------------------------------------------- counts


@on_output("delivery-count-off-by-one", "QUORUM-001", "A delivery is counted before it has failed.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = _headers(method)
    counted = {name: headers[name] + 1 for name in _COUNTS if name in headers}
    yield _with_headers(method, {**headers, **counted}) if counted else method


@on_output("delivery-count-missing", "QUORUM-001", "A redelivery does not say how many it had.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = _headers(method)
    kept = {name: value for name, value in headers.items() if name not in _COUNTS}
    yield _with_headers(method, kept) if len(kept) < len(headers) else method


@on_output("classic-queue-counts", "QUORUM-001", "Redeliveries from classic queues have a count.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = _headers(method)
    is_new = not method.arguments.get("redelivered") or any(name in headers for name in _COUNTS)
    yield method if is_new else _with_headers(method, {**headers, "x-delivery-count": 1})


@on_input("nack-counts-as-failed", "QUORUM-002", "basic.nack counts as a failed delivery.", "basic.nack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    is_single = not method.arguments.get("multiple") and _rejected(broker, method) is not None
    proceed(replace(method, name="basic.reject") if is_single else method)


@on_input("reject-does-not-count", "QUORUM-002", "basic.reject does not count as a failed delivery.", "basic.reject")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(replace(method, name="basic.nack") if _rejected(broker, method) is not None else method)


# ------------------------------------------------------------------------------------------------- limits


@in_broker("delivery-limit-never-applied", "QUORUM-003", "A message comes back however often it failed.")
class _WithoutLimit(ServedBroker):
    def note_gone(self, queue: Queue, message: Message, requirement: str) -> None:
        if requirement == "QUORUM-003":
            put_back_in_front(queue, message)
        else:
            super().note_gone(queue, message, requirement)

    def enqueue(self, queue: Queue, message: Message) -> None:
        if message.reason != "QUORUM-003":
            super().enqueue(queue, message)


@on_input(
    "delivery-limit-one-too-early", "QUORUM-003", "A message goes when its failures reach the limit.", "basic.reject"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    returned = _rejected(broker, method)
    if returned is not None:
        queue, message = returned
        if message.delivery_count + 1 == delivery_limit(broker, queue):
            message.delivery_count += 1
    proceed(method)


@on_input(
    "negative-limit-taken-literally",
    "QUORUM-004",
    "A message exceeds a delivery limit of -1 when it first comes back.",
    "basic.reject",
    "basic.nack",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    returned = _rejected(broker, method)
    is_negative = returned is not None and returned[0].arguments.get("x-delivery-limit", 0) < 0
    proceed(altered(method, requeue=False) if is_negative else method)


# ------------------------------------------------------------------------------------------- dead letters


@in_broker("dead-letter-lost", "DLX-001", "What is rejected is gone, whatever the queue's dead-letter exchange.")
class _WithoutDeadLetters(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        if not message.deaths:
            super().enqueue(queue, message)


@on_output("dead-letter-reason-wrong", "DLX-001", "What was rejected is said to have expired.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = _headers(method)
    history = _history(headers)
    changed = [{**history[0], "reason": "expired"}, *history[1:]] if history else []
    yield _with_headers(method, {**headers, HISTORY: changed}) if history else method


@on_output("death-count-stays-one", "DLX-002", "The history does not count how often a message died.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = _headers(method)
    changed = [{**each, "count": 1} for each in _history(headers)]
    yield _with_headers(method, {**headers, HISTORY: changed}) if changed else method


@in_broker("dead-letter-keeps-its-key", "DLX-005", "A dead letter goes by its own key, not by that of its queue.")
class _WithOwnKeys(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        if message.deaths:
            message.routing_key = message.deaths[0]["routing-keys"][0]
            own = self.queues.get(message.routing_key, queue)
            # one that expires as soon as it is there would go round for ever
            if not message.exchange and not in_a_cycle(message.deaths, own.name):
                queue = own
        super().enqueue(queue, message)


@in_broker("dead-letter-is-redelivery", "DLX-010", "Every dead letter comes as a redelivery.")
class _WithRedeliveredLetters(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        message.redelivered = message.redelivered or bool(message.deaths)
        super().enqueue(queue, message)


@in_broker("dead-letters-reversed", "DLX-009", "Of two dead letters the later one is the first.")
class _WithReversedLetters(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        messages = queue.messages
        if len(messages) > 1 and message.deaths and messages[-1] is message and messages[-2].via == message.via:
            messages[-1], messages[-2] = messages[-2], messages[-1]
