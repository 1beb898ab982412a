"""`amqpspec faults`: the variants of the embedded broker by which the suite itself is measured: the faulty ones, or
those that are right by the text of 0-9-1 and other than RabbitMQ.
"""

from __future__ import annotations

import argparse
import json

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.reports.readable_table import ReadableTable, name_column, text_column
from amqpspec.targets.faults.all_faults import FAULTS
from amqpspec.targets.variants import VARIANTS


def execute(options: argparse.Namespace, console: Console) -> int:
    if options.right:
        return _list_right_ones(options, console)
    if options.json:
        listed = [{"name": f.name, "requirement": f.requirement, "defect": f.defect} for f in FAULTS.values()]
        console.file.write(json.dumps(listed, indent=2) + "\n")
        return CONFORMS
    if not console.is_terminal:
        # one line each, whatever its length, for grep and its like
        width = max(map(len, FAULTS))
        console.file.writelines(f"{f.name:<{width}} {f.requirement:<12} {f.defect}\n" for f in FAULTS.values())
        return CONFORMS
    table = ReadableTable(name_column("name"), name_column("requirement"), text_column("defect"))
    for fault in FAULTS.values():
        table.add_row(fault.name, fault.requirement, fault.defect)
    console.print(table)
    return CONFORMS


def _list_right_ones(options: argparse.Namespace, console: Console) -> int:
    if options.json:
        listed = [
            {"name": each.name, "sentence": each.sentence, "does": each.does, "choices": dict(each.choices)}
            for each in VARIANTS.values()
        ]
        console.file.write(json.dumps(listed, indent=2, ensure_ascii=False) + "\n")
        return CONFORMS
    width = max(map(len, VARIANTS))
    console.file.writelines(f"{each.name:<{width}} {each.does}\n" for each in VARIANTS.values())
    return CONFORMS
