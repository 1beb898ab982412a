"""`amqpspec requirements`: the registry."""

from __future__ import annotations

import argparse

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS
from amqpspec.command_line.requirement_table import print_requirements


def execute(options: argparse.Namespace, console: Console) -> int:
    print_requirements(console, options.only, options.show, options.json, options.search)
    return CONFORMS
