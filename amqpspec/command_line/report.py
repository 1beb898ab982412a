"""`amqpspec report`: stored runs side by side."""

from __future__ import annotations

import argparse

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.command_line.output_files import must_write, require_none_of, require_writable
from amqpspec.command_line.run_directory import make_directory
from amqpspec.command_line.stored_runs import stored_runs
from amqpspec.conformance.version import tool_version
from amqpspec.reports.comparison import Change, compare
from amqpspec.reports.side_by_side import render_side_by_side
from amqpspec.reports.text import plural, visible

#: The page's name where --out is a directory: one that is there, or a name without an ending.
PAGE = "side-by-side.html"


def execute(options: argparse.Namespace, console: Console) -> int:
    is_named = bool(options.out.suffix) or options.out.exists() or options.out.is_symlink()
    is_file = is_named and not options.out.is_dir()
    file = options.out if is_file else options.out / PAGE
    require_none_of(file, options.directories)
    if not is_file:
        make_directory(options.out)
    require_writable(file)
    compared = compare(stored_runs(options.directories))
    place = file.absolute().parent
    must_write(file, render_side_by_side(compared, f"amqpspec {tool_version()}", place))
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
