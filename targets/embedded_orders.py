"""What the operator of the embedded broker wants, on its way from his thread to the broker's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from model.alphabet import Frame
from targets.errors import OperatorError

#: Seconds for the broker to come round to it.
PATIENCE = 10.0


@dataclass(slots=True)
class _Order:
    """Something that the operator wants, `done` with or without a `problem`."""

    frame: Frame
    port: int | None
    problem: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class Orders:
    """A queue of them."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[_Order] = queue.SimpleQueue()

    def give(self, frame: Frame, port: int | None, ring: Callable[[], None]) -> None:
        """Have the frame processed and wait until it is; `ring` wakes the broker. Raises `OperatorError`.

        `port`: that of the client whose connection the frame is about.
        """
        order = _Order(frame, port)
        self._orders.put(order)
        ring()
        if not order.done.wait(PATIENCE):
            raise OperatorError(f"{frame.method}: the embedded broker does not serve")
        if order.problem:
            raise OperatorError(f"{frame.method}: {order.problem}")

    def taken(self, client_from: Callable[[int], str | None]) -> Iterator[Frame]:
        """Those that wait, each done when the next one is asked for; `client_from` gives the client's name by port."""
        while not self._orders.empty():
            order = self._orders.get()
            frame = order.frame
            name = client_from(order.port) if order.port is not None else None
            if order.port is not None and name is None:
                order.problem = f"no client is connected from port {order.port}"
            else:
                yield replace(frame, arguments={**frame.arguments, "name": name}) if name is not None else frame
            order.done.set()
