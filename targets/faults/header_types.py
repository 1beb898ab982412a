"""Faults in the types of the headers that a broker writes: worth the same, and another type on the wire.

A client reads such a field all the same, or fails on it: in Java a count that is a Long became an Integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from amqpspec.model.broker.dead_letter_headers import HISTORY, is_dead_letter
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.targets.embedded.hooks import Chapter
from amqpspec.targets.embedded.served_broker import ServedBroker

HEADER_TYPES = Chapter()
on_output = HEADER_TYPES.on_output

_DELIVERIES = ("basic.deliver", "basic.get-ok")


def _with(method: Method, change: Callable[[Any], Any], *headers: str) -> Method:
    """The frame with these headers changed, those that it has."""
    told = method.content.properties.get("headers") or {} if method.content is not None else {}
    if method.content is None or not told.keys() & set(headers):
        return method
    changed = {name: change(value) if name in headers else value for name, value in told.items()}
    return replace(method, content=Content({**method.content.properties, "headers": changed}, method.content.body))


def _in_history(method: Method, change: Callable[[Any], Any], key: str) -> Method:
    """The frame of a dead letter with that field of its history changed."""
    if method.content is None or not is_dead_letter(method.content):
        return method

    def changed(history: Any) -> Any:
        return [{**death, key: change(death[key])} if key in death else death for death in history]

    return _with(method, changed, HISTORY)


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, Int64) else value


def _seconds(value: Any) -> Any:
    return Int64(value.timestamp()) if isinstance(value, datetime) else value


@on_output("delivery-count-short", "QUORUM-001", "The count of deliveries is an integer of 32 bits.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, _short, "x-delivery-count")


@on_output("acquired-count-short", "QUORUM-001", "x-acquired-count is an integer of 32 bits.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, _short, "x-acquired-count")


@on_output("stream-offset-short", "STREAM-003", "The header x-stream-offset is an integer of 32 bits.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, _short, "x-stream-offset")


@on_output("death-count-short", "DLX-002", "The count of deaths is an integer of 32 bits.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _in_history(method, _short, "count")


@on_output("death-time-a-number", "DLX-002", "The time of a death is a number, and no time stamp.", *_DELIVERIES)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _in_history(method, _seconds, "time")
