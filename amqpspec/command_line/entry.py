"""The entry point: parse, dispatch, and turn every expected error into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from rich.console import Console

from amqpspec.command_line.exit_codes import INCONCLUSIVE, INTERRUPTED, TARGET_LOST, TERMINATED, TRACE_UNREADABLE, USAGE
from amqpspec.command_line.logins import complain, remember_logins
from amqpspec.command_line.options import build_parser
from amqpspec.command_line.standard_output import be_silent
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.interruption import Terminated, ended_by_signals
from amqpspec.conformance.language.command_file import CommandFileError
from amqpspec.conformance.session.session import UnsendableCommand
from amqpspec.conformance.traces.extras import MissingExtra, needed_for
from amqpspec.conformance.traces.trace import TraceError
from amqpspec.conformance.verdicts.deviations import DeviationFileError
from amqpspec.model.promises.dialects import UnknownDialect
from amqpspec.model.promises.registry import RegistryError, UnknownRequirement
from amqpspec.reports.stored_run import StoredRunError
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import line_of

#: Identifiers of failures stay on one line in the log of a CI job, where they are looked for.
WIDTH_OF_FILES = 140


class _Console(Console):
    """Who reads the output may have left, or may have no room for it: then nobody is told, and all else goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        be_silent()

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            self.on_broken_pipe()
            _fail(f"the output is cut short: {error.strerror or error}", 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `amqpspec ARGUMENTS`; gives the exit code. Prints no traceback for anything a user or a broker can do."""
    _prepare_output()
    try:
        with ended_by_signals():
            try:
                remember_logins(sys.argv[1:] if arguments is None else arguments)
                options = build_parser().parse_args(arguments)
                return _dispatch(options.command, options, _Console(highlight=False, width=_width()))
            finally:
                sys.stdout.flush()  # while it can still be told that this is not possible
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
        be_silent()
        return 0
    except MemoryError:
        return _fail("there is not enough memory", USAGE)
    except UnicodeEncodeError:
        what = "a name has octets that are no text in this locale, and this command needs them as text"
        return _fail(f"{what}: set one with UTF-8, such as LC_ALL=C.UTF-8", USAGE)
    except OSError as error:
        if error.filename is None:
            be_silent()  # it may be the output that cannot be written
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", USAGE)
    except (UsageError, UnsendableCommand, MissingExtra, StoredRunError) as error:
        return _fail(str(error), USAGE)
    except Exception as error:  # noqa: BLE001 - no broker is to blame for it, so it is not told as a failure
        return _fail(f"{line_of(error)}; please send this line and the command to the project", INCONCLUSIVE)


def _width() -> int | None:
    """Columns of what is printed into a file or pipe, where nobody says (COLUMNS); None: those of the terminal."""
    return None if sys.stdout is None or sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_OF_FILES


def _prepare_output() -> None:
    """What the terminal's encoding does not have is shown as a question mark. Without an output nobody is told."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        # the locale C has "surrogateescape", which fails for any other character
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def _dispatch(command: str, options: object, console: Console) -> int:
    # imported when needed: a help text should not load Hypothesis or Spark
    from importlib import import_module

    with needed_for(f"for amqpspec {command}"):
        module = import_module(f"amqpspec.command_line.{command}")
        code: int = module.execute(options, console)
    return code


def _fail(message: str, code: int) -> int:
    complain(message)
    return code
