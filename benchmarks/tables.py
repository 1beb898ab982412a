"""Results as Markdown tables, and the statistics in them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table of `benchmarks/results.md`. `notes` are sentences below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", _line(self.header), _line(["---"] * len(self.header))]
        lines += [_line(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def spread(values: Sequence[float]) -> str:
    """Median, and least to greatest where there are several."""
    median = f"{statistics.median(values):,.0f}"
    return median if len(values) < 2 else f"{median} ({min(values):,.0f}–{max(values):,.0f})"


def percent(values: Sequence[float]) -> str:
    """Like `spread`, for shares of 1."""
    median = f"{statistics.median(values):.0%}"
    return median if len(values) < 2 else f"{median} ({min(values):.0%} to {max(values):.0%})"
