"""Situations covered, for people and as JSON (`conformance.coverage`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from amqpspec.conformance.coverage.cells import Cell
from amqpspec.conformance.coverage.visits import Visits
from amqpspec.reports.readable_table import ReadableTable, number_column, text_column
from amqpspec.reports.text import plural, visible


def print_coverage(console: Console, visits: Visits) -> None:
    cells = list(visits.all())
    table = ReadableTable(text_column("command"), number_column("visited"), text_column("never"))
    for row, of_row in groupby(cells, lambda cell: cell.row):
        columns = list(of_row)
        never = [cell for cell in columns if cell not in visits.number]
        table.add_row(Text(row), Text(f"{len(columns) - len(never)} of {len(columns)}"), Text(_columns(never)))
    console.print(table)
    if visits.left_out:
        left_out = plural(visits.left_out, "recording")
        console.print(f"{left_out} of applications left out: nobody knows what their queues hold")
    visited = sum(cell in visits.number for cell in cells)
    console.print(
        f"{visited:,} of {len(cells):,} situations were met, by {plural(visits.commands, 'command')}"
        f" in {plural(visits.sequences, 'sequence')}"
    )


def _columns(cells: Iterable[Cell]) -> str:
    return ", ".join(cell.column for cell in cells)


def coverage_as_json(visits: Visits) -> str:
    cells = list(visits.all())
    whole: dict[str, Any] = {
        "sequences": visits.sequences,
        "commands": visits.commands,
        "left_out": visits.left_out,
        "visited": sum(cell in visits.number for cell in cells),
        "cells": [
            {
                "command": cell.row,
                "group": cell.group,
                "situation": cell.column,
                "visits": visits.number[cell],
                "first": visible(visits.first[cell]) if cell in visits.first else None,
            }
            for cell in cells
        ],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
