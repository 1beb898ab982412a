"""A file system of its own that fills up. Only root may make one, so elsewhere the tests with it are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_SIZE = 4 * 1024 * 1024


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mounted at `folder`."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(disk: Path, free: int) -> Iterator[None]:
    """So many octets are free on it in the block."""
    ballast = disk / "ballast"
    of_disk = os.statvfs(disk)
    ballast.write_bytes(b"x" * (of_disk.f_bavail * of_disk.f_frsize - free))
    try:
        yield
    finally:
        ballast.unlink()
