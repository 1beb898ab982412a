"""Downloads the sources of a client library with their tests, from PyPI, npm or Debian."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from tests.clients.suites import ClientSuite

_POOL = "http://deb.debian.org/debian/pool/main"
#: Seconds.
_PATIENCE = 60


class NotToBeHad(Exception):
    """The package cannot be downloaded, or its tests cannot be run; one line."""


def downloaded(suite: ClientSuite, directory: Path) -> Path:
    """The folder of the package's sources. Raises `NotToBeHad`."""
    if suite.debian:
        archive = _from_debian(suite, directory)
    else:
        archive = _from_npm(suite, directory) if suite.is_of_node else _from_pypi(suite, directory)
    with tarfile.open(archive) as opened:
        top = opened.getnames()[0].partition("/")[0]
        opened.extractall(directory)
    return directory / top


def node() -> str:
    """Where Node is. Raises `NotToBeHad`."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        raise NotToBeHad("not run, as Node and npm are not installed")
    return found


def _from_debian(suite: ClientSuite, directory: Path) -> Path:
    archive = directory / Path(suite.debian).name
    try:
        with urlopen(f"{_POOL}/{suite.debian}", timeout=_PATIENCE) as response:
            archive.write_bytes(response.read())
    except (OSError, HTTPException) as error:
        raise NotToBeHad(f"cannot be downloaded from {_POOL}/{suite.debian}: {error}") from None
    return archive


def _from_npm(suite: ClientSuite, directory: Path) -> Path:
    node()
    return _archive(["npm", "pack", "--silent", f"{suite.package}@{suite.version}"], directory, "*.tgz")


def _from_pypi(suite: ClientSuite, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", suite.package]
    # as it has its tests only in the archive, nothing is built: no isolated environment is needed
    wanted = ["--no-build-isolation", f"{suite.package}=={suite.version}"]
    return _archive([*command, *wanted], directory, "*.tar.gz")


def _archive(command: list[str], directory: Path, pattern: str) -> Path:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    archives = list(directory.glob(pattern))
    if done.returncode or not archives:
        last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise NotToBeHad(f"cannot be downloaded: {last}")
    return archives[0]
