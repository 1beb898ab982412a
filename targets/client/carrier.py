"""What carries commands to a broker: the frames that a session sends and receives, whatever client is underneath.

`WireClient` (`targets.client.wire`) carries every frame there is, well-formed or not, by itself. Another client library
carries what its interface lets it say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.clock import Clock

#: Sees every frame once, its time stamped and the target's credentials masked.
Observer = Callable[[TraceEvent], None]


class Carrier(Protocol):
    """Several connections to one broker, by name, for one sequence.

    The observer sees a frame that is sent before the broker can, and one that came when `receive` returns it. It sees
    `socket.open`, `socket.abort` and `socket.silence` as well. `TraceEvent.time` is seconds since the carrier was made;
    the times that the observer sees never decrease. Nothing is answered by the carrier itself, except that
    heartbeats that were agreed on are sent. Where nothing is said of errors, a connection that breaks is none:
    `receive` returns its `socket.closed`, and what is sent on it from then on is ignored and not observed.
    """

    def connect(self, name: str, address: Address | None = None) -> None:
        """Make the TCP connection, and no step of the handshake. `address`: where to, if not to the broker's.

        Raises `TargetUnreachable`.
        """
        ...

    def end_output(self, name: str) -> None:
        """Close our side of the TCP connection: nothing more is sent there, what comes is received. Nobody sees it."""
        ...

    def leave(self, name: str) -> None:
        """Give up a connection on which everything was said, so that its name can be used again. Nobody sees it."""
        ...

    def abort(self, name: str) -> None:
        """Reset the TCP connection. What had come and was not received is dropped."""
        ...

    def silence(self, name: str) -> None:
        """Send no heartbeats on this connection from now on."""
        ...

    def send(self, event: TraceEvent, more: bool = False) -> None:
        """Send a frame; `more`: together with the next one on this connection, which comes at once.

        Raises `EncodingError` for what no octets can express.
        """
        ...

    def note(self, event: TraceEvent) -> None:
        """Show the observer what happens to the broker without any connection (the operator's doings, `clock.wait`)."""
        ...

    def settle(self) -> None:
        """Wait until nothing that has come is on its way within the client."""
        ...

    def receive(self, timeout: float) -> TraceEvent | None:
        """The next frame of any connection, awaited for so many seconds at most; None if there was none.

        Besides methods: protocol.header; socket.closed when a connection is over; socket.garbage when what came is no
        frame. None at once when no connection is open.
        """
        ...

    def receive_before(self, deadline: float) -> TraceEvent | None:
        """The next frame; None from `deadline` (of `time.monotonic`) on, whatever goes on arriving."""
        ...

    def is_open(self, name: str) -> bool:
        """Is there a connection of this name whose end is not yet known?"""
        ...

    def open_names(self) -> list[str]:
        """The connections that are open."""
        ...

    def local_port(self, name: str) -> int:
        """The port that a connection goes out from, by which the operator finds it; 0 where there is none."""
        ...

    def close(self) -> None:
        """Close all connections without a word. The carrier cannot be used again."""
        ...


class Driver(Protocol):
    """Makes the carrier of one sequence: `WireClient` is one, and so is any function with these arguments.

    `write_patience`: seconds without progress after which a broker has stopped reading, which ends the connection.
    """

    def __call__(self, address: Address, observer: Observer, *, write_patience: float, clock: Clock) -> Carrier: ...
