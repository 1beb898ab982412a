"""One TCP connection, never blocking: octets out, octets in. With TLS: `secure_stream.py`."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time

#: Above the 16 KiB of a TLS record: what is decrypted is all read, as a selector would not see what is left.
#: Below the size from which on an allocation is mapped, which doubles the time of a round trip.
_READ_SIZE = 65_536


class Stream:
    """A connected socket in non-blocking mode."""

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
        except (BlockingIOError, InterruptedError):
            return None

    def write(self, octets: memoryview) -> int:
        """How many octets could be written now, perhaps 0. Raises `OSError`."""
        try:
            return self._socket.send(octets)
        except (BlockingIOError, InterruptedError):
            return 0

    def wait_readable(self, deadline: float) -> bool:
        """Wait for input on this stream alone until `deadline` (of `time.monotonic`)."""
        return wait(self._socket, select.POLLIN, deadline)

    def wait_writable(self, deadline: float) -> bool:
        return wait(self._socket, select.POLLOUT, deadline)

    def end_output(self) -> None:
        """Tell the other side that nothing more comes, and go on reading. TLS is not told: it would read no more."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)

    def say_goodbye(self) -> None:
        """Tell the other side that nothing more comes, and that nothing more is read."""
        self.end_output()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def end_by_reset(self) -> None:
        """`close` will be a TCP reset, which discards what is still on its way in both directions."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def reset(self) -> None:
        """End with a TCP reset."""
        self.end_by_reset()
        self.close()


def wait(sock: socket.socket, event: int, deadline: float) -> bool:
    """Did the event (of `select.poll`) come until `deadline` (of `time.monotonic`)?"""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        return False
    poll = select.poll()
    poll.register(sock, event)
    return bool(poll.poll(max(remaining * 1000, 1)))
