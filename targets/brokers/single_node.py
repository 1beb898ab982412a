"""A broker of one node, to which faults are done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from amqpspec.model.protocol.methods import Fault
from amqpspec.targets.address import Address
from amqpspec.targets.errors import OperatorMissing

#: All that can be done to a broker of one node.
BROKER_FAULTS = ("broker.stop", "broker.kill", "broker.pause", "broker.resume", "broker.restart")

#: By fault, that which ends what it does.
ENDED_BY = {"broker.stop": "broker.restart", "broker.kill": "broker.restart", "broker.pause": "broker.resume"}


class Node(Protocol):
    """What somebody who started a broker can do to it. Each comes back when it is done, and raises
    `targets.errors.TargetError` where that cannot be done.
    """

    @property
    def address(self) -> Address: ...

    def stop(self) -> None:
        """End it in good order. It runs."""
        ...

    def kill(self) -> None:
        """End it at once. It runs, or is paused."""
        ...

    def pause(self) -> None:
        """Let it do nothing at all. It runs."""
        ...

    def resume(self) -> None:
        """Let it go on. It is paused."""
        ...

    def start_again(self) -> None:
        """Start it, on the data that it had. It is down. Back when it answers AMQP."""
        ...


class SingleNode:
    """A `FaultInjector` for it. What changes nothing, such as to stop a broker that is down, is not done.

    `offered`: names of faults.
    """

    def __init__(self, node: Node, offered: Collection[str]) -> None:
        self.offered = offered
        self.nodes: Sequence[int] = (1,)
        self._node = node
        self._lock = threading.Lock()
        self._is_down = self._is_paused = False
        self._done_by: Mapping[str, Callable[[], None]] = {
            "broker.stop": self._stop,
            "broker.kill": self._kill,
            "broker.pause": self._pause,
            "broker.resume": self._resume,
            "broker.restart": self._restart,
        }

    def inject(self, fault: Fault) -> None:
        node = fault.arguments.get("node", 1)
        if fault.name not in self.offered or fault.name not in self._done_by:
            raise OperatorMissing(f"{fault.name}: this target does not offer it")
        if node not in self.nodes:
            raise OperatorMissing(f"{fault.name} node={node}: this target has one node")
        with self._lock:
            self._done_by[fault.name]()

    def address_of(self, node: int) -> Address:
        return self._node.address

    def undo(self) -> None:
        with self._lock:
            self._resume()
            if self._is_down:
                self._start()

    def _stop(self) -> None:
        if not self._is_down:
            self._resume()
            self._node.stop()
            self._is_down = True

    def _kill(self) -> None:
        if not self._is_down:
            self._node.kill()
            self._is_down, self._is_paused = True, False

    def _pause(self) -> None:
        if not self._is_down and not self._is_paused:
            self._node.pause()
            self._is_paused = True

    def _resume(self) -> None:
        if self._is_paused:
            self._node.resume()
            self._is_paused = False

    def _restart(self) -> None:
        self._stop()
        self._start()

    def _start(self) -> None:
        self._node.start_again()
        self._is_down = False
