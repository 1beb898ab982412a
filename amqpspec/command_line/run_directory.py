"""The directory that a run writes into: it is made, and no other run writes there at the same time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.traces.local_path import is_served
from amqpspec.targets.address import login_in

#: Is there, and locked, while a run writes into the directory.
_LOCK = ".running"


def make_directory(directory: Path) -> None:
    """The directory, with those above it. Raises `UsageError`."""
    require_no_address(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {error.strerror}") from None


@contextmanager
def not_left_empty(directory: Path) -> Iterator[None]:
    """What is made in this block of the directory and those above it goes again if nothing is in it: nothing came of
    the run.
    """
    missing = [each for each in (directory, *directory.absolute().parents) if not each.exists()]
    try:
        yield
    finally:
        with suppress(OSError):  # it is not empty, or was never made
            for each in missing:
                each.rmdir()


def require_no_address(directory: Path | str) -> None:
    """Raises `UsageError`: the name of a directory shows a password to everybody. Addresses of stores have none."""
    if is_served(directory) and ":" not in login_in(str(directory)):
        return
    if login_in(str(directory)):
        raise UsageError(f"{directory}: is an address, and a directory is wanted")


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """No other run writes into the directory in this block. Raises `UsageError` where one does already."""
    path = directory / _LOCK
    try:
        lock = path.open("ab")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{directory}: another run writes there; give this one a directory by --out") from None
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
