"""Libraries that are not installed with the base: what needs one says so in a line, with what installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Importable name -> the extra of this package that installs it.
_EXTRAS = {"pyarrow": "parquet", "pyspark": "spark", "py4j": "spark", "dpkt": "capture"}


class MissingExtra(Exception):
    """Something needs a library that is not installed; one line, which says what installs it."""


@contextmanager
def needed_for(what: str, extra: str | None = None) -> Iterator[None]:
    """Raises `MissingExtra` where an import inside the block lacks a library of an extra.

    `extra`: the one to name, where another than that of the library alone.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRAS:
            raise
        raise MissingExtra(
            f"{library} is missing {what}: pip install 'amqpspec[{extra or _EXTRAS[library]}]'"
        ) from None
