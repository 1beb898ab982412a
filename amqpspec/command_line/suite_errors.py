"""Saying that the suite erred: one line on standard error, and the commands, as something to send to the project."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.reports.text import plural, visible
from amqpspec.targets.suite_error import WORDS, line_of

#: Commands that are shown of a sequence; a file has all.
_MOST_SHOWN = 40


def tell_errors(
    errors: Sequence[SuiteError], files: Sequence[Path], console: Console | None = None, sequences: int = 0
) -> None:
    """`files`: those that have the trace or the commands. `console`: where the commands are shown; None: nowhere.
    `sequences`: in how many there was an error, where `errors` are only some.
    """
    if not errors:
        return
    distinct = {each.what: each for each in reversed(errors)}
    first = errors[0]
    sequences = sequences or len({each.sequence for each in errors if each.sequence})
    where = f" in {plural(sequences, 'sequence')}" if sequences else ""
    more = f" (and {len(distinct) - 1} more)" if len(distinct) > 1 else ""
    send = f"; please send {' and '.join(map(str, files))} to the project" if files else ""
    line = f"the suite erred{where}: {first.what.removeprefix(WORDS)}{more}{send}"
    print(f"amqpspec: {' '.join(visible(line).split())}", file=sys.stderr)
    if console is not None and first.commands:
        console.print(Text(visible(f"commands of {first.sequence}, in which the suite erred:")), soft_wrap=True)
        for command in first.commands[:_MOST_SHOWN]:
            console.print(Text(visible(f"    {command}")), soft_wrap=True)


def write_errors(errors: Sequence[SuiteError], directory: Path, write: Callable[[Path, str], None]) -> list[Path]:
    """Keep the commands of each distinct error; gives their files. Those of a run before are gone then."""
    for former in (directory / "errors").glob("[0-9][0-9].amqp"):
        former.unlink(missing_ok=True)
    files = []
    distinct = {each.what: each for each in reversed(errors) if each.commands}
    for number, each in enumerate(reversed(distinct.values()), 1):
        files.append(directory / "errors" / f"{number:02}.amqp")
        write(files[-1], f"@title {' '.join(each.what.split())}\n" + "\n".join(each.commands) + "\n")
    return files


def kept(trace: Path) -> Path:
    """A copy of a trace whose directory will be deleted."""
    return Path(shutil.copy(trace, tempfile.mkdtemp(prefix="amqpspec-error-")))


def as_far_as_possible(what: object, make: Callable[[], None]) -> None:
    """Make a report; an error of this suite costs that one, and is said in a line."""
    try:
        make()
    except Exception as error:  # noqa: BLE001 - whatever it is, the others are written, and the verdict stays
        print(f"amqpspec: {what} was left out: {line_of(error)}", file=sys.stderr)
