"""Faults of queues with limits, and of those that refuse (areas OVERFLOW and CONFIRM, and DLX by length)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.dead_letter_headers import HISTORY, TOO_MANY
from amqpspec.model.broker.length_limits import (
    BYTES,
    LENGTH,
    OVERFLOW,
    Overflow,
    exceeded,
    has_length_limit,
    overflow,
    refusal,
    size,
    waiting_in,
)
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method, Table
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

OVERFLOWING = Chapter()
on_input, on_output, in_broker = OVERFLOWING.on_input, OVERFLOWING.on_output, OVERFLOWING.in_broker

REFUSING = (Overflow.REJECT.value, Overflow.REJECT_AND_DEAD_LETTER.value)


def _asked(method: Method) -> Table:
    """The arguments of a queue that is declared."""
    return dict(method.arguments.get("arguments") or {})


def _is_quorum(arguments: Table) -> bool:
    return arguments.get("x-queue-type") == QueueType.QUORUM.value


def _with_limit(method: Method, name: str, by: int) -> Method:
    arguments = _asked(method)
    limit = arguments.get(name)
    return altered(method, arguments={**arguments, name: limit + by}) if type(limit) is int and limit > 0 else method


# -------------------------------------------------------------------------------------------- what is a limit


@on_input("length-limit-one-too-low", "OVERFLOW-001", "A queue drops when its limit is reached.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method if _asked(method).get(OVERFLOW) in REFUSING else _with_limit(method, LENGTH, -1))


@on_input("length-zero-is-no-limit", "OVERFLOW-003", "A limit of 0 is taken for none.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    arguments = _asked(method)
    if arguments.get(LENGTH) == 0:
        del arguments[LENGTH]
    proceed(altered(method, arguments=arguments))


@on_input("byte-limit-ignored", "OVERFLOW-004", "A limit in octets makes no difference.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, arguments={name: value for name, value in _asked(method).items() if name != BYTES}))


@on_input("byte-limit-one-too-low", "OVERFLOW-004", "Bodies must be shorter than the limit.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(_with_limit(method, BYTES, -1))


# -------------------------------------------------------------------------------------------------- drop-head


class _DropsOtherwise(ServedBroker):
    def is_over(self, queue: Queue, held: int = 0) -> bool:
        if not has_length_limit(self, queue) or overflow(queue) is not Overflow.DROP_HEAD or queue in self.deliverable:
            return False
        waiting, octets = waiting_in(self, queue, 0)
        return bool(exceeded(queue, waiting + held, octets))

    def lose(self, queue: Queue, message: Message) -> None:
        queue.messages.remove(message)
        super().note_gone(queue, message, "OVERFLOW-001")
        self.refresh(queue)


@in_broker("limit-drops-newest", "OVERFLOW-001", "What is new is dropped in place of what is old.")
class _DropsNewest(_DropsOtherwise):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if self.is_over(queue):
            self.lose(queue, message)


@in_broker("held-messages-count", "OVERFLOW-002", "Unacknowledged messages count towards the limit.")
class _CountsHeld(_DropsOtherwise):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        entries = (entry for channel in self.channels.values() for entry in channel.unacknowledged.values())
        held = sum(entry.queue is queue for entry in entries)
        while queue.messages and self.is_over(queue, held):
            self.lose(queue, queue.messages[0])


@in_broker("dropped-by-limit-not-dead-lettered", "DLX-001", "What is beyond a limit is dropped without a dead letter.")
class _WithoutLetters(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        if not message.deaths or message.deaths[0].get("reason") != TOO_MANY:
            super().enqueue(queue, message)


@on_output(
    "dropped-by-limit-said-to-be-rejected", "DLX-001", "What a limit has dropped is said to be rejected.",
    "basic.deliver", "basic.get-ok",
)  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = dict(method.content.properties.get("headers") or {}) if method.content is not None else {}
    history = headers.get(HISTORY)
    if method.content is None or not isinstance(history, list) or not history or history[0].get("reason") != TOO_MANY:
        yield method
        return
    headers[HISTORY] = [{**history[0], "reason": "rejected"}, *history[1:]]
    yield replace(method, content=Content({**method.content.properties, "headers": headers}, method.content.body))


# --------------------------------------------------------------------------------------------- reject-publish


@on_input("refusal-one-too-late", "CONFIRM-013", "A classic queue refuses one message too late.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    arguments = _asked(method)
    is_concerned = arguments.get(OVERFLOW) in REFUSING and not _is_quorum(arguments)
    proceed(_with_limit(method, LENGTH, 1) if is_concerned else method)


@on_input("quorum-refuses-at-its-limit", "CONFIRM-014", "A quorum queue takes no more than its limit.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    arguments = _asked(method)
    is_concerned = arguments.get(OVERFLOW) in REFUSING and _is_quorum(arguments)
    proceed(_with_limit(method, LENGTH, -1) if is_concerned else method)


@on_output("refused-publish-acked", "CONFIRM-013", "What a queue has refused is acked.", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    arguments = {"delivery_tag": method.arguments["delivery_tag"], "multiple": False}
    yield replace(method, name="basic.ack", arguments=arguments)


@in_broker("last-that-fits-nacked", "CONFIRM-013", "The message that fills a queue is taken and nacked.")
class _NacksLast(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if has_length_limit(self, queue) and overflow(queue) is Overflow.REJECT and queue.type is QueueType.CLASSIC:
            waiting, octets = waiting_in(self, queue, 0)
            if exceeded(queue, waiting + 1, octets + size(self, queue, [message])):
                message.refused_by = refusal(queue)


@in_broker("refused-message-kept", "CONFIRM-013", "A message is nacked, and in its queue all the same.")
class _KeepsRefused(ServedBroker):
    def note_gone(self, queue: Queue, message: Message, requirement: str) -> None:
        if message.refused_by and requirement == message.refused_by:
            self.enqueue(queue, message)
        else:
            super().note_gone(queue, message, requirement)


@in_broker("refused-without-confirms-kept", "OVERFLOW-005", "Without confirms, nothing is refused.")
class _KeepsUnconfirmed(ServedBroker):
    def note_gone(self, queue: Queue, message: Message, requirement: str) -> None:
        if requirement == "OVERFLOW-005":
            self.enqueue(queue, message)
        else:
            super().note_gone(queue, message, requirement)


@on_input("one-that-takes-it-is-enough", "CONFIRM-011", "What one of several queues takes is acked.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel = broker.channel(method.connection, method.channel)
    for copies in channel.unconfirmed.values():
        if any(not message.refused_by for _, message in copies):
            for _, message in copies:
                message.refused_by = ""


@on_input(
    "refused-publish-not-dead-lettered", "OVERFLOW-006", "reject-publish-dlx does no more than reject-publish.",
    "queue.declare",
)  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    arguments = _asked(method)
    if arguments.get(OVERFLOW) == Overflow.REJECT_AND_DEAD_LETTER.value and not _is_quorum(arguments):
        arguments[OVERFLOW] = Overflow.REJECT.value
    proceed(altered(method, arguments=arguments))


@on_output("refused-comes-back", "PUBLISH-008", "What is nacked is returned as well.", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    arguments = {"reply_code": 312, "reply_text": "NO_ROUTE", "exchange": "", "routing_key": "q"}
    yield Method(method.connection, method.channel, "basic.return", arguments, sent=False, content=Content({}, b"m1"))
    yield method
