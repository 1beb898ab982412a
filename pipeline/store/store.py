"""A store: a folder of Parquet files, with a manifest that says which of them count.

    store.json                                             what this folder is, and the version of its schema
    manifest/COMMIT.json                                   parts that were added, and those whose place they took
    traces/day=DAY/target=TARGET/run=RUN/PART.parquet      rows
    judgements/day=DAY/target=TARGET/run=RUN/PART.parquet  what the part was judged to be, if it was

A file counts when a commit names it, and a commit is one file that is written under another name and then renamed. So
any number of processes may add to a store while others read it, and what a process left unfinished is never read.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from amqpspec.conformance.traces.local_path import not_served
from amqpspec.pipeline.store.files import SHARED, UNFINISHED, StoreError, write_whole
from amqpspec.pipeline.store.parts import JUDGEMENTS, MANIFEST, TRACES, Part, part_from_json, part_to_json

#: Of the folder's layout and of both schemas; higher ones are refused, lower ones are read.
STORE_VERSION = 1
_MARK = "store.json"
_FORMAT = "amqpspec store"


@dataclass(frozen=True, slots=True)
class Contents:
    """What counts in a store at one moment. `problems`: what was wrong with that which was added, one line each;
    `broken`: commits that cannot be read, so that what they added is not among the parts, one line each.
    """

    parts: tuple[Part, ...]
    problems: tuple[str, ...]
    broken: tuple[str, ...] = ()
    #: identifier of a part -> the first thing that was wrong when it was added: something may be lacking beside it
    flaws: Mapping[str, str] = field(default_factory=dict)
    #: parts whose place others took, each with the time (of `time.time`) of that
    replaced: tuple[tuple[float, Part], ...] = ()


class Store:
    """A store that exists. Use `open_store` or `create_store`; it can be pickled, and holds nothing open."""

    def __init__(self, root: Path) -> None:
        self.root = root

    # ------------------------------------------------------------------------------------------- the manifest

    def contents(self) -> Contents:
        """What counts now, in the order of the parts' folders and names. Raises `StoreError`."""
        added: dict[str, Part] = {}
        replaced: dict[str, float] = {}
        problems: list[str] = []
        broken: list[str] = []
        flaws: dict[str, str] = {}
        for file in sorted((self.root / MANIFEST).glob("*.json")):
            if file.name.startswith(UNFINISHED):
                continue
            try:
                commit = json.loads(file.read_text(encoding="utf-8"))
                parts = [part_from_json(each) for each in commit["parts"]]
                added.update((part.id, part) for part in parts)
                replaced.update(dict.fromkeys(map(str, commit.get("replaces", ())), float(commit.get("time", 0))))
                told = [str(each) for each in commit.get("problems", ())]
                problems += told
                flaws.update((part.id, told[0]) for part in parts if told)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                # it costs itself: what it may have added is told by `foreign`
                broken.append(f"{file}: not a commit of a store: {error!r}")
        live = [part for part in added.values() if part.id not in replaced]
        old = [(replaced[part.id], part) for part in added.values() if part.id in replaced]
        order = sorted(live, key=lambda part: (part.folder, part.id))
        return Contents(tuple(order), tuple(dict.fromkeys(problems)), tuple(broken), flaws, tuple(old))

    def has_commit(self, name: str) -> bool:
        """Was something added under that name?"""
        return (self.root / MANIFEST / f"{name}.json").is_file()

    def commit(
        self,
        parts: Iterable[Part],
        *,
        replaces: Iterable[str] = (),
        problems: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        """Let parts count whose files are complete, in place of those whose identifiers are given.

        `name`: a second commit of that name takes the place of the first. Raises `StoreError`.
        """
        written = {
            "version": STORE_VERSION,
            "time": time.time(),
            "parts": [part_to_json(part) for part in parts],
            "replaces": list(replaces),
            "problems": list(problems),
        }
        text = json.dumps(written, indent=1)
        file = self.root / MANIFEST / f"{name or uuid4().hex}.json"
        write_whole(file, lambda path: path.write_text(text, encoding="utf-8"))

    # ------------------------------------------------------------------------------------- workers of a job

    def require_seen(self) -> None:
        """Raises `StoreError` on a machine that does not see the store: what it wrote there would be lost."""
        if not is_store(self.root):
            raise StoreError(f"{self.root}: {socket.gethostname()} sees no store there; {SHARED}")

    def require_arrived(self, parts: Iterable[Part], commits: Iterable[str] = ()) -> None:
        """Raises `StoreError` where what a worker says that it has added is not here."""
        contents = self.contents()
        known = {part.id for part in contents.parts} | {part.id for _, part in contents.replaced}
        lacking = [part.trace for part in parts if part.id not in known]
        lacking += [f"{MANIFEST}/{name}.json" for name in commits if not self.has_commit(name)]
        if lacking:
            more = f" (and {len(lacking) - 1:,} more)" if len(lacking) > 1 else ""
            raise StoreError(f"{self.root / lacking[0]}{more}: a worker says that it has added it; {SHARED}")

    # --------------------------------------------------------------------------------------------- the files

    def foreign(self, contents: Contents | None = None) -> list[Path]:
        """Files below `traces` and `judgements` that no commit names; nothing reads them. Raises `StoreError`."""
        known = contents or self.contents()
        parts = [*known.parts, *(part for _, part in known.replaced)]
        named = {self.root / path for part in parts for path in (part.trace, part.judgements)}
        files = (file for folder in (TRACES, JUDGEMENTS) for file in (self.root / folder).rglob("*") if file.is_file())
        return sorted(file for file in files if file not in named and not file.name.startswith(UNFINISHED))

    @cached_property
    def temporary(self) -> Path:
        """A folder for what is being made, on the same file system."""
        folder = self.root / ".temporary"
        folder.mkdir(exist_ok=True)
        return folder


def is_store(path: Path) -> bool:
    """Does the folder hold a store?"""
    return (path / _MARK).is_file()


def open_store(path: Path | str) -> Store:
    """The store in a folder. Raises `StoreError` if there is none, or one of a later version."""
    root = _folder(path)
    try:
        said = json.loads((root / _MARK).read_text(encoding="utf-8"))
        if said["format"] != _FORMAT:
            raise ValueError("another format")
        version = int(said["version"])
    except FileNotFoundError:
        raise StoreError(f"{root}: no store (amqpspec pipeline import makes one)") from None
    except OSError as error:
        raise StoreError(f"{root}: the store cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{root / _MARK}: does not say what the folder is: {error}") from error
    if version > STORE_VERSION:
        raise StoreError(f"{root}: a store of version {version}; this program knows versions up to {STORE_VERSION}")
    return Store(root.resolve())


def create_store(path: Path | str) -> Store:
    """The store in a folder, which is made if it is not there. Raises `StoreError`."""
    root = _folder(path)
    if not is_store(root):
        if root.is_dir() and any(not each.name.startswith(".") for each in root.iterdir()):
            raise StoreError(f"{root}: neither a store nor an empty folder")
        text = json.dumps({"format": _FORMAT, "version": STORE_VERSION})
        write_whole(root / _MARK, lambda file: file.write_text(text + "\n", encoding="utf-8"))
    return open_store(root)


def _folder(path: Path | str) -> Path:
    problem = not_served(path)
    if problem is not None:
        raise StoreError(problem)
    return Path(path)
