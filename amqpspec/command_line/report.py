"""`amqpspec report`: stored runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.command_line.stored_runs import stored_runs
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.version import tool_version
from amqpspec.reports.comparison import Change, compare
from amqpspec.reports.side_by_side import render_side_by_side
from amqpspec.reports.text import plural, visible

#: The page's name where --out is a directory.
PAGE = "side-by-side.html"


def execute(options: argparse.Namespace, console: Console) -> int:
    file = _file(options.out)
    compared = compare(stored_runs(options.directories))
    place = file.absolute().parent
    file.write_text(render_side_by_side(compared, f"amqpspec {tool_version()}", place), encoding="utf-8")
    if options.quiet:
        return CONFORMS
    for number, run in enumerate(compared.runs, 1):
        line = f"{number} {run.name} ({run.dialect}): {plural(len(run.failures), 'failure')}"
        console.print(visible(line), markup=False)
    for sums in compared.in_turn:
        said = ", ".join(f"{sums.counts[change]} {change}" for change in Change)
        names = f"{compared.runs[sums.one].name} to {compared.runs[sums.other].name}"
        console.print(visible(f"{names}: {said}"), markup=False)
    console.print(f"report: {file}", markup=False, soft_wrap=True)
    return CONFORMS


def _file(out: Path) -> Path:
    file = out / PAGE if out.is_dir() else out
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{out}: there is no directory {file.absolute().parent}")
    return file
