"""The files of a store in HDFS, by the library hdfs-native: it speaks to NameNode and DataNodes itself, so that neither
Java nor Hadoop is needed here.

A file is written under another name and renamed. The NameNode does that as one step, and refuses a name that there is:
`pyarrow.fs` lacks just this, as its rename takes the place of what is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from amqpspec.conformance.traces.extras import needed_for
from amqpspec.pipeline.store.files import UNFINISHED, StoreError
from amqpspec.pipeline.store.interruptible import interruptible
from amqpspec.pipeline.store.local_files import Found
from amqpspec.pipeline.store.scratch import local, scratch

#: Octets that are read or written at a time.
_CHUNK = 8 * 1024 * 1024
#: A NameNode that cannot be reached is tried again for about half a minute (by default for three).
_CONFIGURATION = {"dfs.client.failover.max.attempts": "6"}


class HdfsFiles:
    """What `ObjectFiles` offers, in HDFS. It can be pickled, and holds nothing of who may reach it.

    `url`: `hdfs://HOST:PORT/PATH`, or in place of these the name of a service in the configuration that is in
    `HADOOP_CONF_DIR`, or nothing for its `fs.defaultFS`.
    """

    #: how many files are worth reading at a time
    readers = 16

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._service, _, path = self.url.removeprefix("hdfs://").partition("/")
        self._root = f"/{path}"

    def __reduce__(self) -> Any:
        return HdfsFiles, (self.url,)

    @cached_property
    def _client(self) -> Any:
        with needed_for("for a store in HDFS"):
            from hdfs_native import Client
        return Client(f"hdfs://{self._service}" if self._service else None, _CONFIGURATION)

    def named(self, path: str) -> str:
        """The path as people read it."""
        return f"{self.url}/{path}"

    @interruptible
    def exists(self, path: str) -> bool:
        """Is there such a file? Raises `StoreError`."""
        with self._telling(path, "read"), suppress(FileNotFoundError):
            return not self._client.get_file_info(self._at(path)).isdir
        return False

    @interruptible
    def read(self, path: str) -> bytes:
        """The content of a file. Raises FileNotFoundError, `StoreError`."""
        with self._telling(path, "read"):
            return bytes(self._client.read(self._at(path)).read())

    def listed(self, folder: str) -> Iterator[Found]:
        """All files in a folder and in those below it, unfinished ones too. Raises `StoreError`."""
        yield from self._listed(folder)

    @interruptible
    def _listed(self, folder: str) -> list[Found]:
        with self._telling(folder, "read"), suppress(FileNotFoundError):
            return [
                Found(each.path[len(self._root) + 1 :], each.length, each.modification_time / 1000)
                for each in self._client.list_status(self._at(folder), recursive=True)
                if not each.isdir
            ]
        return []

    @interruptible
    def put(self, path: str, octets: bytes) -> None:
        """Write a file, in the place of one that is there. Raises `StoreError`."""
        with self._telling(path, "written"), self._unfinished(path) as unfinished:
            self._write(unfinished, iter([octets]))
            self._client.rename(unfinished, self._at(path), overwrite=True)

    @interruptible
    def put_new(self, path: str, octets: bytes) -> bool:
        """Write a file unless there is one of that name; of any number of writers, one is told that it did. Raises
        `StoreError`. No two writers may write the same octets.
        """
        with self._telling(path, "written"), self._unfinished(path) as unfinished:
            self._write(unfinished, iter([octets]))
            try:
                self._client.rename(unfinished, self._at(path), overwrite=False)
            except (FileExistsError, FileNotFoundError):
                self._client.delete(unfinished)
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
        with self._telling(path, "read"):
            content = self._client.read(self._at(path))
            with local(file), file.open("wb") as target:
                while octets := content.read(_CHUNK):
                    target.write(octets)

    @contextmanager
    def writing(self, path: str) -> Iterator[Path]:
        """The name of a file to write, which is the file when the block ends well. Raises `StoreError`."""
        with scratch(path) as file:
            with local(file):
                yield file
            self._put(path, file)

    @interruptible
    def _put(self, path: str, file: Path) -> None:
        with self._telling(path, "written"), self._unfinished(path) as unfinished, file.open("rb") as content:
            self._write(unfinished, iter(lambda: content.read(_CHUNK), b""))
            self._client.rename(unfinished, self._at(path), overwrite=True)

    @interruptible
    def remove(self, path: str) -> bool:
        """Remove a file; was there one? Raises `StoreError`."""
        with self._telling(path, "removed"):
            return bool(self._client.delete(self._at(path)))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    @contextmanager
    def _unfinished(self, path: str) -> Iterator[str]:
        """A name beside that of the file; what has it after the block is removed."""
        folder, _, name = self._at(path).rpartition("/")
        unfinished = f"{folder}/{UNFINISHED}{uuid4().hex}{Path(name).suffix}"
        try:
            yield unfinished
        except BaseException:
            with suppress(OSError, RuntimeError):
                self._client.delete(unfinished)
            raise

    def _write(self, at: str, octets: Iterator[bytes]) -> None:
        from hdfs_native import WriteOptions

        writer = self._client.create(at, WriteOptions(create_parent=True))
        for each in octets:
            writer.write(each)
        writer.close()

    @contextmanager
    def _telling(self, path: str, what: str) -> Iterator[None]:
        """What the library raises becomes a `StoreError`, or a FileNotFoundError."""
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(2, "No such file", self.named(path)) from error
        except (OSError, RuntimeError, NotImplementedError) as error:
            raise StoreError(f"{self.named(path)}: cannot be {what}: {_line(error)}") from error


def _line(error: BaseException) -> str:
    """What is wrong, without Java's trace."""
    text = re.split(r"\\n|\n", str(error))[0]
    found = re.fullmatch(r'\w+\((?:"(?:[\w$.]+\.)?(\w+)", )?"(.*?)"?\)?', text)
    return (": ".join(filter(None, found.groups())) if found else text)[:300]
