"""The opening of a connection, as frames that both sides say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.protocol.methods import MASK, Method, Table, event_of
from amqpspec.model.protocol.patterns import choose
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1, TUNE_OFFER, start_arguments

#: What a client of these tests can do unless it says something else.
CAPABLE: Mapping[str, Any] = {"consumer_cancel_notify": True, "publisher_confirms": True, "basic.nack": True}


def opening(
    connection: str,
    dialect: Dialect = DEFAULT_DIALECT,
    capabilities: Mapping[str, Any] = CAPABLE,
    server_capabilities: Collection[str] = (),
) -> list[Method]:
    """All of it, from the TCP connection to connection.open-ok, by a client who knows the password."""
    start_ok = {"client_properties": {"capabilities": dict(capabilities)}, "mechanism": "PLAIN", "response": MASK}
    exchanged: list[tuple[str, Table, bool]] = [
        ("socket.open", {}, True),
        ("protocol.header", {"octets": HEADER_0_9_1}, True),
        ("connection.start", start(dialect, server_capabilities), False),
        ("connection.start-ok", start_ok, True),
        ("connection.tune", dict(TUNE_OFFER), False),
        ("connection.tune-ok", dict(TUNE_OFFER), True),
        ("connection.open", {"virtual_host": "/"}, True),
        ("connection.open-ok", {}, False),
    ]
    return [event_of(connection, 0, method, arguments, sent) for method, arguments, sent in exchanged]


def start(dialect: Dialect = DEFAULT_DIALECT, server_capabilities: Collection[str] = ()) -> Table:
    """connection.start as it should be; `server_capabilities`: announced beside the usual."""
    arguments = {name: choose(value) for name, value in start_arguments(dialect, (0, 9)).items()}
    if server_capabilities:
        properties = arguments["server_properties"]
        announced = {**properties["capabilities"], **dict.fromkeys(server_capabilities, True)}
        arguments["server_properties"] = {**properties, "capabilities": announced}
    return arguments
