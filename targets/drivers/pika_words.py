"""What pika calls methods, arguments and properties, and what it makes connections with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pika  # type: ignore[import-untyped]

from amqpspec.model.protocol.methods import Content, Table
from amqpspec.targets.address import Address

# what it would print is in the trace
logging.getLogger("pika").addHandler(logging.NullHandler())

#: Functions that are not called as their method, and arguments that are named otherwise.
_FUNCTIONS = {"channel.close": "close", "channel.flow": "flow"}
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "exchange.declare": {"type": "exchange_type"},
    "basic.qos": {"global_": "global_qos"},
}


def parameters(address: Address) -> pika.ConnectionParameters:
    """To connect once, and without limits of pika's own."""
    return pika.ConnectionParameters(
        address.host,
        address.port,
        address.vhost,
        pika.PlainCredentials(address.user, address.password),
        heartbeat=address.heartbeat,
        connection_attempts=1,
        blocked_connection_timeout=None,
    )


def plainly(channel: Any, method: str, arguments: Table, **more: Any) -> None:
    """Call the function of the method."""
    function = getattr(channel, _FUNCTIONS.get(method, method.replace(".", "_")))
    names = _ARGUMENTS.get(method, {})
    function(**{names.get(name, name): value for name, value in arguments.items() if name != "nowait"}, **more)


def arguments_of(method: Any) -> Table:
    return {name: value for name, value in vars(method).items() if value is not None}


def content_of(properties: Any, body: bytes) -> Content:
    return Content({name: value for name, value in vars(properties).items() if value is not None}, body)
