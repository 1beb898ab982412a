"""A stream with TLS, of either side. In a file of its own: who serves without TLS need not load it."""

from __future__ import annotations

import contextlib
import socket
import ssl

from amqpspec.targets.client.stream import Stream


class SecureStream(Stream):
    """What TLS itself waits for is nothing to read yet, or no room to write."""

    _socket: ssl.SSLSocket

    def __init__(self, sock: ssl.SSLSocket) -> None:
        super().__init__(sock)

    def read(self) -> bytes | None:
        try:
            return super().read()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def write(self, octets: memoryview) -> int:
        try:
            return super().write(octets)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def say_goodbye(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            # that the other side's goodbye is not there yet is the error that is suppressed
            self._socket.unwrap()
        super().say_goodbye()


def serving(context: ssl.SSLContext, sock: socket.socket) -> SecureStream:
    """Over what was accepted; the handshake comes with what is read. Raises `OSError`."""
    return SecureStream(context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False))
