"""Carries out the faults of a soak, one after another, while the clients go on.

A fault is in the trace before it is done; `broker.restart` when the broker is back and before any client has connected
to it, so that what stands before it is of the old life and what stands behind it of the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from amqpspec.conformance.soak.schedule import NEEDS, Disturbance, Kind
from amqpspec.model.protocol.methods import Fault
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.errors import TargetError

#: Seconds for the ends of connections to come when their broker is down.
_ENDS = 2.0
#: Seconds from the moment when clients leave a broker that is about to end.
_LEAVES = 0.3


class Disturbed(Protocol):
    """Whose clients these are (`mill.py`)."""

    def note(self, fault: Fault) -> None:
        """Write it into the trace."""
        ...

    def mishap(self, choice: int) -> None:
        """Have some clients do what clients should not."""
        ...

    def before_the_end(self, kind: Kind) -> None:
        """A broker is about to be killed or stopped: have some clients leave."""
        ...

    def are_gone(self, nodes: Iterable[int]) -> bool:
        """Are all connections to these nodes over, and is all read that came on them?"""
        ...

    def cut_off(self, nodes: Iterable[int]) -> None:
        """Abort the connections to these nodes that are open all the same."""
        ...

    def back(self) -> None:
        """A broker is there again, with what survived."""
        ...

    def quorum_queues(self) -> list[str]: ...
    def through_network(self) -> list[str]:
        """Names of connections that go through a network of the suite's own."""
        ...

    def on_network(self, fault: Fault) -> None:
        """Do it to the network of one connection."""
        ...


class Disturber:
    """`turn` does what is due. `done` are the faults that came, `problems` those that could not be done."""

    def __init__(self, injector: FaultInjector | None, disturbances: Iterable[Disturbance], mill: Disturbed) -> None:
        self._injector, self._mill = injector, mill
        self._disturbances: Iterator[Disturbance] = iter(disturbances)
        self._executor = ThreadPoolExecutor(1, "faults")
        self._under_way: Future[None] | None = None
        self._steps: Iterator[None] | None = None
        self._resume_at = 0.0
        self._now = 0.0
        self.down: set[int] = set()
        self.paused: set[int] = set()
        self.done: list[Disturbance] = []
        self.problems: list[str] = []
        #: the broker does not come back
        self.lost = ""

    @property
    def nodes(self) -> list[int]:
        return list(self._injector.nodes) if self._injector is not None else [1]

    def reachable(self) -> list[int]:
        """The nodes that clients may try to connect to."""
        return [node for node in self.nodes if node not in self.down and node not in self.paused]

    @property
    def is_quiet(self) -> bool:
        """Is nothing wrong with the broker, as far as is known?"""
        return self._under_way is None and self._steps is None and not self.down and not self.paused

    def turn(self, now: float) -> None:
        """Do what is due now."""
        self._now = now
        if self._under_way is not None:
            if not self._under_way.done():
                return
            future, self._under_way = self._under_way, None
            error = future.exception()
            if isinstance(error, TargetError):
                self.problems.append(str(error))
            elif error is not None:
                raise error
        if self._resume_at > now:
            return
        if self._steps is None:
            disturbance = next(self._disturbances, None)
            if disturbance is None:
                return
            self._steps = self._carried_out(disturbance)
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None

    def end(self) -> None:
        """No further fault begins; the one that is there is ended."""
        self._disturbances = iter(())
        self._resume_at = 0.0

    def close(self) -> None:
        """Leave the broker as it was. Raises `TargetError`."""
        self._executor.shutdown(wait=True)
        if self._injector is not None:
            self._injector.undo()

    # ------------------------------------------------------------------------------------------ one after another

    def _carried_out(self, each: Disturbance) -> Iterator[None]:
        self._resume_at = self._now + each.after
        yield
        if each.kind is Kind.CLIENT:
            self.done.append(each)
            self._mill.mishap(each.choice)
            return
        offered = self._injector.offered if self._injector is not None else ()
        if not set(NEEDS[each.kind]) <= set(offered):
            yield from self._on_network(each)
            return
        nodes = [each.node] if each.node else self.nodes
        begins, ends = each.begins(), each.ends()
        if each.kind is Kind.TRANSFER_LEADER:
            queues = self._mill.quorum_queues()
            if not queues:
                return
            arguments = {"queue": queues[each.choice % len(queues)], "node": each.node or 1}
            begins = replace(begins, arguments=arguments)
        if each.kind in (Kind.KILL, Kind.STOP):
            self._mill.before_the_end(each.kind)
            self._resume_at = self._now + _LEAVES
            yield
        self.done.append(each)
        self._mill.note(begins)
        if each.kind in (Kind.KILL, Kind.STOP):
            self.down.update(nodes)
        elif each.kind is Kind.PAUSE:
            self.paused.update(nodes)
        yield from self._inject(begins)
        self._resume_at = self._now + each.hold
        yield
        if ends is None:
            return
        if each.kind in (Kind.KILL, Kind.STOP):
            yield from self._restart(ends, nodes)
            return
        yield from self._inject(ends)
        self._mill.note(ends)
        self.paused.difference_update(nodes)

    def _on_network(self, each: Disturbance) -> Iterator[None]:
        names = self._mill.through_network()
        if not names:
            return
        name = names[each.choice % len(names)]
        self.done.append(each)
        self._mill.note(each.begins(name))
        self._mill.on_network(each.begins(name))
        self._resume_at = self._now + each.hold
        yield
        healed = each.ends(name)
        assert healed is not None
        self._mill.on_network(healed)
        self._mill.note(healed)

    def _restart(self, ends: Fault, nodes: list[int]) -> Iterator[None]:
        until = self._now + _ENDS
        while not self._mill.are_gone(nodes):
            if self._now > until:
                self._mill.cut_off(nodes)
            yield
        before = len(self.problems)
        yield from self._inject(ends)
        if len(self.problems) > before:
            self.lost = self.problems[-1]
            return
        self._mill.note(ends)
        self.down.difference_update(nodes)
        self._mill.back()

    def _inject(self, fault: Fault) -> Iterator[None]:
        assert self._injector is not None
        self._under_way = self._executor.submit(self._injector.inject, fault)
        yield

