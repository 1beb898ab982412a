"""Who stands at the door of the embedded broker: what the model must not know, and cannot say, of a handshake.

The handshake itself is the model's (`model.rules.connection.handshake`). Here are the password, which it never sees,
what the server says of itself, and the limits that octets are held to afterwards.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass, field, replace
from functools import cache

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.dialects import EMBEDDED_PRODUCT
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.model.protocol.credentials import Credentials, credentials_of
from amqpspec.model.protocol.errors import REPLY_CODES
from amqpspec.model.protocol.methods import MASK, METHOD_IDS, HeaderEvent, Method, Table, TraceEvent
from amqpspec.targets.codec.framing import PROTOCOL_HEADER, ProtocolHeader
from amqpspec.targets.codec.tune import Tune

#: In place of a mask that a client sends, which would let it in.
_NOT_A_MASK = "no mask"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may log in, and to what."""

    user: str = "guest"
    password: str = field(default="guest", repr=False)
    vhost: str = "/"


DEFAULT_ACCESS = Access()


class Doorkeeper:
    """Of one connection, until it is open. `tune`: what the client's tune-ok said."""

    def __init__(self, dialect: Dialect, access: Access, properties: Table | None = None) -> None:
        self._properties = server_properties(dialect) if properties is None else properties
        self._access = access
        #: what the client calls its connection
        self.connection_name = ""
        self.awaits_header = True
        self.tune = Tune(channel_max=0, frame_max=0, heartbeat=0)

    def header(self, connection: str, item: ProtocolHeader | bytes) -> TraceEvent:
        """The first octets of a client, whatever they are, as an input of the model."""
        self.awaits_header = False
        octets = item.octets if isinstance(item, ProtocolHeader) else item
        whole = octets[: len(PROTOCOL_HEADER)].ljust(len(PROTOCOL_HEADER), b"\0")
        return HeaderEvent(connection, 0, "protocol.header", {"octets": whole.hex()}, sent=True)

    def shown(self, event: TraceEvent) -> TraceEvent:
        """A frame of the client as the model may see it: with the right password, and only that, masked."""
        if event.channel == 0 and event.name == "connection.tune-ok":
            said = event.arguments
            self.tune = Tune(said["channel_max"], said["frame_max"], said["heartbeat"])
        elif event.name == "connection.start-ok":
            response = event.arguments["response"]
            properties = event.arguments.get("client_properties")
            if isinstance(properties, dict):
                self.connection_name = str(properties.get("connection_name", ""))
            if self._admits(event.arguments["mechanism"], response):
                response = MASK
            elif response == MASK:
                response = _NOT_A_MASK
            return replace(event, arguments={**event.arguments, "response": response})
        return event

    def _admits(self, mechanism: str, response: str) -> bool:
        credentials = credentials_of(mechanism, response)
        return credentials is not None and credentials == Credentials(self._access.user, self._access.password)

    def introduced(self, event: TraceEvent) -> TraceEvent:
        """connection.start with what the server says of itself where the model only says that there is something."""
        said = event.arguments["server_properties"]
        known = self._properties
        told = {name: known.get(name, value) if value == "" else value for name, value in said.items()}
        return replace(event, arguments={**event.arguments, "server_properties": {**_dialect_in(known), **told}})


def _dialect_in(properties: Table) -> Table:
    return {name: value for name, value in properties.items() if name == "dialect"}


def closing(connection: str, code: int, explanation: str, method: str = "") -> TraceEvent:
    """A connection.close by the server itself; the reply text is cut to what a short string holds."""
    class_id, method_id = METHOD_IDS.get(method, (0, 0))
    text = f"{REPLY_CODES[code][0]} - {explanation}".encode()[:255].decode(errors="ignore")
    arguments = {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}
    return Method(connection, 0, "connection.close", arguments, sent=False)


#: The versions of RabbitMQ by which the dialects were verified.
_VERSIONS = {"rabbitmq-3": "3.10.8", "rabbitmq-4.0": "4.0.5", "rabbitmq-4.3": "4.3.6"}


def rabbitmq_properties(dialect: Dialect) -> Table:
    """The same as a RabbitMQ says it, so that clients take the ways that they take there; those of the embedded broker
    in other dialects.
    """
    if base_of(dialect.name) not in _VERSIONS:
        return server_properties(dialect)
    return {
        "cluster_name": f"rabbit@{socket.gethostname()}",
        "copyright": "The amqpspec authors",
        "information": "A test double by amqpspec, not RabbitMQ itself",
        "platform": "Erlang/OTP",
        "product": RABBITMQ,
        "version": _VERSIONS[base_of(dialect.name)],
    }


def server_properties(dialect: Dialect) -> Table:
    """CONN-025, without the capabilities. `dialect` is for `model.promises.dialects.dialect_of`."""
    return {
        "cluster_name": "amqpspec@embedded",
        "copyright": "The amqpspec authors",
        "dialect": dialect.name,
        "host": socket.gethostname(),
        "information": f"The reference model of amqpspec, as {dialect.title}",
        "platform": f"Python {sys.version.split()[0]}",
        "product": EMBEDDED_PRODUCT,
        "version": _version(),
    }


@cache  # each connection.start says it, and reading it takes longer than all else of a handshake
def _version() -> str:
    from importlib import metadata  # takes longer to load than many a module of the broker

    try:
        return metadata.version("amqpspec")
    except metadata.PackageNotFoundError:
        return "unknown"
