"""Files that are there as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from amqpspec.reports.output_file import UNFINISHED, output_file

__all__ = ["UNFINISHED", "StoreError", "whole_file", "write_whole"]

#: What is wrong where a worker and the driver do not see the same.
SHARED = "all workers must see the store's folder under the same path"


class StoreError(Exception):
    """A store cannot be read or written; one line."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """`output_file` that makes the directory. Raises `StoreError` where the operating system refuses something."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with output_file(path) as unfinished:
            yield unfinished
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`whole_file` for a function that writes a file of a given name."""
    with whole_file(path) as unfinished:
        write(unfinished)
