"""Adding a trace to a store: its sequences are put together, and written to parts of a bounded size."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, count, takewhile
from pathlib import Path
from uuid import uuid4

from amqpspec.conformance.recording.capture import CaptureOptions, began_at, capture_rows, is_capture
from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace, trace_file
from amqpspec.conformance.traces.trace_parquet import write_parquet
from amqpspec.conformance.traces.trace_row import row_line
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.labels import label_in_store
from amqpspec.pipeline.store.parts import MANIFEST, Part
from amqpspec.pipeline.store.store import Store

#: A part is written when it has that many rows: some seconds of judging.
PART_ROWS = 50_000
#: A sequence that has more is kept in a file while it is open, and becomes a part of its own.
MOST_IN_MEMORY = 50_000
#: Digits of the digest of a trace.
CONTENT = 12
_PIECE = re.compile(r"trace-(\d{6})\.jsonl")
_IMPORT = re.compile(rf"import-[0-9a-f]{{20}}-([0-9a-f]{{{CONTENT}}})\.json")


@dataclass(slots=True)
class Added:
    """What became of a trace. `problems`: why not all of it could be taken, one line each."""

    parts: list[Part] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    #: what is worth knowing, and not wrong, one line each
    notes: list[str] = field(default_factory=list)
    #: it is in the store already; nothing was added
    known: bool = False
    #: the name of the commit by which it is in the store; "": nothing of it is
    commit: str = ""


class Adder:
    """Writes whole sequences of one day and run as parts; `finish` lets them count. Raises `StoreError`.

    Memory holds PART_ROWS rows for each target at the most, and the sequences that are open at a time.
    """

    def __init__(self, store: Store, day: str, run: str, target: str | None = None) -> None:
        self.store, self.day, self.run, self.target = store, day, run, target
        self.parts: list[Part] = []
        self._waiting: dict[str, list[TraceRow]] = {}
        self._sequences: dict[str, int] = {}

    def add(self, rows: list[TraceRow]) -> None:
        """Take a whole sequence, its start row first."""
        target = self._target(rows[0])
        waiting = self._waiting.setdefault(target, [])
        waiting += rows
        self._sequences[target] = self._sequences.get(target, 0) + 1
        if len(waiting) >= PART_ROWS:
            self._write_waiting(target)

    def add_long(self, start: TraceRow, rows: Iterable[TraceRow]) -> None:
        """Take a whole sequence that does not fit in memory; `start` is the first of its rows."""
        self._write(self._target(start), rows, 1)

    @property
    def has_any(self) -> bool:
        """Was anything added?"""
        return bool(self.parts or self._waiting)

    def finish(self, problems: Iterable[str] = (), name: str | None = None) -> list[Part]:
        """Let everything count that was added; gives nothing where another has added it under that name meanwhile."""
        for target in list(self._waiting):
            self._write_waiting(target)
        if not self.store.commit(self.parts, problems=list(problems), name=name):
            for part in self.parts:
                self.store.files.remove(part.trace)
            self.parts = []
        return self.parts

    def _target(self, start: TraceRow) -> str:
        return label_in_store(self.target or start["target"] or "unknown")

    def _write_waiting(self, target: str) -> None:
        rows, sequences = self._waiting.pop(target, []), self._sequences.pop(target, 0)
        if rows:
            self._write(target, rows, sequences)

    def _write(self, target: str, rows: Iterable[TraceRow], sequences: int) -> None:
        frames = 0

        def counted() -> Iterator[TraceRow]:
            nonlocal frames
            for row in rows:
                frames += row["kind"] == "frame"
                yield row

        part = Part(uuid4().hex, self.day, target, self.run, 0, 0, sequences, 0)
        try:
            with self.store.files.writing(part.trace) as unfinished:
                number = write_parquet(counted(), unfinished)
                octets = unfinished.stat().st_size
        except TraceError as error:
            raise StoreError(str(error).replace("\n", " ")) from error
        self.parts.append(Part(part.id, self.day, target, self.run, number, frames, sequences, octets))


def add_trace(
    store: Store,
    path: Path | str,
    *,
    day: str | None = None,
    run: str | None = None,
    target: str | None = None,
    capture: CaptureOptions | None = None,
    commit: str | None = None,
    others: Mapping[str, str] | None = None,
) -> Added:
    """Add a trace to a store: all of it, or what comes before the first thing that cannot be read.

    `path` as for `read_trace`, or a network capture, which is read by `capture`. A trace that was added before is not
    added again. `day`: by default that of the file; `run`: by default made of the file's name and of a digest of its
    content; `target`: by default what the trace says; `commit`: its name, by default made of all these. `others`: as
    `runs_by_content` gives it, so that the same trace under another run is told.
    Raises `StoreError` when the store cannot be written; what is wrong with the trace is in the result.
    """
    added = Added()
    try:
        files = pieces_of(path)
        content = _run_of(files)
        name = run or content
        day = day or datetime.fromtimestamp(_began(files[0]), UTC).date().isoformat()
    except (OSError, TraceError) as error:
        # nothing of it is in the store, so nothing is noted there
        reason = f"{path}: the trace cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        added.problems.append(reason)
        return added
    said = f"{name}\n{target or ''}" if name == content else f"{name}\n{target or ''}\n{content}"
    digest = sha256(said.encode("utf-8", "surrogateescape")).hexdigest()
    # the second one as earlier versions named it
    names = [commit] if commit else [f"import-{digest[:20]}-{content[-CONTENT:]}", f"import-{digest[:32]}"]
    commit = names[0]
    if (there := next(filter(store.has_commit, names), None)) is not None:
        added.known, added.commit = True, there
        return added
    if (other := (others or {}).get(content[-CONTENT:])) is not None:
        added.notes.append(f"{path}: the store has the same trace as run {other}; it is added as {name} as well")
    adder = Adder(store, day, name, target)
    if is_capture(files[0]):
        rows = capture_rows(files[0], capture or CaptureOptions(), added.problems.append)
    else:
        rows = chain.from_iterable(map(read_trace, files))
    if (missing := _missing(files)) is not None:
        added.problems.append(f"{path}: {missing} is missing, so nothing that comes after it was taken")
    _Splitter(adder, added).take(rows)
    if not adder.has_any and not added.problems:
        # as `amqpspec check` says of it; that it was imported is not noted, or a second time it would count as known
        added.problems.append(f"{path}: no sequence in it, so nothing was added")
        return added
    had_any = adder.has_any
    added.parts, added.commit = adder.finish(added.problems, commit), commit
    added.known = had_any and not added.parts
    return added


def pieces_of(path: Path | str) -> list[Path]:
    """The files of a trace in their order: those that `record --rotate` leaves in a folder, up to the first that is
    missing, or else one. Raises `TraceError`.
    """
    numbered = {int(found[1]): file for file in Path(path).glob("*.jsonl") if (found := _PIECE.fullmatch(file.name))}
    if not numbered or (Path(path) / "trace.jsonl").is_file():
        return [trace_file(path)]
    if 1 not in numbered:
        raise TraceError(f"{path}: its first piece, trace-000001.jsonl, is missing")
    return [numbered[number] for number in takewhile(numbered.__contains__, count(1))]


def _missing(files: list[Path]) -> str | None:
    """The first piece that is missing before others; None: there are all."""
    if _PIECE.fullmatch(files[0].name) is None:
        return None
    there = sum(_PIECE.fullmatch(file.name) is not None for file in files[0].parent.glob("*.jsonl"))
    return f"trace-{len(files) + 1:06}.jsonl" if there > len(files) else None


def runs_by_content(store: Store) -> dict[str, str]:
    """The runs of the traces that the store has, by the digests of these. Raises `StoreError`."""
    found: dict[str, str] = {}
    for file in store.files.listed(MANIFEST):
        if (commit := _IMPORT.fullmatch(file.path.rpartition("/")[2])) is not None:
            with suppress(FileNotFoundError, ValueError, KeyError, IndexError):
                found[commit[1]] = json.loads(store.files.read(file.path))["parts"][0]["run"]
    return found


def _run_of(files: list[Path]) -> str:
    """Equal for equal files: the name of the file, or of the folder of a run, and a digest of the content."""
    digest = sha256()
    for file in files:
        with file.open("rb") as content:
            while octets := content.read(1 << 20):
                digest.update(octets)
    is_of_folder = files[0].stem == "trace" or _PIECE.fullmatch(files[0].name) is not None
    name = files[0].absolute().parent.name if is_of_folder else files[0].stem
    return f"{name}-{digest.hexdigest()[:CONTENT]}"


def _began(file: Path) -> float:
    """When it was recorded, seconds since 1970: what a capture says, else the time of the file."""
    began = None
    if is_capture(file):
        with suppress(TraceError):  # told where it is read
            began = began_at(file)
    return file.stat().st_mtime if began is None else began


class _Splitter:
    """Puts the rows of each sequence together; long ones in files."""

    def __init__(self, adder: Adder, added: Added) -> None:
        self._adder, self._added = adder, added
        self._open: dict[str, list[TraceRow]] = {}
        self._long: dict[str, Path] = {}

    def take(self, rows: Iterable[TraceRow]) -> None:
        try:
            for row in rows:
                self._row(row)
        except TraceError as error:
            self._added.problems.append(str(error))
        finally:
            # without an end row the run was stopped: such sequences come last
            try:
                for name in [*self._open]:
                    self._close(name)
            finally:
                for file in self._long.values():
                    file.unlink(missing_ok=True)

    def _row(self, row: TraceRow) -> None:
        name, kind = row["sequence"], row["kind"]
        collected = self._open.get(name)
        if kind == "start" and collected is not None:
            self._added.problems.append(f"the sequence {name!r} of {self._adder.run} starts again before its end row")
            self._close(name)
            collected = None
        if collected is None:
            if kind != "start":
                problem = f"rows of the sequence {name!r} of {self._adder.run} come outside of it, and were left out"
                if problem not in self._added.problems:
                    self._added.problems.append(problem)
                return
            self._open[name] = [row]
            return
        collected.append(row)
        if len(collected) > MOST_IN_MEMORY:
            self._spill(name, collected)
        if kind == "end":
            self._close(name)

    def _spill(self, name: str, collected: list[TraceRow]) -> None:
        """All rows but the first go to a file."""
        if name not in self._long:
            self._long[name] = Path(tempfile.gettempdir()) / f"amqpspec-{uuid4().hex}.jsonl"
        try:
            with self._long[name].open("ab") as file:
                file.writelines(map(row_line, collected[1:]))
        except OSError as error:
            raise StoreError(f"{self._long[name]}: cannot be written: {error.strerror}") from error
        del collected[1:]

    def _close(self, name: str) -> None:
        rows = self._open.pop(name)
        file = self._long.pop(name, None)
        if file is None:
            self._adder.add(rows)
            return

        def whole() -> Iterator[TraceRow]:
            yield rows[0]
            yield from read_trace(file)
            yield from rows[1:]

        try:
            self._adder.add_long(rows[0], whole())
        finally:
            file.unlink(missing_ok=True)
