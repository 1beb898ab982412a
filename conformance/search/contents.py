"""Contents that the theme publishing sends: every basic property, headers of every type, bodies of any length."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from amqpspec.conformance.search.actions import Draw, flags, seldom
from amqpspec.model.protocol.methods import Content, Table

#: What each property may be, but for `headers` and those by which the broker acts (expiration, user-id, reply-to).
_PROPERTIES: dict[str, tuple[Any, ...]] = {
    "content_type": ("text/plain", ""),
    "content_encoding": ("utf-8",),
    "delivery_mode": (1, 2),
    "priority": (0, 4, 9, 255),
    "correlation_id": ("c", "ü" * 20),
    "reply_to": ("somebody",),
    "expiration": ("3600000",),
    "message_id": ("i", "x" * 255),
    "timestamp": (1_700_000_000, 0),
    "type": ("t",),
    "user_id": ("guest",),
    "app_id": ("a",),
    "cluster_id": ("n",),
}

_VALUES: tuple[Any, ...] = (
    "text", "", 0, 7, -1, 2**40, True, False, None, 1.5, Decimal("1.50"), bytearray(b"\x00\xff"), [], [1, "two", None],
    {"k": {"deep": [True]}}, {}, datetime(2020, 1, 1, tzinfo=UTC), ["a", ["b", {"c": 2.5}]],
)  # fmt: skip

_names = st.lists(st.sampled_from(tuple(_PROPERTIES)), max_size=5, unique=True)
_headers = st.lists(st.tuples(st.sampled_from(("a", "b", "long-name", "ü")), st.sampled_from(_VALUES)), max_size=4)
#: of a frame's body, of more than one, and of few octets
_sizes = st.sampled_from((0, 100, 131_064, 131_065, 140_000, 300_000))


def content_of(draw: Draw, body: str, *, is_simple: bool) -> Content:
    """`body` begins the body, unless that is empty. `is_simple`: with properties only that are text."""
    if is_simple:
        properties: Table = {"content_type": "text/plain"} if draw(flags) else {}
        return Content(properties, body.encode())
    properties = {name: draw(st.sampled_from(_PROPERTIES[name])) for name in sorted(draw(_names))}
    headers: Table = dict(draw(_headers))
    if headers:
        properties["headers"] = headers
    if draw(seldom):
        return Content(properties)
    return Content(properties, body.encode().ljust(draw(_sizes) if draw(flags) else 0, b"."))
