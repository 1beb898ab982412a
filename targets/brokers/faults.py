"""Faults: a broker is stopped, killed, paused or started again, and networks fail (`model.protocol.methods.Fault`).

Whoever starts a broker can do that to it, and offers a `FaultInjector`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from amqpspec.model.protocol.methods import Fault
from amqpspec.targets.address import Address


class FaultInjector(Protocol):
    """Does to a broker what a fault says. May be asked by several threads."""

    @property
    def offered(self) -> Collection[str]:
        """Names of faults (`model.protocol.methods.FAULTS`)."""
        ...

    @property
    def nodes(self) -> Sequence[int]:
        """The numbers of the nodes, from 1; a single broker has one."""
        ...

    def inject(self, fault: Fault) -> None:
        """Do it, and come back when it is done: after `broker.restart` the node answers AMQP again, after
        `broker.stop` and `broker.kill` its sockets are closed. Without `node` it is done to each node.

        Raises `targets.errors.OperatorError`, and `OperatorMissing` for what is not offered.
        """
        ...

    def address_of(self, node: int) -> Address:
        """Where clients reach the node now; that may be another place after each `broker.restart`."""
        ...

    def undo(self) -> None:
        """Resume what is paused, heal networks, and start what is down. Raises `targets.errors.OperatorError`."""
        ...
