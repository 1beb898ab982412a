"""The opening of a connection: from the protocol header to connection.open-ok (section 2.2.4), as a client.

`shake_hands` decides what to send and what a refusal means; moving and recording frames is the link's work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from amqpspec.model.protocol.credentials import AMQPLAIN, ANONYMOUS, PLAIN, Credentials, credentials_of, plain_response
from amqpspec.model.protocol.methods import MASK, Table, TraceEvent, event_of
from amqpspec.targets.address import Address
from amqpspec.targets.codec.methods_codec import DEFAULT_FRAME_MAX
from amqpspec.targets.codec.tune import Tune
from amqpspec.targets.errors import (
    AccessRefused,
    NotYetOpen,
    OpenRefused,
    TargetError,
    TargetUnreachable,
    VhostNotFound,
)

CLIENT_PROPERTIES: Table = {
    "product": "amqpspec",
    "capabilities": {
        "authentication_failure_close": True,
        "basic.nack": True,
        "connection.blocked": True,
        "consumer_cancel_notify": True,
        "exchange_exchange_bindings": True,
        "per_consumer_qos": True,
        "publisher_confirms": True,
    },
}

#: Arguments that hold nothing but a credential, by method: never recorded.
_SECRETS = {"connection.secure-ok": "response", "connection.update-secret": "new_secret"}
#: Stands for the password of the target where it is not among its credentials, and for a mask that the client sent.
_HIDDEN = "(hidden)"
#: The password that every RabbitMQ is delivered with.
_NO_SECRET = "guest"
_LONGEST_TEXT = 300
_CONNECTION_FORCED = 320


@dataclass(frozen=True, slots=True)
class Session:
    """What the handshake settled."""

    server_properties: Table
    tune: Tune


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the client asks for; None takes the broker's limit (of at most 131072 octets for frames)."""

    client_properties: Table | None = None
    heartbeat: int = 0
    frame_max: int | None = None
    channel_max: int | None = None


class Link(Protocol):
    """A connection whose handshake is under way."""

    name: str

    def send(self, event: TraceEvent) -> None: ...

    def receive(self) -> TraceEvent:
        """The next frame, socket frames included. Raises `TargetUnreachable` when it comes too late."""
        ...


def recordable(event: TraceEvent, address: Address) -> TraceEvent:
    """The frame itself, or a copy without the secrets of the address.

    The response of connection.start-ok is `MASK` exactly if it holds the user and password of the address, or means
    these as ANONYMOUS does. Otherwise it is what somebody made up, to be judged as it stands.
    """
    if event.name == "connection.start-ok" and "response" in event.arguments:
        response = _recordable_response(event.arguments, address)
        return replace(event, arguments=event.arguments | {"response": response})
    secret = _SECRETS.get(event.name)
    if secret is None or secret not in event.arguments:
        return event
    return replace(event, arguments=event.arguments | {secret: MASK})


def _recordable_response(said: Table, address: Address) -> str:
    ours, response = Credentials(address.user, address.password), str(said["response"])
    mechanisms = (ANONYMOUS,) if said.get("mechanism") == ANONYMOUS else (PLAIN, AMQPLAIN)
    if any(credentials_of(mechanism, response) == ours for mechanism in mechanisms):
        return MASK
    if response == MASK:
        return _HIDDEN
    if address.password and address.password != _NO_SECRET:
        return response.replace(address.password, _HIDDEN)
    return response


def shake_hands(link: Link, address: Address, wishes: Wishes) -> Session:
    """Log in with PLAIN, settle the limits, open the virtual host. Raises `TargetError`.

    A limit that was wished for is sent as it is, also where it exceeds the broker's.
    """
    hand = _Handshake(link, address)
    start = hand.expect("connection.start", _not_amqp)
    mechanisms = str(start.arguments["mechanisms"]).split()
    if PLAIN not in mechanisms:
        offered = hand.readable(" ".join(mechanisms)) or "none"
        raise AccessRefused(f"{address} offers no PLAIN login, only {offered}")
    hand.send(
        "connection.start-ok",
        client_properties=CLIENT_PROPERTIES if wishes.client_properties is None else wishes.client_properties,
        mechanism=PLAIN,
        response=plain_response(Credentials(address.user, address.password)),
        locale="en_US",
    )
    offer = hand.expect("connection.tune", _login_refused).arguments
    tune = Tune(
        channel_max=offer["channel_max"] if wishes.channel_max is None else wishes.channel_max,
        frame_max=min(offer["frame_max"] or DEFAULT_FRAME_MAX, DEFAULT_FRAME_MAX)
        if wishes.frame_max is None
        else wishes.frame_max,
        heartbeat=wishes.heartbeat,
    )
    hand.send("connection.tune-ok", **tune._asdict())
    hand.send("connection.open", virtual_host=address.vhost)
    hand.expect("connection.open-ok", _open_refused)
    return Session(start.arguments["server_properties"], tune)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """How the broker ended the handshake: connection.close (`code`, `text`), or the stream (code 0)."""

    address: Address
    code: int
    text: str


class _Refused(Protocol):
    def __call__(self, refusal: _Refusal) -> TargetError: ...


class _Handshake:
    def __init__(self, link: Link, address: Address) -> None:
        self._link = link
        self._address = address

    def send(self, method: str, /, **arguments: object) -> None:
        self._link.send(event_of(self._link.name, 0, method, arguments, sent=True))

    def expect(self, method: str, refused: _Refused) -> TraceEvent:
        event = self._link.receive()
        if event.name == method and event.channel == 0:
            return event
        if event.name == "connection.close":
            self.send("connection.close-ok")
            text = self.readable(event.arguments["reply_text"])
            raise refused(_Refusal(self._address, event.arguments["reply_code"], text))
        if event.name == "socket.closed":
            raise refused(_Refusal(self._address, 0, event.arguments["reason"]))
        if event.name == "socket.garbage":
            said = _said_in_words(event.arguments.get("octets", ""))
            reason = f"it sent {self.readable(said)!r}" if said else event.arguments["reason"]
            raise TargetUnreachable(f"{self._address} does not speak AMQP 0-9-1: {reason}")
        if event.name == "protocol.header":
            raise TargetUnreachable(f"{self._address} does not speak AMQP 0-9-1: it sent a protocol header")
        raise TargetUnreachable(f"{self._address} sent {event.name} where {method} was due")

    def readable(self, text: str) -> str:
        """What a broker wrote, as part of one line, without the password."""
        # A password equal to the user name cannot be told from it, and is no secret.
        if self._address.password and self._address.password != self._address.user:
            text = text.replace(self._address.password, MASK)
        line = "".join(character if character.isprintable() else " " for character in text)
        return " ".join(line.split())[:_LONGEST_TEXT]


def _said_in_words(octets: str) -> str:
    """The first line of what came, where it is text, as servers of other protocols send it ("HTTP/1.1 400 Bad Request",
    "-ERR unknown command"); empty: it is none. `octets`: hexadecimal.
    """
    try:
        line = bytes.fromhex(octets).decode("ascii").partition("\n")[0].rstrip("\r")
    except ValueError:
        return ""
    return line if len(line) > 3 and line.isprintable() else ""


def _not_amqp(refusal: _Refusal) -> TargetError:
    if refusal.code:
        return TargetUnreachable(f"{refusal.address} closed the connection at once: {_cause(refusal)}")
    return TargetUnreachable(f"{refusal.address} ended the connection before connection.start: {refusal.text}")


def _login_refused(refusal: _Refusal) -> TargetError:
    # Without the capability to say so, brokers just hang up; GarageMQ says 530 "login failure".
    if refusal.code in (0, 403) or "login" in refusal.text.lower():
        return AccessRefused(f"{refusal.address} refused the user name or password: {_cause(refusal)}")
    return OpenRefused(f"{refusal.address} refused the connection: {_cause(refusal)}")


def _open_refused(refusal: _Refusal) -> TargetError:
    if refusal.code == 0:
        return TargetUnreachable(f"{refusal.address} ended the connection in the handshake: {refusal.text}")
    # 402 is what the text of 0-9-1 says; RabbitMQ sends 530 for everything and explains in words.
    if refusal.code == 402 or (refusal.code == 530 and "not found" in refusal.text):
        return VhostNotFound(f"{refusal.address} has no such virtual host: {_cause(refusal)}")
    error = NotYetOpen if refusal.code == _CONNECTION_FORCED else OpenRefused
    return error(f"{refusal.address} refused the connection: {_cause(refusal)}")


def _cause(refusal: _Refusal) -> str:
    return f"{refusal.code} {refusal.text}" if refusal.code else refusal.text
