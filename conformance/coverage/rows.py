"""The rows: methods that a client sends, with what makes another thing of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.reply_addresses import ADDRESS, REPLY_TO
from amqpspec.model.protocol.methods import Method, Table

#: Names the arguments of a method. The queue is the one that it is about, if there is one.
Variant = Callable[[Table, Method, Queue | None], str]


def _ack(arguments: Table, method: Method, queue: Queue | None) -> str:
    if not arguments.get("multiple"):
        return "one"
    return "multiple" if arguments.get("delivery_tag") else "all"


def _nack(arguments: Table, method: Method, queue: Queue | None) -> str:
    return f"{_requeue(arguments, method, queue)}, {_ack(arguments, method, queue)}"


def _requeue(arguments: Table, method: Method, queue: Queue | None) -> str:
    return "requeue" if arguments.get("requeue") else "no requeue"


def _qos(arguments: Table, method: Method, queue: Queue | None) -> str:
    count = "n" if arguments.get("prefetch_count") else "0"
    return f"{count}, global" if arguments.get("global_") else count


def _consume(arguments: Table, method: Method, queue: Queue | None) -> str:
    if arguments.get("queue") == REPLY_TO:
        return "replies"
    if "x-priority" in (arguments.get("arguments") or {}):
        return "with a priority"
    if arguments.get("exclusive"):
        return "exclusive"
    return _get(arguments, method, queue)


def _get(arguments: Table, method: Method, queue: Queue | None) -> str:
    return "no-ack" if arguments.get("no_ack") else "to be acknowledged"


def _publish(arguments: Table, method: Method, queue: Queue | None) -> str:
    properties = method.content.properties if method.content is not None else {}
    if not arguments.get("exchange") and str(arguments.get("routing_key", "")).startswith(ADDRESS):
        return "to an address of replies"
    if properties.get("reply_to") == REPLY_TO:
        return "a request"
    most = queue.arguments.get("x-max-priority") if queue is not None else None
    if isinstance(most, int) and "priority" in properties:
        return "of a priority above the maximum" if properties["priority"] > most else "of a priority"
    if "expiration" in properties:
        return "that expires"
    return "mandatory" if arguments.get("mandatory") else "plain"


def _declare(arguments: Table, method: Method, queue: Queue | None) -> str:
    if arguments.get("passive"):
        return "passive"
    return "new" if queue is None else "again"


def _delete(arguments: Table, method: Method, queue: Queue | None) -> str:
    if arguments.get("if_unused"):
        return "if unused"
    return "if empty" if arguments.get("if_empty") else "at all events"


_ANY: tuple[tuple[str, ...], Variant] = (("",), lambda arguments, method, queue: "")
_REQUEUE = ("requeue", "no requeue")
_ACK = ("one", "multiple", "all")
_DELIVERIES = ("out", "came", "before", "elsewhere")
_LIMITS = ("limit", "limits")

#: By method: what its arguments can be, and what tells.
METHODS: Mapping[str, tuple[tuple[str, ...], Variant]] = {
    "basic.ack": (_ACK, _ack),
    "basic.nack": (tuple(f"{requeue}, {which}" for requeue in _REQUEUE for which in _ACK), _nack),
    "basic.reject": (_REQUEUE, _requeue),
    "basic.recover": (_REQUEUE, _requeue),
    "basic.qos": (("0", "n", "0, global", "n, global"), _qos),
    "basic.consume": (("to be acknowledged", "no-ack", "exclusive", "with a priority", "replies"), _consume),
    "basic.get": (("to be acknowledged", "no-ack"), _get),
    "basic.cancel": _ANY,
    "basic.publish": (
        (
            "plain", "mandatory", "that expires", "of a priority", "of a priority above the maximum", "a request",
            "to an address of replies",
        ),
        _publish,
    ),
    "queue.declare": (("new", "again", "passive"), _declare),
    "queue.delete": (("at all events", "if unused", "if empty"), _delete),
    "queue.purge": _ANY,
    "tx.select": _ANY,
    "tx.commit": _ANY,
    "tx.rollback": _ANY,
    "confirm.select": _ANY,
    "channel.close": _ANY,
}  # fmt: skip

#: All groups but that of replies.
EVERY_GROUP = (*_DELIVERIES, "consumers", *_LIMITS, "queue", "kind", "mode")
#: The groups of columns that a method has, or one of its rows, where these are not all of `EVERY_GROUP`.
GROUPS_OF: Mapping[str, tuple[str, ...]] = {
    "basic.publish": ("consumers", "limit", "queue", "kind", "mode"),
    "basic.publish of a priority": ("consumers", "queue", "mode"),
    "basic.publish of a priority above the maximum": ("consumers", "queue", "mode"),
    "basic.publish to an address of replies": ("replies", "mode"),
    "basic.consume replies": (*_DELIVERIES, *_LIMITS, "mode"),
    "queue.declare new": ("elsewhere", "mode"),
    "queue.declare": ("consumers", "queue", "kind"),
    "queue.delete": (*_DELIVERIES, "consumers", "queue", "kind", "mode"),
    "queue.purge": (*_DELIVERIES, "consumers", "queue", "kind", "mode"),
    "tx.select": (*_DELIVERIES, *_LIMITS, "mode"),
    "confirm.select": (*_DELIVERIES, "mode"),
}
