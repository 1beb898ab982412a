"""Parts: the files of a store, and where they stand.

A part is a trace of its own: whole sequences, one after the other, in the schema of docs/trace-format.md. What it was
judged to be is in a file of its own in another folder: the one that the last commit names that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import quote

#: Folders of a store.
TRACES, JUDGEMENTS, MANIFEST = "traces", "judgements", "manifest"
#: Characters of a target or run in the name of a folder; what is longer is cut, with a digest after it.
_LONGEST = 150


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A file of whole sequences, all of one day, target and run. `id` is unique in its store."""

    id: str
    #: such as "2026-11-23", in UTC
    day: str
    target: str
    run: str
    rows: int
    frames: int
    sequences: int
    octets: int
    #: the name of the file of what it was judged to be; "": it was not
    judged: str = field(default="", compare=False)

    @property
    def folder(self) -> str:
        """The folder below `traces` and `judgements`, as Spark and Hive name partitions."""
        return f"day={self.day}/target={folder_name(self.target)}/run={folder_name(self.run)}"

    @property
    def trace(self) -> str:
        """Its rows, from the root of the store."""
        return f"{TRACES}/{self.folder}/{self.id}.parquet"

    @property
    def judgements(self) -> str:
        """What it was judged to be, from the root of the store; where it was not, no file has that name."""
        return f"{JUDGEMENTS}/{self.folder}/{self.judged or self.id}.parquet"


def folder_name(value: str) -> str:
    """`value` as a part of a path, from which Spark reads it back."""
    name = quote(value or "unknown", safe=" -_.,+@()")
    if len(name) <= _LONGEST:
        return name
    return quote(value[: _LONGEST // 3], safe=" -_.,+@()")[:_LONGEST] + "-" + sha256(value.encode()).hexdigest()[:12]


def part_to_json(part: Part) -> dict[str, Any]:
    """A part as the manifest has it; what it was judged to be is told apart from it."""
    written = asdict(part)
    del written["judged"]
    return written


def part_from_json(written: Mapping[str, Any]) -> Part:
    """The inverse of `part_to_json`; keys that are not known are left out. Raises KeyError, TypeError, ValueError."""
    id, day, target, run = (str(written[key]) for key in ("id", "day", "target", "run"))
    rows, frames, sequences, octets = (int(written[key]) for key in ("rows", "frames", "sequences", "octets"))
    return Part(id, day, target, run, rows, frames, sequences, octets)
