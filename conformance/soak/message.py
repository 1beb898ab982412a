"""The messages of a soak: who published which, by their bodies; and whether they arrive as they were published."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from amqpspec.model.protocol.methods import Content, TraceEvent

MARK = "soak"
#: Octets behind the identity of a message: most are short.
_SIZES = (*[0] * 20, *[10] * 20, *[100] * 20, 300, 5000)
#: Begins the name of who publishes the last message of a stream.
_MARKER = "end-of-"


class Identity(NamedTuple):
    """The publisher's name, and the number of the message among its own, from 0."""

    publisher: str
    number: int


def marker(drainer: str, number: int) -> Identity:
    """One of the messages by which who reads a stream knows that it has read all that was published before."""
    return Identity(f"{_MARKER}{drainer}", number)


def is_marker(identity: Identity) -> bool:
    return identity.publisher.startswith(_MARKER)


def content(identity: Identity, exchange: str, key: str, delivery_mode: int) -> Content:
    """The content of that message, which tells everything about itself."""
    publisher, number = identity
    padding = "." * _SIZES[crc32(f"{publisher} {number}".encode()) % len(_SIZES)]
    body = f"{MARK} {publisher} {number} {_sum(identity, exchange, key, padding):08x} {padding}"
    properties = {"delivery_mode": delivery_mode, "message_id": f"{publisher}-{number}"}
    return Content(properties, body.encode())


def identity_of(body: str) -> Identity | None:
    """Which message it is; None: none of a soak."""
    parts = body.split(" ", 3)
    if len(parts) < 4 or parts[0] != MARK or not parts[2].isdecimal():
        return None
    return Identity(parts[1], int(parts[2]))


def identity_of_delivery(event: TraceEvent) -> Identity | None:
    """Which message its message-id says that it is."""
    properties = event.content.properties if event.content is not None else {}
    publisher, _, number = str(properties.get("message_id", "")).rpartition("-")
    return Identity(publisher, int(number)) if number.isdecimal() else None


def is_unchanged(body: str, identity: Identity, exchange: str, key: str, message_id: object) -> bool:
    """Are body, exchange, routing key and message-id those that it was published with?"""
    _, _, padded = body.split(" ", 3)[3].partition(" ")
    said = body.split(" ", 4)[3]
    right = f"{_sum(identity, exchange, key, padded):08x}"
    return said == right and message_id == f"{identity.publisher}-{identity.number}"


def _sum(identity: Identity, exchange: str, key: str, padding: str) -> int:
    return crc32(f"{identity.publisher} {identity.number} {exchange} {key} {padding}".encode())
