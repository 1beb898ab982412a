"""What can be said through a library: its methods, and the arguments that each takes. What is not here is for the wire.

To tell the broker something else, such as a frame that is wrong, is what a library is there to prevent.
"""

from __future__ import annotations

from collections.abc import Mapping

from amqpspec.model.protocol.methods import Content, Table

#: method -> arguments.
Table_of_methods = Mapping[str, frozenset[str]]


def _methods(**arguments: str) -> Table_of_methods:
    return {name.replace("__", ".").replace("_", "-"): frozenset(words.split()) for name, words in arguments.items()}


_COMMON = _methods(
    queue__declare="queue passive durable exclusive auto_delete arguments",
    queue__bind="queue exchange routing_key arguments",
    queue__unbind="queue exchange routing_key arguments",
    queue__purge="queue",
    queue__delete="queue if_unused if_empty",
    exchange__declare="exchange type passive durable auto_delete internal arguments",
    exchange__delete="exchange if_unused",
    exchange__bind="destination source routing_key arguments",
    exchange__unbind="destination source routing_key arguments",
    basic__publish="exchange routing_key mandatory",
    basic__consume="queue consumer_tag no_ack exclusive arguments",
    basic__cancel="consumer_tag",
    basic__get="queue no_ack",
    basic__ack="delivery_tag multiple",
    basic__nack="delivery_tag multiple requeue",
    basic__reject="delivery_tag requeue",
    basic__recover="requeue",
    basic__qos="prefetch_size prefetch_count global_",
    confirm__select="",
    tx__select="",
    tx__commit="",
    tx__rollback="",
    channel__open="",
    channel__flow="active",
    channel__close="",
    connection__open="",
    connection__close="",
    connection__update_secret="new_secret reason",
    socket__abort="",
)


def _also(table: Table_of_methods, methods: Table_of_methods) -> Table_of_methods:
    return {**table, **{name: table.get(name, frozenset()) | more for name, more in methods.items()}}


#: Where no answer is waited for.
_NOWAIT = _methods(
    queue__declare="nowait", queue__bind="nowait", queue__purge="nowait", queue__delete="nowait",
    exchange__declare="nowait", exchange__delete="nowait", exchange__bind="nowait", exchange__unbind="nowait",
    basic__cancel="nowait", confirm__select="nowait",
)  # fmt: skip

#: Where the words of a close are the application's.
_CLOSING = _methods(channel__close="reply_code reply_text", connection__close="reply_code reply_text")

_AIO_PIKA = _also(_also(_COMMON, _NOWAIT), _methods(basic__publish="immediate", basic__recover_async="requeue"))

#: By the name of the driver.
EXPRESSIBLE: Mapping[str, Table_of_methods] = {
    "pika": _also(_COMMON, _CLOSING),
    "pika-select": _also(_also(_COMMON, _CLOSING), _NOWAIT),
    "aio-pika": _AIO_PIKA,
    "aio-pika-robust": _AIO_PIKA,
}

#: What a command means that does not say it, where libraries would take something else.
NOT_GIVEN: Mapping[str, Table] = {
    "basic.nack": {"requeue": False}, "basic.reject": {"requeue": False}, "exchange.declare": {"type": ""},
}  # fmt: skip

#: Why not, where it is not that the library has no word for it.
_HANDSHAKE = ("connection.open", "connection.start-ok", "connection.tune-ok", "protocol.header", "socket.open")


def why_not(
    driver: str, channel: int, method: str, arguments: Table, content: Content | None, as_it_stands: bool
) -> str | None:
    """Why a client of that library cannot send this; None: it can."""
    table = EXPRESSIBLE[driver]
    if method in _HANDSHAKE and (method not in table or arguments or as_it_stands):
        return f"{driver} makes the handshake itself"
    if as_it_stands:
        return f"{driver} sends nothing on a channel that is not open"
    if method not in table:
        return f"{driver} does not send {method}"
    if (channel == 0) != method.startswith(("connection.", "socket.")):
        return f"{driver} sends no {method} on channel {channel}"
    if method == "basic.publish" and content is None:
        return f"{driver} sends no content in parts"
    for name, value in arguments.items():
        if name not in table[method] and value:
            return f"{driver} does not send {method} with {name.rstrip('_').replace('_', '-')}"
    return None
