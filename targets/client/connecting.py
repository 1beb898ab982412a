"""How a client comes to its stream: name, TCP, and TLS where the address says so."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

from amqpspec.targets.address import TLS_FILES, Address, AddressError
from amqpspec.targets.client.secure_stream import SecureStream
from amqpspec.targets.client.stream import Stream, wait
from amqpspec.targets.errors import TargetUnreachable


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
    return SecureStream(_wrapped(sock, address, deadline, tls_context)) if address.tls else Stream(sock)


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
                ready = wait(secure, select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                ready = wait(secure, select.POLLOUT, deadline)
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


def reason_of(error: Exception) -> str:
    """Why there is no connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return error.reason or "the peer does not speak TLS"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
