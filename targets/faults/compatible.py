"""Compatible variants of the embedded broker: each has one of RabbitMQ's own ways otherwise, inside a feature.

They serve the text with all that can be held to beside it, and are right: what they do otherwise is no part of a
feature (`neutral` in the registry). The suite must find nothing wrong with them, whoever they say that they are, and
with all of them in one broker. `amqpspec run embedded:other-death-headers`. Planted faults that are a way of
RabbitMQ's alone, and so no fault of another product, are in `OWN_WAYS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from amqpspec.model.broker.dead_letter_headers import HISTORY, is_dead_letter, without_history
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.reply_addresses import ADDRESS
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.protocol.methods import Content, Method, TraceEvent
from amqpspec.targets.embedded.hooks import Chapter, Fault, InputHook, OutputHook, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

#: What they serve.
DIALECT: Dialect = text_with(EXTENSIONS)
#: The variant that has all of them.
COMPATIBLE = "compatible"

_CHAPTER = Chapter()
_DELIVERIES = ("basic.deliver", "basic.get-ok")


def on_output(name: str, requirement: str, does: str, *methods: str) -> Callable[[OutputHook], OutputHook]:
    return _CHAPTER.on_output(name, requirement, does, *methods, dialect=DIALECT.name)


def on_input(name: str, requirement: str, does: str, *methods: str) -> Callable[[InputHook], InputHook]:
    return _CHAPTER.on_input(name, requirement, does, *methods, dialect=DIALECT.name)


def _with_headers(method: Method, headers: Mapping[str, Any] | None) -> Method:
    """The delivery with these headers; None: without any."""
    assert method.content is not None
    properties = {name: value for name, value in method.content.properties.items() if name != "headers"}
    if headers is not None:
        properties["headers"] = dict(headers)
    return replace(method, content=Content(properties, method.content.body))


def _latest_death(method: Method) -> Mapping[str, Any] | None:
    """None: it is no dead letter."""
    if method.content is None or not is_dead_letter(method.content):
        return None
    history = method.content.properties["headers"][HISTORY]
    latest = history[0] if isinstance(history, list) and history else None
    return latest if isinstance(latest, dict) and "time" in latest else None  # not one that a client has sent


@on_output("no-death-headers", "DLX-002", "A dead letter does not tell that it died.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    if _latest_death(method) is None or method.content is None:
        return [method]
    return [_with_headers(method, without_history(method.content.properties).get("headers"))]


@on_output("other-death-headers", "DLX-002", "A dead letter tells of its queue and reason in two texts.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    death = _latest_death(method)
    if death is None or method.content is None:
        return [method]
    own = without_history(method.content.properties).get("headers") or {}
    return [_with_headers(method, {**own, "x-died-in": str(death["queue"]), "x-died-of": str(death["reason"])})]


@on_output("letters-name-their-publish", "DLX-005", "A dead letter names its first exchange and key.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    death = _latest_death(method)
    if death is None or not death.get("routing-keys"):
        return [method]
    return [altered(method, exchange=death["exchange"], routing_key=death["routing-keys"][0])]


@on_output("letters-are-redelivered", "DLX-010", "A dead letter comes as a redelivery.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return [method if _latest_death(method) is None else altered(method, redelivered=True)]


class _CountsExpired(ServedBroker):
    """What has expired is counted by a declare until somebody asks for messages."""

    def note_gone(self, queue: Queue, message: Message, reason: str) -> None:
        super().note_gone(queue, message, reason)
        if reason.startswith("TTL"):
            key = ("expired", queue.name)
            self.memory[key] = self.memory.get(key, 0) + 1


def _forget_expired(broker: ServedBroker, event: TraceEvent, proceed: Proceed) -> None:
    proceed(event)
    if event.name != "queue.declare":
        broker.memory.pop(("expired", event.arguments.get("queue", "")), None)


def _count_expired(broker: ServedBroker, method: Method) -> Iterable[Method]:
    more = broker.memory.get(("expired", method.arguments["queue"]), 0)
    return [altered(method, message_count=method.arguments["message_count"] + more) if more else method]


_CHAPTER.faults["expired-are-counted"] = Fault(
    "expired-are-counted", "TTL-003", "What has expired is counted until somebody asks for messages.",
    frozenset({"queue.declare-ok", "basic.get", "basic.consume", "queue.purge", "queue.delete"}),
    input_hook=_forget_expired, output_hook=_count_expired, broker_type=_CountsExpired, dialect=DIALECT.name,
)  # fmt: skip


@on_input("octets-of-properties-count", "OVERFLOW-004", "A limit of octets counts more than bodies.", "queue.declare")
def _(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
    table = event.arguments.get("arguments") or {}
    limit = table.get("x-max-length-bytes")
    if limit is None:
        proceed(event)
    else:
        proceed(altered(event, arguments={**table, "x-max-length-bytes": max(limit - 100, 0)}))


#: Values that nobody needs, and that a broker may refuse.
_ODD = MappingProxyType({"x-max-length": 0, "x-message-ttl": 0, "x-max-priority": 255, "x-expires": 1})


@on_input("odd-arguments-refused", "QUEUE-013", "Limits of 0 and 255 priorities are refused.", "queue.declare")
def _(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
    table = event.arguments.get("arguments") or {}
    is_odd = any(name in table and table[name] == value for name, value in _ODD.items())
    proceed(altered(event, arguments={**table, "x-queue-type": "none that there is"}) if is_odd else event)


@on_input("no-quorum-queues", "QUEUE-013", "There are no quorum queues.", "queue.declare")
def _(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
    table = event.arguments.get("arguments") or {}
    is_quorum = table.get("x-queue-type") == "quorum"
    proceed(altered(event, arguments={**table, "x-queue-type": "none that there is"}) if is_quorum else event)


_OTHER_ADDRESS = "answers/"


def _reply_under_other_name(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
    key = str(event.arguments.get("routing_key", ""))
    number, _, rest = key.removeprefix(_OTHER_ADDRESS).partition("/")
    proceed(altered(event, routing_key=ADDRESS + rest) if key.startswith(_OTHER_ADDRESS) and number else event)


def _tell_other_address(broker: ServedBroker, method: Method) -> Iterable[Method]:
    """Another one in each request, and the same where the reply comes."""
    key = str(method.arguments.get("routing_key", ""))
    method = altered(method, routing_key=broker.memory.get(("address", key), key))
    address = str(method.content.properties.get("reply_to", "")) if method.content is not None else ""
    if method.content is None or not address.startswith(ADDRESS):
        return [method]
    number = broker.memory["requests"] = broker.memory.get("requests", 0) + 1
    told = broker.memory[("address", address)] = f"{_OTHER_ADDRESS}{number}/{address.removeprefix(ADDRESS)}"
    properties = {**method.content.properties, "reply_to": told}
    return [replace(method, content=Content(properties, method.content.body))]


_CHAPTER.faults["other-reply-addresses"] = Fault(
    "other-reply-addresses", "REPLY-001", "Each request has a reply address of its own, which begins otherwise.",
    frozenset({"basic.publish", *_DELIVERIES}),
    input_hook=_reply_under_other_name, output_hook=_tell_other_address, dialect=DIALECT.name,
)  # fmt: skip


@on_output("offsets-from-one", "STREAM-003", "A stream numbers from 1, in a header of its own.", "basic.deliver")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    headers = dict(method.content.properties.get("headers") or {}) if method.content is not None else {}
    if "x-stream-offset" not in headers:
        return [method]
    headers["x-position"] = headers.pop("x-stream-offset") + 1
    return [_with_headers(method, headers)]


@on_output("other-words", "PUBLISH-012", "Errors have no words, and a wrong user-id is 403.", "channel.close")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    is_of_publish = (method.arguments["class_id"], method.arguments["method_id"]) == (60, 40)
    code = method.arguments["reply_code"]
    return [altered(method, reply_text="no", reply_code=403 if is_of_publish and code == 406 else code)]


@on_output("nacks-one-by-one", "CONFIRM-006", "A nack is never for several messages.", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return [altered(method, multiple=False, requeue=False)]


def _note_unroutable(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
    proceed(event)
    channel = broker.channels.get((event.connection, event.channel))
    for number, copies in channel.unconfirmed.items() if channel is not None else ():
        if not copies:
            broker.memory[("unroutable", event.connection, event.channel, number)] = True


def _nack_unroutable(broker: ServedBroker, method: Method) -> Iterable[Method]:
    key = ("unroutable", method.connection, method.channel, method.arguments["delivery_tag"])
    is_nacked = broker.memory.pop(key, False) and not method.arguments["multiple"]
    return [replace(altered(method, requeue=False), name="basic.nack") if is_nacked else method]


_CHAPTER.faults["unroutable-nacked"] = Fault(
    "unroutable-nacked", "CONFIRM-008", "What no queue takes is nacked.", frozenset({"basic.publish", "basic.ack"}),
    input_hook=_note_unroutable, output_hook=_nack_unroutable, dialect=DIALECT.name,
)  # fmt: skip


def _get_with_acknowledgement(broker: ServedBroker, event: Method, proceed: Proceed) -> None:
    """So that what it finds can be put back."""
    channel = broker.channels.get((event.connection, event.channel))
    queue = broker.queues.get(event.arguments.get("queue") or (channel.last_queue if channel else "") or "")
    is_beside = queue is not None and queue.single_active_consumer and bool(queue.consumers)
    broker.memory[("beside", event.connection, event.channel)] = is_beside
    proceed(altered(event, no_ack=False) if is_beside else event)


def _get_nothing(broker: ServedBroker, method: Method) -> Iterable[Method]:
    channel = broker.channel(method.connection, method.channel)
    entry = channel.unacknowledged.get(method.arguments["delivery_tag"])
    if entry is None or not broker.memory.pop(("beside", method.connection, method.channel), False):
        return [method]
    del channel.unacknowledged[method.arguments["delivery_tag"]]
    entry.queue.messages.appendleft(entry.message)
    channel.next_tag -= 1
    return [Method(method.connection, method.channel, "basic.get-empty", {}, sent=False)]


_CHAPTER.faults["nothing-beside-active-consumer"] = Fault(
    "nothing-beside-active-consumer", "SAC-001", "A basic.get finds nothing beside a single active consumer.",
    frozenset({"basic.get", "basic.get-ok"}), input_hook=_get_with_acknowledgement, output_hook=_get_nothing,
    dialect=DIALECT.name,
)  # fmt: skip


def _together() -> Fault:
    """All of them in one: what one makes of a frame the next one is given."""
    all_of_them = tuple(_CHAPTER.faults.values())

    def on_inputs(broker: ServedBroker, event: TraceEvent, proceed: Proceed) -> None:
        def through(event: TraceEvent, left: tuple[Fault, ...]) -> None:
            hooks = [each for each in left if each.input_hook is not None and event.name in each.methods]
            if not hooks:
                proceed(event)
            elif (hook := hooks[0].input_hook) is not None:
                hook(broker, event, lambda altered: through(altered, tuple(hooks[1:])))

        through(event, all_of_them)

    def on_outputs(broker: ServedBroker, method: Method) -> Iterable[TraceEvent]:
        methods: list[TraceEvent] = [method]
        for each in all_of_them:
            if each.output_hook is not None:
                methods = list(_altered_by(each, broker, methods))
        return methods

    names = frozenset(name for each in all_of_them for name in each.methods)
    return Fault(
        COMPATIBLE, "QUEUE-013", "each of these", names, input_hook=on_inputs, output_hook=on_outputs,
        broker_type=_CountsExpired, dialect=DIALECT.name,
    )  # fmt: skip


def _altered_by(variant: Fault, broker: ServedBroker, methods: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    for method in methods:
        hook = variant.output_hook if method.name in variant.methods else None
        yield from [method] if hook is None else hook(broker, method)


#: Name to variant, and the one that has all. `requirement` is the one of which each has another way.
COMPATIBLE_VARIANTS: Mapping[str, Fault] = MappingProxyType({**_CHAPTER.faults, COMPATIBLE: _together()})

_FORM = "the form of the history is RabbitMQ's"
_WHO = "who follows, and whether priorities decide that, is RabbitMQ's way"

#: Planted faults of requirements that other products answer for, in a part that is RabbitMQ's own: name to why.
OWN_WAYS: Mapping[str, str] = MappingProxyType(
    {
        "zero-never-delivered": "a message without any time may be removed at once",
        "dead-letter-reason-wrong": _FORM,
        "expired-is-rejected": _FORM,
        "dropped-by-limit-said-to-be-rejected": _FORM,
        "death-count-stays-one": _FORM,
        "death-count-short": _FORM,
        "death-time-a-number": _FORM,
        "original-expiration-missing": _FORM,
        "byte-limit-one-too-low": "what counts beside bodies is RabbitMQ's way",
        "newest-follows-cancelled": _WHO,
        "lost-messages-come-last": "the order of what comes back is RabbitMQ's way",
        "priority-above-maximum-is-none": "what is above the maximum is RabbitMQ's way",
        "priority-without-asking": "what priorities are worth without the argument is RabbitMQ's way",
        "priority-lost-on-requeue": "where messages go that are given back is RabbitMQ's way",
        "stream-offset-off-by-one": "what numbers mean is RabbitMQ's way",
        "stream-last-is-next": "what `last` means is RabbitMQ's way",
        "stream-offset-header-wrong": "by which header a stream numbers is RabbitMQ's way",
        "stream-offset-short": "by which header a stream numbers is RabbitMQ's way",
        "stream-read-again-is-redelivered": "whether what a stream delivers is a redelivery is RabbitMQ's way",
    }
)

#: Planted faults of what the text leaves open: name to why.
OPEN_IN_THE_TEXT: Mapping[str, str] = MappingProxyType(
    {"return-code-wrong": "the text has two codes for what cannot be delivered, and no sentence for either"}
)
