"""The files that a run writes: whether it can is asked before it begins; what it cannot write costs no verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from amqpspec.command_line.logins import complain
from amqpspec.command_line.usage import UsageError
from amqpspec.reports.output_file import append_text, is_regular, try_to_write, write_text
from amqpspec.reports.stored_run import REPORT

#: What is read of a directory of a run.
_READ = (REPORT, "trace.jsonl", "trace.parquet")


def require_writable(path: Path) -> None:
    """Raises `UsageError` where no file of that name can be written, and nothing else that is there."""
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.absolute().parent}")
    try:
        try_to_write(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def require_place_of_trace(path: Path) -> None:
    """Raises `UsageError` where no trace can be written: it is read again, so that it must be a file."""
    with suppress(OSError):
        if not is_regular(path) and not path.is_dir():
            raise UsageError(f"{path}: cannot be written: it is no regular file, and a trace is read again")
    require_writable(path)


def require_apart(paths: Iterable[Path], may_be_alike: Path | None = None) -> None:
    """Raises `UsageError` where two of them are one file; one may be named twice, as it is read and then written."""
    seen: dict[Path, Path] = {}
    for path in paths:
        if path.exists() and not path.is_file():
            continue  # such as /dev/null, which bears it
        other = seen.setdefault(path.resolve(), path)
        if other is not path and other is not may_be_alike:
            raise UsageError(f"{path}: this file would be written twice, or over what is read; each needs its own name")


def require_none_of(path: Path, read: Iterable[Path]) -> None:
    """Raises `UsageError` where writing the file would overwrite one of those that are read, or one of such a run."""
    for each in read:
        for file in (each, *(each / name for name in _READ)):
            if file.is_file() and path.exists() and path.samefile(file):
                raise UsageError(f"{path}: is read, so it is not written: give another file")


def write(path: Path, text: str) -> None:
    """Write the file; where that is not possible, say so in a line."""
    try:
        path.parent.mkdir(exist_ok=True)
        write_text(path, text)
    except OSError as error:
        complain(f"{path} was left out: {error.strerror}")


def must_write(path: Path, text: str) -> None:
    """Write the file that the command is for. Raises `UsageError`."""
    try:
        write_text(path, text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def job_summary() -> Path | None:
    """Where GitHub wants to have what a job says; None: this is no such job."""
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(file) if file else None


def add_to_job_summary(markdown: str) -> None:
    """Write after what other steps of the job on GitHub have written. Where that is not possible, say so in a line."""
    file = job_summary()
    if file is None:
        return
    try:
        append_text(file, markdown)
    except OSError as error:
        complain(f"the job summary was left out: {file}: {error.strerror}")
