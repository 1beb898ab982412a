"""Starts an embedded broker again and again: one for each sequence that breaks it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.clock import Clock, FastForwardClock


class BrokenBroker(Protocol):
    """One that a sequence has for itself."""

    @property
    def address(self) -> Address: ...
    @property
    def clock(self) -> Clock: ...
    def operator(self) -> Operator | None: ...
    def faults(self) -> FaultInjector | None: ...


@dataclass(frozen=True, slots=True)
class EmbeddedAgain:
    """`target`: what such a broker is called on the command line. `dialect`: the name of one; "": the target says it.

    It can be sent to another process.
    """

    target: str
    dialect: str = ""

    def __call__(self) -> AbstractContextManager[BrokenBroker]:
        """Raises `TargetError` when it is entered, and at its end if the broker broke down."""
        from amqpspec.targets.brokers.embedded_broker import embedded  # which few targets need

        clock = FastForwardClock()  # nobody else goes by it, so nobody need wait
        return embedded(self.target, dialect_named(self.dialect) if self.dialect else None, clock)
