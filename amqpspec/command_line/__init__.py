"""The command line. It sits on top of everything: nothing but `amqpspec` itself imports it, and it imports all."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from amqpspec.command_line.exit_codes import INTERRUPTED, USAGE
from amqpspec.conformance.traces.extras import MissingExtra, needed_for


def main(arguments: Sequence[str] | None = None) -> int:
    """As `amqpspec.command_line.entry.main`, which is imported now: `multiprocessing` has each worker process import
    the program's main module, and the workers need nothing of the command line.
    """
    try:
        with needed_for("for the command line"):
            from amqpspec.command_line import entry

        return entry.main(arguments)
    except MissingExtra as error:
        print(f"amqpspec: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:  # while this was imported
        print("amqpspec: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        # Of an interrupt in the middle of an `exec`, as when a dataclass is made, Python keeps that nobody caught it,
        # and would end by the signal, without the exit code. The next `exec` forgets it.
        exec("")


__all__ = ["main"]
