"""How often cells were visited, and by which sequences first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from amqpspec.conformance.coverage.cells import Cell, all_cells
from amqpspec.model.promises.choices import Dialect


@dataclass(slots=True)
class Visits:
    number: Counter[Cell] = field(default_factory=Counter)
    #: the sequence that visited it first
    first: dict[Cell, str] = field(default_factory=dict)
    #: by which the sequences were judged
    dialects: set[Dialect] = field(default_factory=set)
    sequences: int = 0
    commands: int = 0
    #: recordings of applications: what their queues hold is not known
    left_out: int = 0

    def note(self, cells: Iterable[Cell], sequence: str) -> None:
        """What one command has visited; nothing: no row has it."""
        visited = tuple(cells)
        self.commands += bool(visited)
        for cell in visited:
            self.number[cell] += 1
            self.first.setdefault(cell, sequence)

    def all(self) -> Iterator[Cell]:
        """What can be visited, in the order of the table."""
        return all_cells(self.dialects)
