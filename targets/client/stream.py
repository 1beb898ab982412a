"""One TCP or TLS connection, never blocking: octets out, octets in."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from amqpspec.targets.address import TLS_FILES, Address, AddressError
from amqpspec.targets.errors import TargetUnreachable

#: Above the 16 KiB of a TLS record: what is decrypted is all read, as a selector would not see what is left.
#: Below the size from which on an allocation is mapped, which doubles the time of a round trip.
_READ_SIZE = 65_536


class Stream:
    """A connected socket in non-blocking mode, with TLS or without."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def local_port(self) -> int:
        """Our port, 0 once the socket is closed."""
        with contextlib.suppress(OSError):
            return int(self._socket.getsockname()[1])
        return 0

    @property
    def peer_port(self) -> int:
        """The other side's port, 0 when it is gone."""
        with contextlib.suppress(OSError):
            return int(self._socket.getpeername()[1])
        return 0

    def read(self) -> bytes | None:
        """Octets that are there, None if none are now, b"" at the end of the stream. Raises `OSError`."""
        try:
            return self._socket.recv(_READ_SIZE)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def write(self, octets: memoryview) -> int:
        """How many octets could be written now, perhaps 0. Raises `OSError`."""
        try:
            return self._socket.send(octets)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def wait_readable(self, deadline: float) -> bool:
        """Wait for input on this stream alone until `deadline` (of `time.monotonic`)."""
        return _wait(self._socket, select.POLLIN, deadline)

    def wait_writable(self, deadline: float) -> bool:
        return _wait(self._socket, select.POLLOUT, deadline)

    def end_output(self) -> None:
        """Tell the other side that nothing more comes, and go on reading. TLS is not told: it would read no more."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def reset(self) -> None:
        """End with a TCP reset, which discards what is still on its way in both directions."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


def connect(address: Address, deadline: float, tls_context: ssl.SSLContext | None) -> Stream:
    """Connect, and shake hands for TLS if the address says so, until `deadline`. Raises `TargetUnreachable`.

    Only the resolution of the host name is not bound by the deadline but by the system's resolver.
    """
    where = f"{address.host} port {address.port}"
    try:
        host, port = address.way or (address.host, address.port)
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TargetUnreachable(f"cannot resolve the host {address.host}: {reason_of(error)}") from None
    failure = "no address"
    for family, kind, protocol, _, place in candidates:
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:
            failure = reason_of(error)
            continue
        try:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            sock.connect(place)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            break
        except OSError as error:
            failure = "no answer in time" if isinstance(error, TimeoutError) else reason_of(error)
            sock.close()
    else:
        raise TargetUnreachable(f"cannot connect to {where}: {failure}")
    return Stream(_wrapped(sock, address, deadline, tls_context) if address.tls else sock)


def _wrapped(
    sock: socket.socket, address: Address, deadline: float, tls_context: ssl.SSLContext | None
) -> ssl.SSLSocket:
    where = f"{address.host} port {address.port}"
    wrapped: socket.socket = sock
    try:
        context = tls_context or trusting_context(address)
        secure = context.wrap_socket(sock, server_hostname=address.host, do_handshake_on_connect=False)
        wrapped = secure
        while True:
            try:
                secure.do_handshake()
                return secure
            except ssl.SSLWantReadError:
                ready = _wait(secure, select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                ready = _wait(secure, select.POLLOUT, deadline)
            if not ready:
                raise TargetUnreachable(f"no TLS with {where}: no answer in time")
    except (OSError, ValueError) as error:
        wrapped.close()
        raise TargetUnreachable(f"no TLS with {where}: {reason_of(error)}") from None
    except TargetUnreachable:
        wrapped.close()
        raise


def trusting_context(address: Address) -> ssl.SSLContext:
    """Raises `AddressError`, which names the file that cannot be read, or is no certificate or key."""
    for name in TLS_FILES:
        if file := getattr(address, name):
            try:
                Path(file).open("rb").close()
            except OSError as error:
                raise AddressError(f"{name} {file}: {error.strerror}") from None
    with _usable("cacertfile", address.cacertfile):
        context = ssl.create_default_context(cafile=address.cacertfile or None)
    if address.certfile:
        with _usable("certfile", address.certfile, address.keyfile):
            # a key that is kept with a pass phrase is refused: nobody may be asked for it
            context.load_cert_chain(address.certfile, address.keyfile or None, password=lambda: b"")
    return context


@contextlib.contextmanager
def _usable(what: str, *files: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError:
        raise AddressError(f"{what} {' with '.join(filter(None, files))}: not usable") from None


def _wait(sock: socket.socket, event: int, deadline: float) -> bool:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        return False
    poll = select.poll()
    poll.register(sock, event)
    return bool(poll.poll(max(remaining * 1000, 1)))


def reason_of(error: Exception) -> str:
    """Why there is no connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return error.reason or "the peer does not speak TLS"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
