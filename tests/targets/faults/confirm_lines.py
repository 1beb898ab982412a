"""The shortest commands that show each faulty variant of confirms and contents, by its name."""

from __future__ import annotations

_CONFIRMED = """
    a.1 confirm.select
    a.1 basic.publish nosuch
"""
_NACKED = """
    a.1 queue.declare q x-max-length=1 x-overflow=reject-publish
    a.1 confirm.select
    a.1 basic.publish q
    a.1 basic.publish q
"""


def _taken(publish: str) -> str:
    return f"a.1 queue.declare q\na.1 basic.publish q {publish}\na.1 basic.get q"


CONFIRM_LINES: dict[str, str] = {
    "confirm-counts-from-zero": _CONFIRMED,
    "confirm-counts-from-two": _CONFIRMED,
    "confirm-without-select": "a.1 basic.publish nosuch",
    "select-counts-anew": """
        a.1 confirm.select
        a.1 basic.publish nosuch
        a.1 confirm.select
        a.1 basic.publish nosuch
    """,
    "nack-behind-ack": _CONFIRMED,
    "confirmed-together-and-singly": """
        a.1 queue.declare q
        a.1 confirm.select
        a.1 basic.publish q &
        a.1 basic.publish q
    """,
    "single-ack-multiple": _CONFIRMED,
    "single-nack-not-multiple": _NACKED,
    "nack-without-requeue": _NACKED,
    "unroutable-not-confirmed": _CONFIRMED,
    "several-queues-not-confirmed": """
        a.1 exchange.declare x fanout
        a.1 queue.declare q
        a.1 queue.bind q x
        a.1 queue.declare r
        a.1 queue.bind r x
        a.1 confirm.select
        a.1 basic.publish exchange=x routing-key=k
    """,
    "persistent-not-confirmed": """
        a.1 queue.declare q durable
        a.1 confirm.select
        a.1 basic.publish q delivery-mode=2
    """,
    "deletion-forgets-confirms": """
        a.1 queue.declare q
        a.1 confirm.select
        a.1 basic.publish q &
        a.1 queue.delete q
    """,
    "confirm-before-return": """
        a.1 confirm.select
        a.1 basic.publish nosuch mandatory
    """,
    "failed-publish-confirmed": """
        a.1 confirm.select
        a.1 basic.publish exchange=nosuch routing-key=k
    """,
    "confirm-behind-close": """
        a.1 confirm.select
        a.1 basic.publish nosuch
        a.1 basic.ack 1
    """,
    "header-dropped": _taken('headers={"k": "v"}'),
    "header-of-another-type": _taken('headers={"k": 1}'),
    "transient-made-persistent": _taken("delivery-mode=1"),
    "message-id-lost": _taken("message-id=i"),
    "body-cut-at-frame": _taken("body-size=8185"),
    "empty-body-filled": _taken(""),
    "return-without-properties": "a.1 basic.publish nosuch mandatory message-id=i",
    "returned-unasked": "a.1 basic.publish nosuch",
}
