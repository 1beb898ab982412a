"""Faults of what messages carry: properties, headers and bodies (PUBLISH-016)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

CONTENTS = Chapter()
on_input, on_output = CONTENTS.on_input, CONTENTS.on_output

_DELIVERING = ("basic.deliver", "basic.get-ok")
#: Octets in the body frames of whoever wants none larger (frame-max 8192).
_FRAME = 8192 - 8


def _with(method: Method, body: bytes | None = None, **properties: Any) -> Method:
    """The frame with another body, or with other values of these properties; None takes one away."""
    content = method.content or Content()
    merged = {name: value for name, value in {**content.properties, **properties}.items() if value is not None}
    return replace(method, content=Content(merged, content.body if body is None else body))


def _headers(method: Method) -> dict[str, Any]:
    """Those that are not the broker's own."""
    headers = method.content.properties.get("headers") if method.content else None
    return {name: value for name, value in (headers or {}).items() if not name.startswith("x-")}


@on_output("header-dropped", "PUBLISH-016", "The last header of a message is lost.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    if names := list(_headers(method)):
        kept = dict(method.content.properties["headers"]) if method.content else {}
        del kept[names[-1]]
        method = _with(method, headers=kept)
    yield method


@on_output("header-of-another-type", "PUBLISH-016", "Whole numbers in headers get 64 bits.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    widened = {name: Int64(value) for name, value in _headers(method).items() if type(value) is int}
    if widened and method.content is not None:
        method = _with(method, headers={**method.content.properties["headers"], **widened})
    yield method


@on_output("transient-made-persistent", "PUBLISH-016", "Every message is delivered as persistent.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, delivery_mode=2)


@on_output("message-id-lost", "PUBLISH-016", "The message-id does not arrive.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, message_id=None)


@on_output("body-cut-at-frame", "PUBLISH-016", "Of a body only the first frame arrives.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, method.content.body[:_FRAME] if method.content else None)


@on_output("empty-body-filled", "PUBLISH-016", "An empty body arrives as one octet.", *_DELIVERING)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield _with(method, b"\0") if method.content is not None and not method.content.body else method


@on_output("return-without-properties", "PUBLISH-007", "A message comes back without its properties.", "basic.return")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield replace(method, content=Content({}, method.content.body if method.content else b""))


@on_input(
    "returned-unasked", "PUBLISH-008", "What no queue takes comes back though it is not mandatory.", "basic.publish"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(replace(method, arguments={**method.arguments, "mandatory": True}))
