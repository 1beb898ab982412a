"""`amqpspec faults`: the faulty variants of the embedded broker, by which the suite itself is measured."""

from __future__ import annotations

import argparse
import json

from rich.console import Console
from rich.table import Table

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.targets.faults.all_faults import FAULTS


def execute(options: argparse.Namespace, console: Console) -> int:
    if options.json:
        listed = [{"name": f.name, "requirement": f.requirement, "defect": f.defect} for f in FAULTS.values()]
        console.file.write(json.dumps(listed, indent=2) + "\n")
        return CONFORMS
    if not console.is_terminal:
        # one line each, whatever its length, for grep and its like
        width = max(map(len, FAULTS))
        console.file.writelines(f"{f.name:<{width}} {f.requirement:<12} {f.defect}\n" for f in FAULTS.values())
        return CONFORMS
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "requirement", "defect"):
        table.add_column(column)
    for fault in FAULTS.values():
        table.add_row(fault.name, fault.requirement, fault.defect)
    console.print(table)
    return CONFORMS
