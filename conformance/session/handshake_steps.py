"""The steps of a handshake: which there are, and the frame of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.protocol.credentials import AMQPLAIN, PLAIN, Credentials, amqplain_response, plain_response
from amqpspec.model.protocol.methods import Table, TraceEvent, event_of
from amqpspec.model.rules.connection.handshake import DUE
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1, TUNE_OFFER
from amqpspec.targets.address import Address
from amqpspec.targets.client.handshake import CLIENT_PROPERTIES

#: The steps in their order; the first is no frame.
STEPS = ("socket.open", *DUE.values())

#: What `connection.open` of the command language may say, besides the virtual host, and the step that says it.
_WISHES = {
    "protocol.header": ("octets",),
    "connection.start-ok": ("client_properties", "mechanism", "response", "locale"),
    "connection.tune-ok": ("channel_max", "frame_max", "heartbeat"),
    "connection.open": ("virtual_host",),
}
#: A user who is asked for without a password has none that is right.
NO_PASSWORD = "none"


def step(
    address: Address, name: str, offered: Table, method: str, wishes: Mapping[str, Any], known_as: str = ""
) -> TraceEvent:
    """The frame of one step: what is wished for, and for the rest what a client says who wants to be let in.

    `name` is the connection's; `offered` is what the broker offered on it in connection.tune.
    """
    usual = _USUAL[method](address, offered, wishes)
    if known_as and method == "connection.start-ok":
        usual["client_properties"]["connection_name"] = known_as
    asked = {key: wishes[key] for key in _WISHES[method] if key in wishes}
    return event_of(name, 0, method, {**usual, **asked}, sent=True)


def _header(address: Address, offered: Table, wishes: Mapping[str, Any]) -> Table:
    return {"octets": wishes.get("header", HEADER_0_9_1)}


def _start_ok(address: Address, offered: Table, wishes: Mapping[str, Any]) -> Table:
    properties: Table = dict(CLIENT_PROPERTIES)
    if "capabilities" in wishes:
        properties["capabilities"] = dict(wishes["capabilities"])
    mechanism = wishes.get("mechanism", PLAIN)
    user = wishes.get("user", address.user)
    password = wishes.get("password", NO_PASSWORD if "user" in wishes else address.password)
    respond = amqplain_response if mechanism == AMQPLAIN else plain_response
    return {
        "client_properties": properties,
        "mechanism": mechanism,
        "response": respond(Credentials(user, password)),
        "locale": "en_US",
    }


def _tune_ok(address: Address, offered: Table, wishes: Mapping[str, Any]) -> Table:
    """What the broker offered, of frames not more than the suite itself needs; heartbeats where the address wants them.
    """
    offered = offered or TUNE_OFFER
    most = TUNE_OFFER["frame_max"]
    return {
        "channel_max": offered["channel_max"],
        "frame_max": min(offered["frame_max"] or most, most),
        "heartbeat": address.heartbeat,
    }


def _open(address: Address, offered: Table, wishes: Mapping[str, Any]) -> Table:
    return {"virtual_host": address.vhost}


_USUAL = {
    "protocol.header": _header,
    "connection.start-ok": _start_ok,
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
}
