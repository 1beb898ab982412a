"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

#: Files that are being written begin with this. Spark, Arrow and the store read no file whose name begins with a dot.
UNFINISHED = ".unfinished-"

#: What is wrong where a worker and the driver do not see the same.
SHARED = "all workers must see the store's folder under the same path"


class StoreError(Exception):
    """A store cannot be read or written; one line."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives the name of a file to write, which takes the place of `path` when the block ends well.

    It is on the disk before it gets its name. Nothing is left of it when the block does not end well. Raises
    `StoreError` where the operating system refuses something.
    """
    unfinished = path.with_name(f"{UNFINISHED}{uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
        _to_disk(path.parent)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        _remove(unfinished)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`whole_file` for a function that writes a file of a given name."""
    with whole_file(path) as unfinished:
        write(unfinished)


def _to_disk(directory: Path) -> None:
    """The name of a file is kept by its directory."""
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _remove(path: Path) -> None:
    with suppress(OSError):  # the disk is gone, which has been told
        path.unlink(missing_ok=True)
