"""A store: Parquet files in a folder or an object store, with a manifest that says which of them count.

    store.json                                                 what this is, and the version of its schema
    manifest/…                                                 the commits (`manifest`)
    traces/day=DAY/target=TARGET/run=RUN/PART.parquet          rows
    judgements/day=DAY/target=TARGET/run=RUN/PART-N.parquet    what the part was judged to be, if it was

A file counts when a commit names it, and a commit is one file that is there as a whole or not at all. So any number of
processes may add to a store while others read it, and what a process left unfinished is never read.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from amqpspec.pipeline.store.any_files import AddressedFiles, Files, files_of
from amqpspec.pipeline.store.files import SHARED, UNFINISHED, StoreError
from amqpspec.pipeline.store.local_files import LocalFiles
from amqpspec.pipeline.store.manifest import Contents, read_contents, removal_name
from amqpspec.pipeline.store.parts import JUDGEMENTS, MANIFEST, TRACES, Part, part_to_json

__all__ = ["STORE_VERSION", "Contents", "Store", "create_store", "is_store", "open_store"]

#: Of the layout and of both schemas; higher ones are refused, lower ones are read.
STORE_VERSION = 2
#: In stores of this version the file of a part's judgements had the part's name, and counted because it was there.
_FOUND_BY_NAME = 1
_MARK = "store.json"
_FORMAT = "amqpspec store"
#: Traces of tasks of a campaign that are not done.
_INCOMING = "incoming"


class Store:
    """A store that exists. Use `open_store` or `create_store`; it can be pickled, and holds nothing open."""

    def __init__(self, place: Path | str, version: int = STORE_VERSION) -> None:
        self.place, self.version = place, version
        self.files: Files = files_of(place)

    def __reduce__(self) -> Any:
        return Store, (self.place, self.version)

    @property
    def root(self) -> Path:
        """The folder. Raises `StoreError` for a store that is none."""
        if isinstance(self.files, AddressedFiles):
            raise StoreError(f"{self.place}: for this the store has to be a folder, of a file system that is mounted")
        return self.files.root

    @property
    def name(self) -> str:
        """The last part of its place."""
        return str(self.place).rstrip("/").rpartition("/")[2]

    def named(self, path: str) -> str:
        """A file of the store as people read it."""
        return self.files.named(path)

    def __str__(self) -> str:
        return str(self.place)

    # ------------------------------------------------------------------------------------------- the manifest

    def contents(self, also: Iterable[str] = ()) -> Contents:
        """What counts now, in the order of the parts' folders and names. `also`: as `read_contents`. Raises
        `StoreError`.
        """
        return read_contents(self.files, self.version == _FOUND_BY_NAME, also)

    def has_commit(self, name: str) -> bool:
        """Was something added under that name?"""
        return self.files.exists(f"{MANIFEST}/{name}.json")

    def commit(
        self,
        parts: Iterable[Part] = (),
        *,
        judgements: Mapping[str, str] | None = None,
        problems: Sequence[str] = (),
        name: str | None = None,
    ) -> bool:
        """Let parts count whose files are complete; False: there is a commit of that name, and this one is none.

        `judgements`: identifiers of parts, with the names of files in which is what they were judged to be. Raises
        `StoreError`.
        """
        written = _commit(parts, judgements or {}, (), problems)
        return self.files.put_new(f"{MANIFEST}/{name or uuid4().hex}.json", written)

    def remove(
        self,
        choose: Callable[[Contents], Sequence[Part] | None],
        parts: Sequence[Part] = (),
        *,
        judgements: Mapping[str, str] | None = None,
        problems: Sequence[str] = (),
    ) -> Sequence[Part]:
        """Let parts count no more, and in the same moment others in their place; gives those that were removed.

        `choose`: which ones, of what counts; it is asked again where others removed something meanwhile, and says
        None, or nothing, where there is nothing to be done then. Raises `StoreError`.
        """
        seen: list[str] = []
        while True:
            contents = self.contents(seen)
            chosen = choose(contents)
            if not chosen:
                return ()
            path = removal_name(contents.removals + 1)
            written = _commit(parts, judgements or {}, [part.id for part in chosen], problems)
            if self.files.put_new(path, written):
                return chosen
            seen.append(path)

    # ------------------------------------------------------------------------------------- workers of a job

    def require_seen(self) -> None:
        """Raises `StoreError` on a machine that does not see the store: what it wrote there would be lost."""
        if not self.files.exists(_MARK):
            raise StoreError(f"{self}: {socket.gethostname()} sees no store there; {SHARED}")

    def require_arrived(self, parts: Iterable[Part], commits: Iterable[str] = ()) -> None:
        """Raises `StoreError` where what a worker says that it has added is not here."""
        contents = self.contents()
        known = {part.id for part in contents.parts} | {part.id for _, part in contents.replaced}
        lacking = [part.trace for part in parts if part.id not in known]
        lacking += [f"{MANIFEST}/{name}.json" for name in commits if not self.has_commit(name)]
        if lacking:
            more = f" (and {len(lacking) - 1:,} more)" if len(lacking) > 1 else ""
            raise StoreError(f"{self.named(lacking[0])}{more}: a worker says that it has added it; {SHARED}")

    # --------------------------------------------------------------------------------------------- the files

    def foreign(self, contents: Contents | None = None) -> list[str]:
        """Files below `traces` and `judgements` that no commit names; nothing reads them. Raises `StoreError`."""
        known = contents or self.contents()
        parts = [*known.parts, *(part for _, part in known.replaced)]
        named = {path for part in parts for path in (part.trace, part.judgements)}
        named |= {path for _, path in known.superseded}
        files = (each.path for folder in (TRACES, JUDGEMENTS) for each in self.files.listed(folder))
        return sorted(
            path for path in files if path not in named and not path.rpartition("/")[2].startswith(UNFINISHED)
        )

    @cached_property
    def temporary(self) -> Path:
        """A folder for what is being made, which all see who see the store. Raises `StoreError` where it is none."""
        folder = self.root / ".temporary"
        folder.mkdir(exist_ok=True)
        return folder

    @contextmanager
    def incoming(self, *names: str) -> Iterator[Path]:
        """A folder for what becomes a trace of the store. It is in the store where that is a folder, and stays there
        when the process is killed; else on the local disk. Who leaves nothing in it leaves no folder. Raises OSError.
        """
        if isinstance(self.files, AddressedFiles):
            with tempfile.TemporaryDirectory(prefix="amqpspec-incoming-") as directory:
                yield Path(directory)
            return
        folder = self.files.root.joinpath(_INCOMING, *names)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        for each in (folder, *folder.parents[: len(names)]):
            try:
                each.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return  # others write there


def _commit(
    parts: Iterable[Part], judgements: Mapping[str, str], replaces: Iterable[str], problems: Sequence[str]
) -> bytes:
    written = {
        "version": STORE_VERSION,
        #: no two commits are the same octets
        "token": uuid4().hex,
        "time": time.time(),
        "parts": [part_to_json(part) for part in parts],
        "judgements": [{"part": part, "file": file} for part, file in judgements.items()],
        "replaces": list(replaces),
        "problems": list(problems),
    }
    return json.dumps(written, indent=1).encode()


def is_store(place: Path | str) -> bool:
    """Is there a store?"""
    return files_of(place).exists(_MARK)


def open_store(place: Path | str) -> Store:
    """The store in a folder or at an address. Raises `StoreError` if there is none, or one of a later version."""
    files = files_of(place)
    mark = files.named(_MARK)
    try:
        said = json.loads(files.read(_MARK).decode())
        if said["format"] != _FORMAT:
            raise ValueError("another format")
        version = int(said["version"])
    except FileNotFoundError:
        raise StoreError(f"{place}: no store (amqpspec pipeline import makes one)") from None
    except StoreError as error:
        raise StoreError(str(error).replace(f"{mark}: cannot", f"{place}: the store cannot")) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{mark}: does not say what the folder is: {error}") from error
    if version > STORE_VERSION:
        raise StoreError(f"{place}: a store of version {version}; this program knows versions up to {STORE_VERSION}")
    return Store(files.url if isinstance(files, AddressedFiles) else files.root.resolve(), version)


def create_store(place: Path | str) -> Store:
    """The store in a folder or at an address, which is made if it is not there. Raises `StoreError`."""
    files = files_of(place)
    if not files.exists(_MARK):
        is_folder = isinstance(files, LocalFiles) and files.root.is_dir()
        if is_folder and any(not each.name.startswith(".") for each in Path(place).iterdir()):
            raise StoreError(f"{place}: neither a store nor an empty folder")
        text = json.dumps({"format": _FORMAT, "version": STORE_VERSION})
        files.put_new(_MARK, f"{text}\n".encode())
    return open_store(place)
