"""When is a broker that was just started ready: it answers the protocol header with connection.start.

Some do so before their virtual host is there, and force connections to end until then.
"""

from __future__ import annotations

import queue
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from amqpspec.targets.address import Address, AddressError
from amqpspec.targets.client.connecting import trusting_context
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.codec.framing import PROTOCOL_HEADER
from amqpspec.targets.errors import NotYetOpen, TargetError

_METHOD_FRAME = 1
_CONNECTION_START = (10, 10)
_OPENING = struct.Struct(">BHIHH")  # frame type, channel, size, class, method

_LONGEST_ANSWER = 5.0  # seconds for one attempt: a broker that is up answers within milliseconds
_LONGEST_LULL = 0.25  # seconds without a sign of life before the next attempt


class BrokerUnavailable(TargetError):
    """A broker could not be had: the message is one line that names it, what is wrong, and what to do."""


class LogMemory:
    """What to quote of a broker's log when it fails: the first line about its end, or about an error, else the last."""

    #: Last lines that are kept, and characters of each.
    LINES, LONGEST = 12, 300
    #: What tells most comes first.
    TELLING = ("panic", "fatal", "error")

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._last = ""
        self._lines: deque[str] = deque(maxlen=self.LINES)

    def last_lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def add(self, text: str) -> None:
        for line in filter(None, map(str.strip, text.splitlines())):
            self._last = line
            self._lines.append(line[: self.LONGEST])
            for word in self.TELLING:
                if word in line.lower():
                    self._first.setdefault(word, line)

    def quote(self) -> str:
        """A clause to append to a message; empty for a broker that said nothing."""
        line = next((self._first[word] for word in self.TELLING if word in self._first), self._last)
        return f"; it said: {line[:200]}" if line else ""


def answers_amqp(address: Address, timeout: float) -> bool:
    """True when the peer there opens an AMQP 0-9-1 handshake within `timeout` seconds.

    A port forwarder accepts connections before the broker behind it listens, so only a whole method header
    counts. Raises nothing for a peer that refuses, closes, or says something else. True as well where TLS fails by a
    certificate: waiting mends nothing, and who connects next says what is wrong with it.
    """
    deadline = time.monotonic() + timeout
    received = b""
    try:
        context = trusting_context(address) if address.tls else None
    except AddressError:
        return True
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection((address.host, address.port), timeout))
            if context is not None:
                connection = stack.enter_context(context.wrap_socket(connection, server_hostname=address.host))
            connection.sendall(PROTOCOL_HEADER)
            while len(received) < _OPENING.size:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return False
                connection.settimeout(remaining)
                chunk = connection.recv(_OPENING.size - len(received))
                if not chunk:
                    return False
                received += chunk
    except ssl.SSLCertVerificationError:
        return True
    except (OSError, UnicodeError):
        return False
    kind, channel, _size, class_id, method_id = _OPENING.unpack(received)
    return (kind, channel) == (_METHOD_FRAME, 0) and (class_id, method_id) == _CONNECTION_START


def wait_until_ready(
    addresses: Sequence[Address],
    deadline: float,
    life_signs: queue.SimpleQueue[object],
    has_ended: Callable[[], bool],
) -> Address | None:
    """The first of `addresses` at which the broker answers; None when `deadline` (time.monotonic) passes or
    `has_ended()` holds.

    An attempt follows each sign of life (such as a line of its log), or a short lull for a silent broker.
    """
    while time.monotonic() < deadline:
        for address in addresses:
            remaining = max(deadline - time.monotonic(), 0.001)
            if answers_amqp(address, min(remaining, _LONGEST_ANSWER)):
                return address
        if has_ended():
            return None
        _wait_for_sign(life_signs, min(max(deadline - time.monotonic(), 0.0), _LONGEST_LULL))
    return None


def wait_until_open(address: Address, deadline: float, life_signs: queue.SimpleQueue[object]) -> None:
    """Wait while connections are forced to end, until `deadline`. Who connects next tells of any other trouble."""
    while time.monotonic() < deadline:
        try:
            with WireClient(address) as client:
                client.open("ready")
            return
        except NotYetOpen:
            _wait_for_sign(life_signs, _LONGEST_LULL)
        except TargetError:
            return


def _wait_for_sign(life_signs: queue.SimpleQueue[object], timeout: float) -> None:
    """Waits for one sign, and takes with it those that came earlier: one attempt covers them all."""
    try:
        life_signs.get(timeout=timeout)
        while True:
            life_signs.get_nowait()
    except queue.Empty:
        return
