"""Files of the local disk in which parts are while they are read or written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from amqpspec.pipeline.store.files import StoreError


@contextmanager
def scratch(path: str) -> Iterator[Path]:
    """A name on the local disk; what has it is removed."""
    file = Path(tempfile.gettempdir()) / f"amqpspec-{uuid4().hex}-{Path(path).name}"
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


@contextmanager
def local(file: Path) -> Iterator[None]:
    """What the operating system refuses in the block becomes a `StoreError`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error.strerror or error}") from error
