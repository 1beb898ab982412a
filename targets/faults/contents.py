"""Faults of what messages carry: properties, headers and bodies (PUBLISH-016)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content, Frame
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

CONTENTS = Chapter()
on_input, on_output = CONTENTS.on_input, CONTENTS.on_output

_DELIVERING = ("basic.deliver", "basic.get-ok")
#: Octets in the body frames of whoever wants none larger (frame-max 8192).
_FRAME = 8192 - 8


def _with(frame: Frame, body: bytes | None = None, **properties: Any) -> Frame:
    """The frame with another body, or with other values of these properties; None takes one away."""
    content = frame.content or Content()
    merged = {name: value for name, value in {**content.properties, **properties}.items() if value is not None}
    return replace(frame, content=Content(merged, content.body if body is None else body))


def _headers(frame: Frame) -> dict[str, Any]:
    """Those that are not the broker's own."""
    headers = frame.content.properties.get("headers") if frame.content else None
    return {name: value for name, value in (headers or {}).items() if not name.startswith("x-")}


@on_output("header-dropped", "PUBLISH-016", "The last header of a message is lost.", *_DELIVERING)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    if names := list(_headers(frame)):
        kept = dict(frame.content.properties["headers"]) if frame.content else {}
        del kept[names[-1]]
        frame = _with(frame, headers=kept)
    yield frame


@on_output("header-of-another-type", "PUBLISH-016", "Whole numbers in headers get 64 bits.", *_DELIVERING)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    widened = {name: Int64(value) for name, value in _headers(frame).items() if type(value) is int}
    if widened and frame.content is not None:
        frame = _with(frame, headers={**frame.content.properties["headers"], **widened})
    yield frame


@on_output("transient-made-persistent", "PUBLISH-016", "Every message is delivered as persistent.", *_DELIVERING)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield _with(frame, delivery_mode=2)


@on_output("message-id-lost", "PUBLISH-016", "The message-id does not arrive.", *_DELIVERING)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield _with(frame, message_id=None)


@on_output("body-cut-at-frame", "PUBLISH-016", "Of a body only the first frame arrives.", *_DELIVERING)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield _with(frame, frame.content.body[:_FRAME] if frame.content else None)


@on_output("empty-body-filled", "PUBLISH-016", "An empty body arrives as one octet.", *_DELIVERING)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield _with(frame, b"\0") if frame.content is not None and not frame.content.body else frame


@on_output("return-without-properties", "PUBLISH-007", "A message comes back without its properties.", "basic.return")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield replace(frame, content=Content({}, frame.content.body if frame.content else b""))


@on_input(
    "returned-unasked", "PUBLISH-008", "What no queue takes comes back though it is not mandatory.", "basic.publish"
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(replace(frame, arguments={**frame.arguments, "mandatory": True}))
