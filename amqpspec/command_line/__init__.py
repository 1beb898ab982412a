"""The command line. It sits on top of everything: nothing but `amqpspec` itself imports it, and it imports all."""

from amqpspec.command_line.entry import main

__all__ = ["main"]
