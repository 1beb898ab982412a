"""When something was wrong with the broker or its network in a soak, and what may be otherwise because of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from amqpspec.conformance.soak.schedule import NEEDS, Kind

#: Seconds before a fault in which what was sent may not have been read, or not have reached a disk.
BEFORE = 3.0
#: Seconds after the end of a fault of one node in which the others find out what happened meanwhile.
AFTER = 5.0

#: Seconds after a fault in which something comes right after it.
_RIGHT_AFTER = 2.0

_BEGINS = {NEEDS[kind][0]: kind for kind in Kind if NEEDS[kind]}
_ENDS = {
    "broker.restart": (Kind.KILL, Kind.STOP), "broker.resume": (Kind.PAUSE,), "network.heal": (Kind.CUT, Kind.SLOW),
}  # fmt: skip


@dataclass(slots=True)
class Window:
    """From `begin` to `end` of the trace's seconds. `node` is None where all nodes are concerned. `line`: of the
    trace. `connection`: of whose network it is.
    """

    kind: Kind
    begin: float
    line: int
    node: int | None = None
    connection: str = ""
    end: float = inf
    number: int = 0

    @property
    def after(self) -> float:
        """Seconds after its end in which things may be otherwise."""
        return AFTER if self.node is not None else 0.0

    @property
    def name(self) -> str:
        """For people."""
        place = f" of node {self.node}" if self.node is not None else f" of {self.connection}" * bool(self.connection)
        return f"{self.kind}{place} at {self.begin:.1f} s (line {self.line})"


class Windows:
    """Those of a soak, in the order of their beginning. What clients do is not among them."""

    def __init__(self) -> None:
        self.all: list[Window] = []
        #: when the whole broker, or a node of it, had gone down, and when it was there again
        self.lives: list[tuple[float, float, int | None]] = []

    def take(self, name: str, arguments: dict[str, Any], time: float, line: int) -> None:
        """A fault of that name came."""
        kind, node = _BEGINS.get(name), arguments.get("node")
        connection = arguments.get("connection", "")
        if kind is not None:
            self.all.append(Window(kind, time, line, node, connection, number=len(self.all) + 1))
            if kind is Kind.TRANSFER_LEADER:
                self.all[-1].end = time
            return
        for window in self.all:
            is_same = window.node == node and window.connection == connection
            if window.end == inf and window.kind in _ENDS.get(name, ()) and is_same:
                window.end = time
                if name == "broker.restart":
                    self.lives.append((window.begin, time, node))

    def touch(self, begin: float, end: float) -> bool:
        """Was something wrong between these times, or shortly before or after?"""
        return any(True for _ in self.between(begin, end))

    def between(self, begin: float, end: float) -> Iterator[Window]:
        """What was wrong then, the latest first."""
        for window in reversed(self.all):
            if window.begin <= end + BEFORE and begin <= window.end + window.after:
                yield window

    def touch_node(self, time: float) -> bool:
        """Was something wrong with a node of a cluster then?"""
        return any(window.node is not None for window in self.between(time, time))

    def is_down(self, time: float) -> bool:
        """Was a broker, or a node, being ended or away then?"""
        return any(each.begin <= time <= each.end for each in self.all if each.kind in (Kind.KILL, Kind.STOP))

    def last_before(self, time: float) -> Window | None:
        """The last one that had begun by then."""
        return next((window for window in reversed(self.all) if window.begin <= time), None)

    def to_blame(self, sent: float, time: float) -> Window | None:
        """For the loss of a message that was sent at one time and seen at another for the last time: a fault that was
        over right before it was sent, else the first one that was there then, or began later.
        """
        over = [window for window in self.all if window.end <= sent < window.end + _RIGHT_AFTER]
        return over[-1] if over else self._first_after(time)

    def _first_after(self, time: float) -> Window | None:
        return next((window for window in self.all if window.end >= time), None)

    @property
    def are_of_nodes(self) -> bool:
        """Did something befall single nodes of a cluster?"""
        return any(window.node is not None for window in self.all)

    def went_down_after(self, time: float, node: int) -> bool:
        """Did that node go down after that time, and come back? On 0 only the whole broker does."""
        return any(begin >= time and its in (None, node) for begin, _, its in self.lives)

    def came_back_after(self, time: float, node: int = 0) -> bool:
        """Was that node started again after that time? It may have been going down already."""
        return any(end >= time and its in (None, node) for _, end, its in self.lives)
