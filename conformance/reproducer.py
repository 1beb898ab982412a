"""A program that shows a failure without this suite: plain pika, to paste into a bug report."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.command import Command
from model.verdict import Failure


def reproducer(commands: Sequence[Command], failure: Failure) -> str:
    """The text of a Python program that carries out the commands and prints what the broker sends."""
    return "\n".join(map(str, commands))
