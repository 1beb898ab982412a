"""Paths are those of file systems that are mounted: an address of another kind would silently become a folder here.
A store may be an address as well, of some kinds.
"""

from __future__ import annotations

import re
from pathlib import Path

#: What the address of a store may begin with (`pipeline.store.any_files`).
STORES = ("s3", "s3a", "gs", "abfs", "abfss", "hdfs")
#: `Path` makes one slash of two, so one is enough; a single letter may be a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def is_served(place: Path | str) -> bool:
    """Is it the address of a store that is none of a file system?"""
    return isinstance(place, str) and place.partition("://")[0] in STORES


def not_served(path: Path | str) -> str | None:
    """Why a path cannot be taken, one line; None: it can."""
    found = _SCHEME.match(str(path))
    if found is None:
        return None
    given = str(path) if "://" in str(path) else str(path).replace(":/", "://", 1)
    return f"{given}: {found[1]}:// is not served, but folders and files of a file system that is mounted"
