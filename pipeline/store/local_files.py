"""The files of a store in a folder of a file system that is mounted, also one that several machines share."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from amqpspec.pipeline.store.files import UNFINISHED, StoreError, whole_file, write_whole

#: What file systems without hard links say.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Found:
    """A file. `path`: from the root of the store; `changed`: seconds since 1970."""

    path: str
    octets: int
    changed: float


class LocalFiles:
    """What `ObjectFiles` offers, in a folder. Paths are from the root on, with slashes."""

    #: how many files are worth reading at a time
    readers = 1

    def __init__(self, root: Path) -> None:
        self.root = root

    def named(self, path: str) -> str:
        """The path as people read it."""
        return str(self.root / path)

    def exists(self, path: str) -> bool:
        """Is there such a file? Raises `StoreError`."""
        return (self.root / path).is_file()

    def read(self, path: str) -> bytes:
        """The content of a file. Raises FileNotFoundError, `StoreError`."""
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"{self.named(path)}: cannot be read: {error.strerror}") from error

    def listed(self, folder: str) -> Iterator[Found]:
        """All files in a folder and in those below it, unfinished ones too. Raises `StoreError`."""
        for directory, _, names in os.walk(self.root / folder):
            for name in names:
                file = Path(directory, name)
                with suppress(FileNotFoundError):  # removed meanwhile
                    stat = file.stat()
                    yield Found(file.relative_to(self.root).as_posix(), stat.st_size, stat.st_mtime)

    def put(self, path: str, octets: bytes) -> None:
        """Write a file, in the place of one that is there. Raises `StoreError`."""
        write_whole(self.root / path, lambda unfinished: unfinished.write_bytes(octets))

    def put_new(self, path: str, octets: bytes) -> bool:
        """Write a file unless there is one of that name; of any number of writers, one is told that it did. Raises
        `StoreError`.
        """
        file = self.root / path
        unfinished = file.with_name(f"{UNFINISHED}{uuid4().hex}{file.suffix}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                _write(unfinished, octets)
                return _link(unfinished, file, octets)
            finally:
                with suppress(OSError):
                    unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{file}: cannot be written: {error.strerror or error}") from error

    @contextmanager
    def reading(self, path: str) -> Iterator[Path]:
        """The file, as one of this machine. Raises FileNotFoundError where there is none, `StoreError`."""
        yield self.root / path

    @contextmanager
    def writing(self, path: str) -> Iterator[Path]:
        """The name of a file to write, which is the file when the block ends well. Raises `StoreError`."""
        with whole_file(self.root / path) as unfinished:
            yield unfinished

    def remove(self, path: str) -> bool:
        """Remove a file; was there one? Raises `StoreError`."""
        try:
            (self.root / path).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"{self.named(path)}: cannot be removed: {error.strerror}") from error
        return True


def _write(file: Path, octets: bytes) -> None:
    with file.open("xb") as opened:
        opened.write(octets)
        opened.flush()
        os.fsync(opened.fileno())


def _link(unfinished: Path, file: Path, octets: bytes) -> bool:
    """Give a whole file its name, where that is free. A link is made for one of many, also over NFS."""
    try:
        os.link(unfinished, file)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            # no links here: the name is this writer's, and what is killed in the middle is told as a broken commit
            _write(file, octets)
        except FileExistsError:
            return False
    directory = os.open(file.parent, os.O_RDONLY)  # which keeps the name
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return True
