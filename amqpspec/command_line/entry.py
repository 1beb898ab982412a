"""The entry point: parse, dispatch, and turn every expected error into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rich.console import Console

from amqpspec.command_line.exit_codes import INTERRUPTED, TARGET_LOST, TERMINATED, TRACE_UNREADABLE, USAGE
from amqpspec.command_line.options import build_parser
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.interruption import Terminated, ended_by_signals
from amqpspec.conformance.language.command_file import CommandFileError
from amqpspec.conformance.session.session import UnsendableCommand
from amqpspec.conformance.traces.extras import MissingExtra
from amqpspec.conformance.traces.trace import TraceError
from amqpspec.conformance.verdicts.deviations import DeviationFileError
from amqpspec.model.promises.dialects import UnknownDialect
from amqpspec.model.promises.registry import RegistryError, UnknownRequirement
from amqpspec.reports.stored_run import StoredRunError
from amqpspec.targets.errors import TargetError


class _Console(Console):
    """Who reads the output may have left: then nobody is told, and all else goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `amqpspec ARGUMENTS`; gives the exit code. Prints no traceback for anything a user or a broker can do."""
    options = build_parser().parse_args(arguments)
    console = _Console(highlight=False)
    try:
        with ended_by_signals():
            return _dispatch(options.command, options, console)
    except Terminated:
        return _fail("terminated", TERMINATED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except TargetError as error:
        return _fail(str(error), TARGET_LOST)
    except TraceError as error:
        return _fail(str(error), TRACE_UNREADABLE)
    except (CommandFileError, DeviationFileError, UnknownDialect, UnknownRequirement, RegistryError) as error:
        return _fail(str(error), USAGE)
    except BrokenPipeError:
        # whoever read our output has left; do not complain at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", USAGE)
    except (UsageError, UnsendableCommand, MissingExtra, StoredRunError) as error:
        return _fail(str(error), USAGE)


def _dispatch(command: str, options: object, console: Console) -> int:
    # imported when needed: a help text should not load Hypothesis or Spark
    from importlib import import_module

    module = import_module(f"amqpspec.command_line.{command}")
    code: int = module.execute(options, console)
    return code


def _fail(message: str, code: int) -> int:
    print("amqpspec: " + " ".join(message.split()), file=sys.stderr)
    return code
