"""Faults that several sequences side by side share: each is done once, when all of them have asked for it, or ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from amqpspec.model.protocol.methods import Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.errors import OperatorError, TargetError
from amqpspec.targets.suite_error import line_of

#: Seconds for the others to come to the same place.
PATIENCE = 300.0
#: Seconds after which somebody who waits looks whether all is to end.
_BETWEEN_LOOKS = 0.2
#: What a sequence asks for that has ended: that everything is as it was.
_UNDO = None


@dataclass(slots=True, eq=False)
class _Wish:
    fault: Fault | None
    is_done: bool = False

    def is_like(self, other: _Wish) -> bool:
        one, two = self.fault, other.fault
        if one is None or two is None:
            return one is two
        return one.name == two.name and one.arguments == two.arguments


class SharedFaults:
    """`members`: so many sequences, each of which has an injector of its own (`member`) and asks it for the same faults
    in the same order, as far as it goes. `is_stopped`: is nothing more to be done, as the run is ended?
    """

    def __init__(self, injector: FaultInjector, members: int, is_stopped: Callable[[], bool]) -> None:
        self.injector = injector
        #: those that ask for more, or may
        self._left = members
        self._is_stopped = is_stopped
        self._changed = threading.Condition()
        self._wishes: list[_Wish] = []
        #: why nothing more is done, and since when (of `time.monotonic`)
        self._problem: TargetError | None = None
        self._since = float("inf")

    def member(self) -> MemberFaults:
        return MemberFaults(self)

    def ask(self, fault: Fault | None) -> None:
        """Back when it was done. None: this member has ended, and wants everything as it was.

        Raises `targets.errors.TargetError`, in each of those who asked.
        """
        wish = _Wish(fault)
        until = time.monotonic() + PATIENCE
        with self._changed:
            self._wishes.append(wish)
            self._go_on()
            while not wish.is_done:
                self._changed.wait(_BETWEEN_LOOKS)
                if self._problem is None and (self._is_stopped() or time.monotonic() > until):
                    self._end(OperatorError("not all of the sequences that share a fault have asked for it"))
                    self._go_on()
                if time.monotonic() > self._since + PATIENCE:  # who has not come by now never will
                    self._left = 0
                    self._go_on()
                if fault is not _UNDO and self._problem is not None and not wish.is_done:
                    self._grant([wish])
            if self._problem is not None:
                raise self._problem

    def leave(self) -> None:
        """A member is gone that has not ended."""
        with self._changed:
            self._left -= 1
            self._go_on()

    def _go_on(self) -> None:
        """Where nobody is left who does something else, do what is wanted: the next fault, or what undoes all."""
        if not self._wishes or len(self._wishes) < self._left:
            return
        next_one = next((each for each in self._wishes if each.fault is not _UNDO), self._wishes[0])
        try:
            if next_one.fault is _UNDO:
                self._left = 0
                self.injector.undo()
            elif self._problem is None:
                self.injector.inject(next_one.fault)
        except TargetError as error:
            self._end(error)
        except BaseException as error:
            self._end(OperatorError(f"the fault was not done: {line_of(error)}"))
            raise  # by who has done it; the others wait for nothing
        finally:
            self._grant([each for each in self._wishes if each.is_like(next_one)])

    def _end(self, problem: TargetError) -> None:
        self._problem, self._since = problem, min(self._since, time.monotonic())

    def _grant(self, wishes: Sequence[_Wish]) -> None:
        for each in wishes:
            each.is_done = True
            self._wishes.remove(each)
        self._changed.notify_all()


class MemberFaults:
    """The `FaultInjector` of one of them. Use as a context manager around the sequence."""

    def __init__(self, shared: SharedFaults) -> None:
        self._shared = shared
        self._has_ended = False

    @property
    def offered(self) -> Collection[str]:
        return self._shared.injector.offered

    @property
    def nodes(self) -> Sequence[int]:
        return self._shared.injector.nodes

    def inject(self, fault: Fault) -> None:
        self._shared.ask(fault)

    def address_of(self, node: int) -> Address:
        return self._shared.injector.address_of(node)

    def undo(self) -> None:
        """The sequence asks for no more faults. Back when no other one does, and everything is as it was."""
        if not self._has_ended:
            self._has_ended = True
            self._shared.ask(_UNDO)

    def __enter__(self) -> MemberFaults:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._shared.leave()
