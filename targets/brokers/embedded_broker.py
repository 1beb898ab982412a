"""The embedded broker: the reference model behind a TCP port, for real clients and for the suite itself.

One thread and one selector serve all connections. Each frame is given to the model and all that the model then
permits is sent, so that in lockstep the broker is quiet when its last reply arrives.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, as_dialect
from amqpspec.model.protocol.methods import CLOCK_WAIT, OPERATOR, ClockWait, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_node import EmbeddedNode
from amqpspec.targets.brokers.embedded_operator import EmbeddedOperator
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.single_node import BROKER_FAULTS, SingleNode
from amqpspec.targets.client.stream import Stream
from amqpspec.targets.clock import COMMON, Clock, FastForwardClock
from amqpspec.targets.embedded.handshake import Access
from amqpspec.targets.embedded.hooks import Fault
from amqpspec.targets.embedded.hosts_responder import HostsResponder
from amqpspec.targets.embedded.loop import Loop
from amqpspec.targets.embedded.mishaps import Mishaps
from amqpspec.targets.errors import TargetError, TargetUnreachable

if TYPE_CHECKING:
    import ssl


class EmbeddedBrokerFailure(TargetError):
    """The embedded broker met a defect of its own; one line for each."""


class EmbeddedBroker:
    """A broker in this process, with one virtual host and one user until its operator adds more.

    As a context manager it serves from a thread of its own, until the end of the block; `serve_forever` serves from
    the caller's. `port` 0 takes any that is free; `address` says which. `dialect` is one, or its name; raises
    `UnknownDialect`, a ValueError. `fault` is, or names, one of
    `targets.faults.all_faults`, which chooses the dialect if none is given; raises `UnknownFault`. With an
    `ssl_context` it speaks TLS only. It goes by the `clock`, and clients that share a fast-forward one need not wait;
    heartbeats and the like go by the `clients_clock`, if one is given. `properties`: what it says of itself.
    """

    def __init__(
        self,
        dialect: Dialect | str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        fault: str | Fault | None = None,
        user: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        ssl_context: ssl.SSLContext | None = None,
        clock: Clock = COMMON,
        *,
        clients_clock: Clock | None = None,
        properties: Table | None = None,
    ) -> None:
        faulty = _fault_named(fault) if isinstance(fault, str) and fault else fault or None
        default = faulty.dialect if faulty else DEFAULT_DIALECT
        self.dialect = as_dialect(default if dialect is None else dialect)
        self._place = (host, port)
        self._access = Access(user, password, vhost)
        self._tls = ssl_context
        self.clock = clock
        self._clients_clock = clients_clock or clock
        self._properties = properties
        self._responder = HostsResponder(self.dialect, faulty, self._access, clock)
        self._mishaps = Mishaps(self._clients_clock, self._responder.unconfirmed)
        self._thread: threading.Thread | None = None
        self._address: Address | None = None
        self._loop: Loop | None = None
        self._failures: list[str] = []
        #: what happens to it while it serves from a thread of its own
        self.node = EmbeddedNode(self)
        if isinstance(clock, FastForwardClock):
            clock.attend(self._look_at_clock)

    @property
    def address(self) -> Address:
        """Where it listens. Raises `RuntimeError` before it does."""
        if self._address is None:
            raise RuntimeError("the embedded broker does not listen yet")
        return self._address

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends all connections. Raises `EmbeddedBrokerFailure` if it broke down, unless something else is raised."""
        self.end()
        self.node.give_up()
        if error is None and self.failures:
            raise EmbeddedBrokerFailure("; ".join(self.failures))

    def begin(self) -> None:
        """Serve from a thread of its own until `end`. Raises `TargetUnreachable` if it cannot listen there."""
        loop = self._listen()
        self._thread = threading.Thread(target=loop.run, name="embedded broker", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End all connections, and come back when it is done."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def serve_forever(self, on_ready: Callable[[Address], None] | None = None) -> None:
        """Serve until `stop` is called from another thread, or the caller is interrupted.

        `on_ready` is called once it listens. Raises `TargetUnreachable` if it cannot listen there.
        """
        loop = self._listen()
        try:
            if on_ready is not None:
                on_ready(self.address)
        except BaseException:
            loop.close()
            raise
        loop.run()

    def stop(self) -> None:
        """End the serving; from any thread, any number of times."""
        if self._loop is not None:
            self._loop.stop()

    def stop_in_order(self) -> None:
        """The same, once all connections are closed with 320 and the clients have answered, or had the time to."""
        if self._loop is not None:
            self._loop.end_in_order()

    def operator(self) -> Operator:
        """Who operates it while it serves."""
        return EmbeddedOperator(self.give)

    def faults(self) -> FaultInjector:
        """Who stops it and starts it again, while it serves from a thread of its own."""
        return SingleNode(self.node, BROKER_FAULTS)

    def give(self, event: TraceEvent, port: int | None = None) -> None:
        """Have the operator's event processed (`targets.embedded.orders`). Raises `OperatorError`, and `RuntimeError`
        before it serves.
        """
        if self._loop is None:
            raise RuntimeError("the embedded broker does not serve yet")
        self._loop.orders.give(event, port)

    @property
    def failures(self) -> tuple[str, ...]:
        """Defects of the broker itself that were met so far; each has ended a connection with 541."""
        return tuple(self._failures)

    @property
    def loop(self) -> Loop:
        """Serves, from its thread (`Loop.orders`). Raises `RuntimeError` before it does."""
        if self._loop is None:
            raise RuntimeError("the embedded broker does not serve yet")
        return self._loop

    @property
    def responder(self) -> HostsResponder:
        """What it serves: the serving thread's, while one serves."""
        return self._responder

    def keep_port(self) -> None:
        """Listen on the same port when it serves again."""
        self._place = (self._place[0], self.address.port)

    def _listen(self) -> Loop:
        host, port = self._place
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            listener = socket.create_server((host, port), family=family, backlog=128)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TargetUnreachable(f"cannot listen on {host} port {port}: {reason}") from None
        bound_port = int(listener.getsockname()[1])
        access = self._access
        self._address = Address(host, bound_port, access.user, access.password, access.vhost, self._tls is not None)
        self._loop = Loop(
            listener, self._stream_over(), self._responder, self.dialect, access, self._clients_clock, self._mishaps,
            self._properties,
        )  # fmt: skip
        self._loop.failures = self._failures
        return self._loop

    def _stream_over(self) -> Callable[[socket.socket], Stream]:
        if self._tls is None:
            return Stream
        from amqpspec.targets.client.secure_stream import serving  # loads much that a broker without TLS does not need

        return partial(serving, self._tls)

    def _look_at_clock(self) -> None:
        """Do what is due by a clock that was put forward. A broker that is down does nothing."""
        if self._loop is not None and not self.node.is_down:
            self._loop.orders.give(ClockWait(OPERATOR, 0, CLOCK_WAIT, {}, sent=True))


def embedded(target: str, dialect: Dialect | None = None, clock: Clock = COMMON) -> EmbeddedBroker:
    """The one that `embedded`, `embedded:FAULT` or `embedded:VARIANT` means. Raises `UnknownFault`."""
    from amqpspec.targets.faults.compatible import COMPATIBLE_VARIANTS
    from amqpspec.targets.variants import VARIANTS

    name = target.partition(":")[2]
    if name in COMPATIBLE_VARIANTS:
        return EmbeddedBroker(dialect, fault=COMPATIBLE_VARIANTS[name], clock=clock)
    if name in VARIANTS:
        return EmbeddedBroker(VARIANTS[name].dialect, clock=clock)
    return EmbeddedBroker(dialect, fault=name or None, clock=clock)


def _fault_named(name: str) -> Fault:
    """Raises `UnknownFault`."""
    from amqpspec.targets.faults.all_faults import fault_named  # three hundred that most brokers do not have

    return fault_named(name)
