"""The files of a store that is an address: S3 and what speaks as it does, Google's and Azure's object stores.

They are reached by the library obstore, which has what a commit needs and `pyarrow.fs` does not: to put an object
unless there is one of that name (`If-None-Match: *`). Where they are and who may reach them is said by the variables
that these services define (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, …), on each machine. Parts are read and written as
files of the local disk, so no worker needs a connector of Hadoop's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.extras import needed_for
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.interruptible import interruptible
from amqpspec.pipeline.store.local_files import Found
from amqpspec.pipeline.store.scratch import local, scratch

#: Octets that are read at a time.
_CHUNK = 8 * 1024 * 1024
#: A request is tried again for a minute.
_RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}


class ObjectFiles:
    """What `LocalFiles` offers, by an address. It can be pickled, and holds nothing of who may reach it."""

    #: how many files are worth reading at a time
    readers = 16

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __reduce__(self) -> Any:
        return ObjectFiles, (self.url,)

    @cached_property
    def _store(self) -> Any:
        with needed_for(f"for {self.url}"):
            from obstore.store import from_url
        try:
            return from_url(re.sub("^s3a:", "s3:", self.url), retry_config=_RETRIES)
        except Exception as error:
            raise StoreError(f"{self.url}: no address of a store: {_line(error)}") from error

    def named(self, path: str) -> str:
        """The path as people read it."""
        return f"{self.url}/{path}"

    @interruptible
    def exists(self, path: str) -> bool:
        """Is there such a file? Raises `StoreError`."""
        with self._telling(path, "read"):
            try:
                _library().head(self._store, path)
            except FileNotFoundError:
                return False
        return True

    @interruptible
    def read(self, path: str) -> bytes:
        """The content of a file. Raises FileNotFoundError, `StoreError`."""
        with self._telling(path, "read"):
            return bytes(_library().get(self._store, path).bytes())

    def listed(self, folder: str) -> Iterator[Found]:
        """All files in a folder and in those below it. Raises `StoreError`."""
        yield from self._listed(folder)

    @interruptible
    def _listed(self, folder: str) -> list[Found]:
        with self._telling(folder, "read"):
            batches = _library().list(self._store, prefix=f"{folder}/")
            return [
                Found(each["path"], each["size"], each["last_modified"].timestamp())
                for batch in batches
                for each in batch
            ]

    @interruptible
    def put(self, path: str, octets: bytes) -> None:
        """Write a file, in the place of one that is there. Raises `StoreError`."""
        with self._telling(path, "written"):
            _library().put(self._store, path, octets)

    @interruptible
    def put_new(self, path: str, octets: bytes) -> bool:
        """Write a file unless there is one of that name; of any number of writers, one is told that it did. Raises
        `StoreError`. No two writers may write the same octets.
        """
        from obstore.exceptions import AlreadyExistsError

        with self._telling(path, "written"):
            try:
                _library().put(self._store, path, octets, mode="create")
            except AlreadyExistsError:
                # it may be that of a first try, whose answer was lost
                return self.read(path) == octets
        return True

    @contextmanager
    def reading(self, path: str) -> Iterator[Path]:
        """The file, as one of this machine. Raises FileNotFoundError where there is none, `StoreError`."""
        with scratch(path) as file:
            self._get(path, file)
            yield file

    @interruptible
    def _get(self, path: str, file: Path) -> None:
        with self._telling(path, "read"), local(file), file.open("wb") as target:
            for chunk in _library().get(self._store, path).stream(min_chunk_size=_CHUNK):
                target.write(chunk)

    @contextmanager
    def writing(self, path: str) -> Iterator[Path]:
        """The name of a file to write, which is the file when the block ends well. Raises `StoreError`."""
        with scratch(path) as file:
            with local(file):
                yield file
            self._put(path, file)

    @interruptible
    def _put(self, path: str, file: Path) -> None:
        with self._telling(path, "written"):
            _library().put(self._store, path, file)

    @interruptible
    def remove(self, path: str) -> bool:
        """Remove a file; was there one? Raises `StoreError`."""
        if not self.exists(path):
            return False
        with self._telling(path, "removed"):
            _library().delete(self._store, path)
        return True

    @contextmanager
    def _telling(self, path: str, what: str) -> Iterator[None]:
        """What the library raises becomes a `StoreError`, or a FileNotFoundError."""
        library = _library()
        try:
            yield
        except library.exceptions.NotFoundError as error:
            raise FileNotFoundError(2, "No such object", self.named(path)) from error
        except library.exceptions.BaseError as error:
            raise StoreError(f"{self.named(path)}: cannot be {what}: {_line(error)}") from error


def _library() -> Any:
    with needed_for("for a store that is an address"):
        import obstore
        import obstore.exceptions
    return obstore


def _line(error: BaseException) -> str:
    """What is wrong, without the library's structure of the error and without what may be in an address."""
    text = str(error).partition("\n\nDebug source")[0]
    return re.sub(r"\?[^ )]*", "", " ".join(text.split()))[:300]
