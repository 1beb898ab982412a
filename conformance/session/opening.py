"""The opening of a connection, one step at a time, each judged before the next is made.

A broker that refuses, or says something else than what is due, is the judge's business: the steps end there. Only a
TCP connection that cannot be made is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amqpspec.model.broker.state import Connection, ConnectionState
from amqpspec.model.protocol.credentials import AMQPLAIN, PLAIN, Credentials, amqplain_response, plain_response
from amqpspec.model.protocol.methods import Frame, Table
from amqpspec.model.rules.connection.handshake import DUE
from amqpspec.model.rules.connection.handshake_content import HEADER_0_9_1, TUNE_OFFER
from amqpspec.targets.address import Address
from amqpspec.targets.client.handshake import CLIENT_PROPERTIES

if TYPE_CHECKING:
    from amqpspec.conformance.language.command import Command
    from amqpspec.conformance.session.session import Session

#: The steps in their order; the first is no frame.
STEPS = ("socket.open", *DUE.values())

#: What `connection.open` of the command language may say, besides the virtual host, and the step that says it.
_WISHES = {
    "protocol.header": ("octets",),
    "connection.start-ok": ("client_properties", "mechanism", "response", "locale"),
    "connection.tune-ok": ("channel_max", "frame_max", "heartbeat"),
    "connection.open": ("virtual_host",),
}
#: A user who is asked for without his password has none that is right.
NO_PASSWORD = "none"


def take_step(session: Session, command: Command) -> None:
    """A step of a handshake, or all of them; a connection that is over makes room for a new one of its name.

    `connection.open` on an open connection changes nothing, and with a `!` it is that method alone. A step that a new
    connection is not ready for is made after those before it. Raises `TargetUnreachable`.
    """
    name, method, wishes = command.connection, command.method, command.arguments
    is_whole = method == STEPS[-1] and not command.as_it_stands
    makes_anew = is_whole or method == STEPS[0]
    if makes_anew:
        session.collect()  # perhaps it is about to be over
    if session.is_usable(name) and not (makes_anew and is_over(session, name)):
        if not makes_anew:
            session.send(step_of(session, name, method, wishes))
    elif is_whole:
        open_connection(session, name, wishes)
    elif method == STEPS[0]:
        session.connect(name)
    elif name not in session.judge.acceptor.broker.connections:
        open_connection(session, name, {}, until=method)
        if session.is_usable(name) and not session.over:
            session.send(step_of(session, name, method, wishes))


def is_over(session: Session, name: str) -> bool:
    """Was everything said on the connection? Its TCP connection is for the client to end then."""
    connection = session.judge.acceptor.broker.connections.get(name)
    return connection is not None and connection.state is ConnectionState.CLOSED and not connection.owed


def open_connection(session: Session, name: str, wishes: Mapping[str, Any], until: str = "") -> None:
    """Make all steps, or those before the step `until`. Raises `TargetUnreachable`."""
    if until == STEPS[0]:
        return
    session.connect(name)
    for state, method in DUE.items():
        if method == until or not is_in(session, name, state):
            return
        session.request(step_of(session, name, method, wishes))


def is_in(session: Session, name: str, state: ConnectionState) -> bool:
    """Is the connection in that state, as far as the judge knows, and can the session go on?"""
    connection = session.judge.acceptor.broker.connections.get(name)
    return connection is not None and connection.state is state and session.is_usable(name) and not session.over


def step_of(session: Session, name: str, method: str, wishes: Mapping[str, Any]) -> Frame:
    """The frame of one step of the session's connection."""
    connection = session.judge.acceptor.broker.connections.get(name) or Connection(name)
    # by its name the operator finds a connection that he is to close
    known_as = session.known_as(name) if session.target.operator is not None else ""
    return step(session.target.address, connection, method, wishes, known_as)


def step(address: Address, connection: Connection, method: str, wishes: Mapping[str, Any], known_as: str = "") -> Frame:
    """The frame of one step: what is wished for, and for the rest what a client says who wants to be let in."""
    usual = _USUAL[method](address, connection, wishes)
    if known_as and method == "connection.start-ok":
        usual["client_properties"]["connection_name"] = known_as
    asked = {key: wishes[key] for key in _WISHES[method] if key in wishes}
    return Frame(connection.name, 0, method, {**usual, **asked}, sent=True)


def _header(address: Address, connection: Connection, wishes: Mapping[str, Any]) -> Table:
    return {"octets": wishes.get("header", HEADER_0_9_1)}


def _start_ok(address: Address, connection: Connection, wishes: Mapping[str, Any]) -> Table:
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


def _tune_ok(address: Address, connection: Connection, wishes: Mapping[str, Any]) -> Table:
    """What the broker offered, of frames not more than the suite itself needs, and no heartbeats."""
    offered = connection.offered or TUNE_OFFER
    most = TUNE_OFFER["frame_max"]
    return {
        "channel_max": offered["channel_max"],
        "frame_max": min(offered["frame_max"] or most, most),
        "heartbeat": 0,
    }


def _open(address: Address, connection: Connection, wishes: Mapping[str, Any]) -> Table:
    return {"virtual_host": address.vhost}


_USUAL = {
    "protocol.header": _header,
    "connection.start-ok": _start_ok,
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
}
