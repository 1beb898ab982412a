"""What the operator of the embedded broker wants, on its way from another thread to the broker's."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.errors import OperatorError

Result = TypeVar("Result")
#: Something that is done in the broker's thread, which owns all that it looks at and changes.
Work = Callable[[], None]

#: Seconds for the broker to come round to it.
PATIENCE = 10.0
#: Octets read at once.
_RINGS = 200


@dataclass(slots=True)
class _Order:
    """Something that the operator wants, `done` with or without a `problem`."""

    what: TraceEvent | Work
    port: int | None
    problem: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class Orders:
    """A queue of them. `alarm` is readable when it is to be looked into, or when somebody rang for another reason."""

    def __init__(self) -> None:
        self.alarm, self._bell = socket.socketpair()
        self.alarm.setblocking(False)
        self._orders: queue.SimpleQueue[_Order] = queue.SimpleQueue()

    def ring(self) -> None:
        """Wake the broker; from any thread."""
        with contextlib.suppress(OSError):
            self._bell.send(b"\0")

    def close(self) -> None:
        self.alarm.close()
        self._bell.close()

    def give(self, event: TraceEvent, port: int | None = None) -> None:
        """Have the frame processed; from any thread, and back when what follows from it is under way.

        `port`: that of the client whose connection the frame is about. Raises `OperatorError`.
        """
        self._give(_Order(event, port), event.name)

    def do(self, work: Callable[[], Result]) -> Result:
        """Have this called in the broker's thread; from any other, and back with what it gives, or raises.

        Raises `OperatorError` if the broker does not serve.
        """
        given: list[Result] = []
        raised: list[Exception] = []

        def carry_out() -> None:
            try:
                given.append(work())
            except Exception as error:  # noqa: BLE001 - it is the asking thread's
                raised.append(error)

        self._give(_Order(carry_out, None), "a request")
        if raised:
            raise raised[0]
        return given[0]

    def _give(self, order: _Order, name: str) -> None:
        self._orders.put(order)
        self.ring()
        if not order.done.wait(PATIENCE):
            raise OperatorError(f"{name}: the embedded broker does not serve")
        if order.problem:
            raise OperatorError(f"{name}: {order.problem}")

    def taken(self, client_from: Callable[[int], str | None]) -> Iterator[TraceEvent | Work]:
        """Those that wait, each done when the next one is asked for; `client_from` gives the client's name by port."""
        with contextlib.suppress(BlockingIOError):
            self.alarm.recv(_RINGS)
        while not self._orders.empty():
            order = self._orders.get()
            what = order.what
            name = client_from(order.port) if order.port is not None else None
            if order.port is None or not isinstance(what, TraceEvent):
                yield what
            elif name is None:
                order.problem = f"no client is connected from port {order.port}"
            else:
                yield replace(what, arguments={**what.arguments, "name": name})
            order.done.set()
