"""The command line. It sits on top of everything: only here are reports and pipeline imported from `conformance`."""

from amqpspec.conformance.command_line.entry import main

__all__ = ["main"]
