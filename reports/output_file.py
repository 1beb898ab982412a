"""A file that somebody asked for is written as a whole, or stays as it was; a link to it stays a link.

What is no regular file, such as a terminal, a pipe or `/dev/null`, is written to and never replaced.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

#: Files that are being written begin with this. Spark, Arrow and the store read no file whose name begins with a dot.
UNFINISHED = ".unfinished-"
#: As many links are followed as Linux follows.
_MOST_LINKS = 40
#: Where Linux has the descriptors of this process; `/dev/stdout` and `/dev/fd` lead there.
_DESCRIPTORS = "/proc/self/fd"
#: Named pipes that were found to be read: a reader takes it for the end when nobody holds its pipe any more.
_held: dict[Path, int] = {}


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """Gives the name of a file to write, which takes the place of what `path` leads to when the block ends well.

    It is on the disk before it gets its name. Nothing is left of it when the block does not end well. What is no
    regular file gets the octets. Raises OSError.
    """
    if not is_regular(path):
        with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
            unfinished = Path(directory) / f"output{path.suffix}"
            yield unfinished
            _copy(unfinished, _opened(path))
        return
    goal = Path(os.path.realpath(path))
    unfinished = _beside(goal)
    try:
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        _put(unfinished, goal)
    finally:
        with suppress(OSError):  # the disk is gone, which has been told
            unfinished.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """The text is the file. Raises OSError."""
    with output_file(path) as unfinished:
        # a name from the command line may have octets that are no text
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")


def append_text(path: Path, text: str) -> None:
    """The text comes after what is in the file. Raises OSError."""
    octets = text.encode("utf-8", "backslashreplace")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666) if is_regular(path) else _opened(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(octets)


def try_to_write(path: Path) -> None:
    """Raises OSError where `output_file` cannot write it. What is there stays as it is."""
    if not is_regular(path):
        descriptor = _opened(path)
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode) and _own_descriptor(path) is None:
            _held[path.absolute()] = descriptor
        else:
            os.close(descriptor)
        return
    goal = Path(os.path.realpath(path))
    was_there = goal.exists()
    goal.open("ab").close()
    if not was_there:
        goal.unlink()


def remove_former(path: Path) -> None:
    """Remove what was written there before; a link stays, and so does what is no regular file. Raises OSError."""
    if is_regular(path):
        Path(os.path.realpath(path)).unlink(missing_ok=True)


def is_regular(path: Path) -> bool:
    """Does the name lead to a regular file, or to a place where one can be made? Raises OSError."""
    if _own_descriptor(path) is not None:
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def _beside(goal: Path) -> Path:
    """A name in the same directory; elsewhere where nothing can be made in that directory."""
    unfinished = goal.with_name(f"{UNFINISHED}{uuid4().hex}{goal.suffix}")
    if os.access(goal.parent, os.W_OK) or not goal.exists():
        return unfinished
    return Path(tempfile.gettempdir()) / unfinished.name


def _put(unfinished: Path, goal: Path) -> None:
    """A file that cannot be replaced, as it is the root of a mount or its directory is not ours, is written over."""
    with suppress(OSError):  # it is new, or somebody else's
        there = goal.stat()
        unfinished.chmod(stat.S_IMODE(there.st_mode))
        os.chown(unfinished, there.st_uid, there.st_gid)
    try:
        unfinished.replace(goal)
    except OSError:
        if not goal.exists():
            raise
        _copy(unfinished, os.open(goal, os.O_WRONLY | os.O_TRUNC))
        return
    directory = os.open(goal.parent, os.O_RDONLY)  # which keeps the name
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _copy(source: Path, descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as target, source.open("rb") as file:
        shutil.copyfileobj(file, target)


def _opened(path: Path) -> int:
    """A descriptor of what is no regular file, to write to. Never waits for somebody who reads. Raises OSError."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):  # who cannot print is told of that elsewhere
                stream.flush()  # what was printed comes first
    if (held := _held.pop(path.absolute(), None)) is not None:
        return held
    if (own := _own_descriptor(path)) is not None:
        if fcntl.fcntl(own, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(path))
        return os.dup(own)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise OSError(errno.EINVAL, "neither a file nor a pipe nor a character device", str(path))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(mode):
            raise OSError(errno.ENXIO, "nobody reads this pipe", str(path)) from None
        raise
    os.set_blocking(descriptor, True)
    return descriptor


def _own_descriptor(path: Path) -> int | None:
    """The number of the descriptor of this process that the name leads to, as `/dev/stdout` does. It is written to as
    it stands: opened anew, a file would be written from its begin.
    """
    descriptors = os.path.realpath(_DESCRIPTORS)
    where = str(path.absolute())
    for _ in range(_MOST_LINKS):
        parent, name = os.path.split(where)
        parent = os.path.realpath(parent)
        if parent == descriptors and name.isdigit():
            return int(name)
        try:
            where = str(Path(parent) / Path(parent, name).readlink())
        except OSError:
            return None  # no link, or nothing
    return None
