"""Variants of the embedded broker that lack one feature altogether: nothing that it promises may be called kept.

They take the feature's arguments and do nothing, they refuse them, or they do not know its method.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.protocol.methods import Method, RawFrame, Table, TraceEvent
from amqpspec.targets.embedded.hooks import Fault, Proceed, ProceedTimeout, altered
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.timeouts import delivery_of

_UNKNOWN = {"class_id": 85, "method_id": 99, "payload": ""}


@dataclass(frozen=True)
class Lacking:
    """A variant, the beginnings of the requirements that are about what it lacks."""

    fault: Fault
    areas: tuple[str, ...]


def _variant(name: str, *methods: str, **hooks: Any) -> Fault:
    return Fault(name, "", "lacks a feature altogether", frozenset(methods), **hooks)


def _without(*names: str) -> Callable[[ServedBroker, Any, Proceed], None]:
    """Arguments of these names are taken, and nothing comes of them."""

    def hook(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        table: Table = method.arguments.get("arguments") or {}
        left = {name: value for name, value in table.items() if name not in names}
        proceed(altered(method, arguments=left) if left != table else method)

    return hook


def _refusing(*names: str) -> Callable[[ServedBroker, Any, Proceed], None]:
    """What has an argument of these names is not found."""

    def hook(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        table: Table = method.arguments.get("arguments") or {}
        if set(names) & table.keys():
            proceed(Method(method.connection, method.channel, "queue.declare", {"queue": "no", "passive": True}, True))
        else:
            proceed(method)

    return hook


def _unknown(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(RawFrame(method.connection, method.channel, "frame.method", _UNKNOWN, True))


def _ignored(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    """The method does nothing, and is answered by nothing."""


def _answered_only(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    """The method is answered, and nothing comes of it."""
    exchanges = broker.exchanges
    broker.exchanges = copy.deepcopy(exchanges)
    proceed(method)
    broker.exchanges = exchanges


def _silent(broker: ServedBroker, method: Method) -> Iterable[TraceEvent]:
    """The frame is never sent."""
    return ()


def _without_expiration(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    content = method.content
    if method.name == "basic.publish" and content is not None and "expiration" in content.properties:
        left = {name: value for name, value in content.properties.items() if name != "expiration"}
        proceed(replace(method, content=replace(content, properties=left)))
    else:
        _without("x-message-ttl", "x-expires")(broker, method, proceed)


def _as_classic(kind: str) -> Callable[[ServedBroker, Any, Proceed], None]:
    def hook(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        table: Table = method.arguments.get("arguments") or {}
        of_kind = table.get("x-queue-type") == kind
        proceed(altered(method, arguments={**table, "x-queue-type": "classic"}) if of_kind else method)

    return hook


def _no_reply_address(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    name = method.arguments.get("queue", "")
    proceed(altered(method, queue="no") if name.startswith("amq.rabbitmq.reply-to") else method)


def _shared_limit(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    broker.dialect = replace(broker.dialect, prefetch_is_shared=True)
    proceed(method)


def _through(hook: Any, broker: ServedBroker, proceed: Proceed, event: Any) -> None:
    hook(broker, event, proceed)


def _one_of(*hooks: Callable[[ServedBroker, Any, Proceed], None]) -> Callable[[ServedBroker, Any, Proceed], None]:
    """One after the other."""

    def hook(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        for each in hooks[:-1]:
            proceed = partial(_through, each, broker, proceed)
        hooks[-1](broker, method, proceed)

    return hook


def _never(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    """No delivery times out."""
    delivery_of(broker, timeout).deadline = None


DECLARE, EXCHANGE, CONSUME, PUBLISH = "queue.declare", "exchange.declare", "basic.consume", "basic.publish"
_LENGTH = ("x-max-length", "x-max-length-bytes", "x-overflow")
_DEAD = ("x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy")
_TIME = ("x-message-ttl", "x-expires")
_BIND = ("exchange.bind", "exchange.unbind")
_NACK = ("ACK-004", "ACK-014", "CAP-002")
_TOLD = ("CANCEL-004", "CANCEL-007", "CANCEL-008", "CANCEL-011", "CANCEL-012", "CANCEL-013", "CANCEL-015", "CAP-005")
_SAC, _PRIORITY, _MESSAGES = "x-single-active-consumer", "x-priority", "x-max-priority"
_OTHER = "alternate-exchange"


def _arguments(name: str, areas: tuple[str, ...], method: str, *names: str) -> tuple[Lacking, ...]:
    """Two that lack a feature which arguments of a method ask for: they ignore them, and refuse them."""
    return (
        Lacking(_variant(f"{name} ignored", method, input_hook=_without(*names)), areas),
        Lacking(_variant(f"{name} refused", method, input_hook=_refusing(*names)), areas),
    )


LACKING: tuple[Lacking, ...] = (
    Lacking(_variant("confirms never sent", "basic.ack", "basic.nack", output_hook=_silent), ("CONFIRM",)),
    Lacking(_variant("confirm.select unknown", "confirm.select", input_hook=_unknown), ("CONFIRM",)),
    Lacking(_variant("basic.nack ignored", "basic.nack", input_hook=_ignored), _NACK),
    Lacking(_variant("basic.nack unknown", "basic.nack", input_hook=_unknown), _NACK),
    Lacking(_variant("exchange.bind unknown", *_BIND, input_hook=_unknown), ("BIND-004",)),
    Lacking(_variant("exchange.bind ignored", *_BIND, input_hook=_answered_only), ("BIND-004",)),
    Lacking(_variant("cancelled consumers not told", "basic.cancel", output_hook=_silent), _TOLD),
    *_arguments("consumer priorities", ("PRIORITY-001", "PRIORITY-002"), CONSUME, _PRIORITY),
    *_arguments("message priorities", ("PRIORITY-003",), DECLARE, _MESSAGES),
    Lacking(_variant("time to live ignored", DECLARE, PUBLISH, input_hook=_without_expiration), ("TTL", "QUEUE-027")),
    Lacking(
        _variant(
            "time to live refused", DECLARE, PUBLISH, input_hook=_one_of(_without_expiration, _refusing(*_TIME))
        ),
        ("TTL", "QUEUE-027"),
    ),
    *_arguments("limits on length", ("OVERFLOW",), DECLARE, *_LENGTH),
    *_arguments("dead letters", ("DLX",), DECLARE, *_DEAD),
    *_arguments("single active consumers", ("SAC",), DECLARE, _SAC),
    Lacking(_variant("quorum queues as classic", DECLARE, input_hook=_as_classic("quorum")), ("QUORUM",)),
    Lacking(_variant("streams as classic", DECLARE, input_hook=_as_classic("stream")), ("STREAM",)),
    Lacking(_variant("direct replies not there", CONSUME, input_hook=_no_reply_address), ("REPLY", "PUBLISH-017")),
    Lacking(_variant("limits shared", "basic.qos", CONSUME, input_hook=_shared_limit), ("QOS-001", "QOS-003")),
    *_arguments("alternate exchanges", ("EXCHANGE-010", "PUBLISH-010"), EXCHANGE, _OTHER),
    *_arguments("delivery limits", ("QUORUM-003", "QUORUM-004"), DECLARE, "x-delivery-limit"),
    Lacking(_variant("consumer timeouts never", timeout_hook=_never), ("TIMEOUT",)),
)
