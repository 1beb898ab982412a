"""A file goes to where it was asked for: through links, into pipes and devices, and never over them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from amqpspec.reports.output_file import append_text, output_file, remove_former, try_to_write, write_text
from tests.patience import patience

pytestmark = pytest.mark.quick


def read_by_somebody(fifo: Path) -> tuple[threading.Thread, list[str]]:
    """Reads the pipe to its end; the pipe has its reader when this returns."""
    found: list[str] = []
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)

    def read() -> None:
        with os.fdopen(reading, encoding="utf-8") as file:
            found.append(file.read())

    return threading.Thread(target=read, daemon=True), found


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    there.mkdir()
    (tmp_path / "link").symlink_to("elsewhere/report")
    (tmp_path / "link of link").symlink_to("link")
    for path, text in ((tmp_path / "link", "one"), (tmp_path / "link of link", "two")):
        try_to_write(path)
        write_text(path, text)
        assert (there / "report").read_text() == text
    append_text(tmp_path / "link", " three")
    assert (there / "report").read_text() == "two three"
    remove_former(tmp_path / "link of link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "link of link").is_symlink()
    assert not list(there.iterdir())


def test_asking_whether_a_link_to_nothing_can_be_written_leaves_the_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    try_to_write(tmp_path / "link")
    assert [each.name for each in tmp_path.iterdir()] == ["link"]


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("before")
    path.chmod(0o640)
    with pytest.raises(ZeroDivisionError), output_file(path) as unfinished:
        unfinished.write_text("half")
        assert path.read_text() == "before"
        raise ZeroDivisionError
    assert path.read_text() == "before"
    before = path.stat().st_ino
    write_text(path, "after")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o640)
    assert path.stat().st_ino != before
    assert [each.name for each in tmp_path.iterdir()] == ["report"]


def test_a_file_that_cannot_be_replaced_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that is mounted by itself into a container."""
    path = tmp_path / "report"
    path.write_text("before, and longer")

    def busy(*_: object) -> Path:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    write_text(path, "after")
    assert path.read_text() == "after" and len(list(tmp_path.iterdir())) == 1


def test_a_device_gets_the_text_and_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (Path("/dev/null"), tmp_path / "link"):
        try_to_write(path)
        remove_former(path)
        write_text(path, "text")
        append_text(path, "text")
    assert Path("/dev/null").is_char_device() and (tmp_path / "link").is_symlink()
    with pytest.raises(OSError, match="No space left"):
        write_text(Path("/dev/full"), "text")


def test_a_device_node_is_not_replaced(tmp_path: Path) -> None:
    """As root this is what happened to /dev/null itself."""
    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        write_text(node, "text")
    except PermissionError:
        pytest.skip("makes no device, or may not open it")
    assert node.is_char_device()


def test_a_pipe_has_the_text_for_who_reads_it(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    thread, found = read_by_somebody(fifo)
    try_to_write(fifo)  # which must not be the end for the reader
    thread.start()
    remove_former(fifo)
    write_text(fifo, "text" * 50_000)
    thread.join(patience(30))
    assert found == ["text" * 50_000] and fifo.is_fifo()


@pytest.mark.timeout(60)
def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for attempt in (try_to_write, lambda path: write_text(path, "t"), lambda path: append_text(path, "t")):
        with pytest.raises(OSError, match="nobody reads this pipe"):
            attempt(fifo)


def test_a_reader_that_has_left_is_told(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try_to_write(fifo)
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_text(fifo, "text")


def test_a_directory_and_a_circle_of_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    for path in (tmp_path, tmp_path / "one"):
        with pytest.raises(OSError):
            try_to_write(path)
        with pytest.raises(OSError):
            write_text(path, "text")
    assert (tmp_path / "one").is_symlink()


_PRINTS = """
import sys
from pathlib import Path
from amqpspec.reports.output_file import try_to_write, write_text
path = Path(sys.argv[1])
print("before")
try_to_write(path)
write_text(path, "text\\n")
print("after")
"""


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_has_it_between_what_is_printed(name: str, tmp_path: Path) -> None:
    """A file that the shell made of it is neither replaced nor written from its begin."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "program.py").write_text(_PRINTS)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "program.py", name]
    piped = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (piped.stdout, piped.stderr) == ("before\ntext\nafter\n", "")
    with (tmp_path / "log").open("w") as log:
        log.write("of the shell\n")
        log.flush()
        subprocess.run(command, cwd=tmp_path, env=environment, stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "of the shell\nbefore\ntext\nafter\n"
    assert (tmp_path / "link").is_symlink() and Path("/dev/stdout").is_symlink()
