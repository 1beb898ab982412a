"""A client that costs as little as a client can: its frames are made once, and of answers it reads the numbers alone.

So what is measured with it is the broker. It pipelines, with any number of publishes in flight.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from amqpspec.model.protocol.credentials import Credentials, plain_response
from amqpspec.model.protocol.methods import Content, event_of
from amqpspec.targets.address import Address
from amqpspec.targets.codec.methods_codec import PROTOCOL_HEADER, encode
from benchmarks.errors import Invalid

#: Seconds without a word from the broker, after which it is taken for dead.
_PATIENCE = 60.0
_READ_SIZE = 256 * 1024
_FRAME_HEAD = struct.Struct(">BHI")
_METHOD = struct.Struct(">HH")
_TAG = struct.Struct(">Q")
_METHOD_FRAME = 1
_ACK, _DELIVER, _CLOSES = (60, 80), (60, 60), ((10, 50), (20, 40))


class PlainClient:
    """Context manager: one connection with the channels 1 and 2. Raises `Invalid` where the broker ends it."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port), timeout=_PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._waiting = b""
        self._socket.sendall(PROTOCOL_HEADER)
        self._call((10, 10))
        login = plain_response(Credentials(address.user, address.password))
        said = {"client_properties": {}, "mechanism": "PLAIN", "response": login, "locale": "en_US"}
        self.call("connection.start-ok", (10, 30), **said)
        self.send("connection.tune-ok", channel_max=2047, frame_max=131_072, heartbeat=0)
        self.call("connection.open", (10, 41), virtual_host=address.vhost)
        for channel in (1, 2):
            self.call("channel.open", (20, 11), channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, method: str, channel: int = 0, content: Content | None = None, **arguments: Any) -> None:
        self.write(made(method, channel, content, **arguments))

    def call(self, method: str, reply: tuple[int, int], channel: int = 0, **arguments: Any) -> None:
        """Send it, and come back with its reply; what comes before that is not looked at."""
        self.send(method, channel, **arguments)
        self._call(reply)

    def write(self, octets: bytes) -> None:
        self._socket.sendall(octets)

    def confirmed(self) -> int:
        """The greatest delivery tag of a confirm in what has come, which is waited for; 0: there is none."""
        return max((tag for method, tag in self.read() if method == _ACK), default=0)

    def delivered(self) -> int:
        """The same of deliveries."""
        return max((tag for method, tag in self.read() if method == _DELIVER), default=0)

    def _call(self, reply: tuple[int, int]) -> None:
        while not any(method == reply for method, _ in self.read()):
            pass

    def read(self) -> list[tuple[tuple[int, int], int]]:
        """Class and method of the frames that have come, at least one octet of which is waited for; with the delivery
        tag of a confirm or a delivery.
        """
        octets = self._socket.recv(_READ_SIZE)
        if not octets:
            raise Invalid("the broker has ended the connection")
        octets = self._waiting + octets if self._waiting else octets
        found = list(self._frames(octets))
        for method, _ in found:
            if method in _CLOSES:
                raise Invalid(f"the broker has sent a close, of class {method[0]}")
        return found

    def _frames(self, octets: bytes) -> Iterator[tuple[tuple[int, int], int]]:
        at, length = 0, len(octets)
        while at + 7 <= length:
            kind, _, size = _FRAME_HEAD.unpack_from(octets, at)
            if at + size + 8 > length:
                break
            if kind == _METHOD_FRAME:
                method = _METHOD.unpack_from(octets, at + 7)
                tag_at = 0
                if method == _ACK:
                    tag_at = at + 11
                elif method == _DELIVER:
                    tag_at = at + 12 + octets[at + 11]
                yield method, _TAG.unpack_from(octets, tag_at)[0] if tag_at else 0
            at += size + 8
        self._waiting = octets[at:]


def made(method: str, channel: int, content: Content | None = None, **arguments: Any) -> bytes:
    """The octets of the frames."""
    return bytes(encode(event_of("", channel, method, arguments, True, content)))
