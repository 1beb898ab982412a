"""Faults of messages whose time is up (area TTL), and of the dead letters that they become (area DLX)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.dead_letter_headers import EXPIRED, HISTORY, REJECTED
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.time_to_live import ARGUMENT, GIVEN_BACK, NONE_AT_ALL, OF_QUEUE, OWN
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.model.rules.extensions.message_expiry import give_up_expired
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

TIME_TO_LIVE = Chapter()
on_input, on_output, in_broker = TIME_TO_LIVE.on_input, TIME_TO_LIVE.on_output, TIME_TO_LIVE.in_broker

_DELIVERIES = ("basic.deliver", "basic.get-ok")


class _TimedOtherwise(ServedBroker):
    """Gives messages another time than they should have."""

    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if message.deadline is not None:
            seconds = self.seconds(queue, message, message.deadline.seconds)
            message.deadline = None if seconds is None else replace(message.deadline, seconds=seconds)

    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        """How long the message is to live in the queue; None: for ever."""
        return right


@in_broker("expiration-ignored", OWN, "Messages live for ever, whatever their expiration.")
class _LivingForEver(_TimedOtherwise):
    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        return None if message.ttl_from == OWN else right


@in_broker("message-expires-late", OWN, "Messages live ten times as long as they say.")
class _LivingLong(_TimedOtherwise):
    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        return right * 10 if message.ttl_from == OWN else right


@in_broker("message-expires-at-once", OWN, "A message that has an expiration is removed if nobody waits for it.")
class _LivingNotAtAll(_TimedOtherwise):
    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        return 0.0 if message.ttl_from == OWN else right


@in_broker("queue-ttl-ignored", OF_QUEUE, "A queue's x-message-ttl is ignored.")
class _WithoutQueueTime(_TimedOtherwise):
    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        own = message.content.properties.get("expiration")
        return None if own is None else int(own) / 1000


@in_broker("longer-time-holds", OF_QUEUE, "Of x-message-ttl and a message's own expiration the longer one holds.")
class _LivingTheLonger(_TimedOtherwise):
    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        times = (message.content.properties.get("expiration"), queue.arguments.get(ARGUMENT))
        return max(int(each) / 1000 for each in times if each is not None)


@in_broker("zero-lives-on", NONE_AT_ALL, "A message that has no time at all stays in its queue.")
class _WithoutZero(_TimedOtherwise):
    def seconds(self, queue: Queue, message: Message, right: float) -> float | None:
        return right or None


@in_broker("zero-never-delivered", NONE_AT_ALL, "A message that has no time at all is removed though somebody waits.")
class _NeverDelivering(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        super().enqueue(queue, message)
        if message.ttl_from == NONE_AT_ALL and queue in self.deliverable:
            queue.messages.remove(message)
            self.note_gone(queue, message, NONE_AT_ALL)
            self.refresh(queue)


@in_broker("given-back-lives-on", GIVEN_BACK, "What a client gives back does not expire any more.")
class _LivingOn(ServedBroker):
    def join_transit_group(self, queue: Queue, message: Message) -> int:
        if message.redelivered:
            message.deadline = None
        return super().join_transit_group(queue, message)


@on_input(
    "unacknowledged-expires",
    GIVEN_BACK,
    "What a client holds is a dead letter when its time is up.",
    *("queue.declare", "basic.qos", "basic.get"),
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    told = broker.memory.setdefault("told", set())
    for channel in list(broker.channels.values()):
        for entry in list(channel.unacknowledged.values()):
            message = entry.message
            if message.deadline and message.deadline.due < broker.now and id(message) not in told:
                told.add(id(message))
                give_up_expired(broker, entry.queue, message, by=broker.now)
    proceed(method)


@on_input(
    "follower-expires-early",
    "TTL-003",
    "Messages expire wherever they are in their queue.",
    *("queue.declare", "basic.get", "basic.consume", "queue.purge"),
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    for queue in list(broker.ageing):
        for message in list(queue.messages):
            if message.deadline and message.deadline.due < broker.now:
                broker.take(queue, queue.messages.index(message))
                give_up_expired(broker, queue, message, by=broker.now)
                broker.refresh(queue)
    proceed(method)


@in_broker("expired-letter-lost", "DLX-001", "What has expired is gone, whatever the queue's dead-letter exchange.")
class _LosingLetters(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        if not (message.deaths and message.deaths[0]["reason"] == EXPIRED):
            super().enqueue(queue, message)


@on_output("expired-is-rejected", "DLX-001", "What has expired is said to have been rejected.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with_history(
        method, [{**each, "reason": REJECTED} if each["reason"] == EXPIRED else each for each in _history(method)]
    )


@on_output("original-expiration-missing", "DLX-006", "The history does not tell the expiration.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    left = [{name: value for name, value in each.items() if name != "original-expiration"} for each in _history(method)]
    yield _with_history(method, left)


@in_broker("expiration-kept", "DLX-006", "A dead letter keeps its expiration, and expires again.")
class _KeepingExpiration(ServedBroker):
    def enqueue(self, queue: Queue, message: Message) -> None:
        if message.deaths and "original-expiration" in message.deaths[0]:
            properties = {**message.content.properties, "expiration": message.deaths[0]["original-expiration"]}
            message.content = Content(properties, message.content.body)
        super().enqueue(queue, message)


@in_broker("circle-of-expiry-not-cut", "DLX-008", "What expires goes on in a circle of queues.")
class _Circling(ServedBroker):
    def note_gone(self, queue: Queue, message: Message, requirement: str) -> None:
        super().note_gone(queue, message, requirement)
        if requirement.startswith("TTL"):
            message.deaths = ()


def _history(method: Method) -> list[dict[str, Any]]:
    headers = method.content.properties.get("headers", {}) if method.content else {}
    history = headers.get(HISTORY, ())
    return [each for each in history if isinstance(each, dict)] if isinstance(history, list | tuple) else []


def _with_history(method: Method, history: list[dict[str, Any]]) -> Method:
    """The frame, if it is a dead letter, with another history."""
    if not history or method.content is None:
        return method
    properties = method.content.properties
    headers = {**properties["headers"], HISTORY: history}
    return replace(method, content=Content({**properties, "headers": headers}, method.content.body))
