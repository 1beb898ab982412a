"""The manifest of a store: the commits, each a file, and what counts by all of them together.

    manifest/NAME.json              parts that were added, or files of judgements, or both; in any order
    manifest/removal-NUMBER.json    parts that do not count any more, and those that take their place; one after another
    manifest/checkpoint.jsonl       copies of commits, to read one file in the place of many

A commit is never changed, and there is one of each name: it is put where there is none. So additions need no order, and
two that are the same are one. Removals have one: who removes has seen all removals before, or does not get the number.
So a part is removed once, and what two compactions have made of it does not count twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from amqpspec.pipeline.store.any_files import Files
from amqpspec.pipeline.store.files import UNFINISHED, StoreError
from amqpspec.pipeline.store.parts import JUDGEMENTS, MANIFEST, Part, part_from_json

CHECKPOINT = f"{MANIFEST}/checkpoint.jsonl"
_REMOVAL = re.compile(r"removal-(\d+)\.json")
#: What cannot be read of a commit raises one of these.
_UNREADABLE = (StoreError, OSError, ValueError, KeyError, TypeError, AttributeError)


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
    #: parts that do not count any more, each with the time (of `time.time`) from which on
    replaced: tuple[tuple[float, Part], ...] = ()
    #: files of judgements whose place others took, with the time of that
    superseded: tuple[tuple[float, str], ...] = ()
    #: the number of the last removal
    removals: int = 0


def removal_name(number: int) -> str:
    """The file of a removal, from the root of the store."""
    return f"{MANIFEST}/removal-{number:08}.json"


def read_contents(files: Files, legacy: bool, also: Iterable[str] = ()) -> Contents:
    """What counts now, in the order of the parts' folders and names. Raises `StoreError`.

    `legacy`: in the store judgements were found by the names of their files. `also`: commits that are there though the
    list of the folder, which a shared file system may keep for a while, lacks them.
    """
    found = _Found()
    commits = _commits(files, also)
    for path, commit in sorted(commits.items()):
        if (number := _REMOVAL.fullmatch(path.rpartition("/")[2])) is not None:
            found.removals = max(found.removals, int(number[1]))
        try:
            if isinstance(commit, Exception):
                raise commit
            found.take(path, commit)
        except _UNREADABLE as error:
            # it costs itself: what it may have added is told by `foreign`
            found.broken.append(f"{files.named(path)}: not a commit of a store: {error!r}")
    there = {each.path for each in files.listed(JUDGEMENTS)} if legacy else set()
    return found.contents(there)


def write_checkpoint(files: Files, least: int) -> None:
    """Copy all commits into one file where at least so many are not in it. Raises `StoreError`."""
    copied = _checkpoint(files)
    commits = {path: commit for path, commit in _commits(files).items() if not isinstance(commit, Exception)}
    if len(commits.keys() - copied.keys()) >= least:
        lines = (json.dumps({"path": path, "commit": commit}) for path, commit in sorted(commits.items()))
        files.put(CHECKPOINT, ("\n".join(lines) + "\n").encode())


class _Found:
    def __init__(self) -> None:
        self.added: dict[str, Part] = {}
        self.judged: dict[str, list[tuple[float, str, str]]] = {}
        self.replaced: dict[str, float] = {}
        self.problems: list[str] = []
        self.broken: list[str] = []
        self.flaws: dict[str, str] = {}
        self.removals = 0

    def take(self, path: str, commit: Mapping[str, Any]) -> None:
        """Take a commit, all of it or nothing. Raises one of `_UNREADABLE`."""
        time = float(commit.get("time", 0))
        parts = [part_from_json(each) for each in commit.get("parts", ())]
        judged = [(str(each["part"]), str(each["file"])) for each in commit.get("judgements", ())]
        replaces = [str(each) for each in commit.get("replaces", ())]
        told = [str(each) for each in commit.get("problems", ())]
        self.added.update((part.id, part) for part in parts)
        for part, file in judged:
            self.judged.setdefault(part, []).append((time, path, file))
        self.replaced.update(dict.fromkeys(replaces, time))
        self.problems += told
        self.flaws.update((part.id, told[0]) for part in parts if told)

    def contents(self, there: set[str]) -> Contents:
        """`there`: files of judgements that count for their names."""
        live: list[Part] = []
        old: list[tuple[float, Part]] = []
        superseded: list[tuple[float, str]] = []
        for part in self.added.values():
            judged = sorted(self.judged.get(part.id, ()))
            if part.judgements in there:
                judged.insert(0, (0.0, "", part.id))
            part = replace(part, judged=judged[-1][2] if judged else "")
            superseded += [
                (after[0], replace(part, judged=before[2]).judgements)
                for before, after in pairwise(judged)
                if before[2] != part.judged
            ]
            if part.id in self.replaced:
                old.append((self.replaced[part.id], part))
            else:
                live.append(part)
        order = sorted(live, key=lambda part: (part.folder, part.id))
        return Contents(
            tuple(order), tuple(dict.fromkeys(self.problems)), tuple(self.broken), self.flaws, tuple(old),
            tuple(superseded), self.removals,
        )  # fmt: skip


def _commits(files: Files, also: Iterable[str] = ()) -> dict[str, Mapping[str, Any] | Exception]:
    """Each commit by its path, or what is wrong with it."""
    there = {each.path for each in files.listed(MANIFEST)} | set(also)
    paths = [path for path in there if path.endswith(".json") and not path.rpartition("/")[2].startswith(UNFINISHED)]
    copied = _checkpoint(files) if CHECKPOINT in there else {}
    found: dict[str, Mapping[str, Any] | Exception] = {path: copied[path] for path in paths if path in copied}
    missing = [path for path in paths if path not in copied]
    if files.readers == 1 or len(missing) < 2:
        return found | {path: _commit(files, path) for path in missing}
    with ThreadPoolExecutor(files.readers) as readers:
        return found | dict(zip(missing, readers.map(lambda path: _commit(files, path), missing), strict=True))


def _commit(files: Files, path: str) -> Mapping[str, Any] | Exception:
    try:
        commit: Mapping[str, Any] = json.loads(files.read(path))
    except FileNotFoundError as error:
        return error
    except ValueError as error:
        return error
    return commit


def _checkpoint(files: Files) -> dict[str, Mapping[str, Any]]:
    """What it holds; nothing where it cannot be read, as all of it is copies."""
    try:
        lines = [json.loads(line) for line in files.read(CHECKPOINT).splitlines()]
        return {line["path"]: line["commit"] for line in lines}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
