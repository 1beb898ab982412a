"""Traces: everything that went over the wire, written before it is judged.

A run writes one file of JSON Lines, described in docs/trace-format.md. Each line is one row (`TraceRow`); the
rows of many sequences may be mixed. `TraceWriter` hands every row to the operating system before it returns,
so that what was judged is always on disk. `read_trace` gives the same rows back, from JSON Lines or from
Parquet, in flat memory; `sequences` sorts them into sequences; `row_event` makes the `Method` of a row.
"""

from __future__ import annotations

import gzip
import io
import json
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.traces.json_text import parsed, parsed_lines
from amqpspec.conformance.traces.row_writer import RowWriter
from amqpspec.conformance.traces.trace_row import (
    MAX_BODY,
    Mark,
    TraceError,
    TraceRow,
    event_row,
    row_event,
    row_problem,
)
from amqpspec.conformance.traces.trace_values import TAG_MARK, decode_value

__all__ = [
    "Mark",
    "TraceError",
    "TraceRow",
    "TraceWriter",
    "event_row",
    "jsonl_to_parquet",
    "read_trace",
    "row_event",
    "sequences",
    "trace_file",
]

#: A line longer than this is not a trace; reading stops there instead of filling the memory.
MAX_LINE = 64 * 1024 * 1024
#: The end of the name of a compressed one.
COMPRESSED = ".gz"
#: Octets that are read at a time, and parsed as one where nothing is wrong with them.
_BLOCK = 64 * 1024


class TraceWriter(RowWriter):
    """Writes the trace of a run: `with TraceWriter(out / "trace.jsonl") as trace: …`. Replaces an older file.

    Each method writes one row, hands it to the operating system, and returns it in the form in which
    `read_trace` will give it, so that live and offline judging see the same. Several threads may write, each
    its own sequence; and several processes, of which one begins the file and the others `append`.
    Of bodies longer than `longest_body` octets size and digest are written.
    Raises `TraceError` if the file cannot be written, or for a value that has no written form. One that `goes_on` says
    in `lost` why nothing is written any more, such as a full disk, and gives the rows all the same.
    """

    def __init__(
        self, path: Path | str, append: bool = False, longest_body: int = MAX_BODY, *, goes_on: bool = False
    ) -> None:
        super().__init__(Path(path), longest_body)
        self.lost: str | None = None
        self._goes_on = goes_on
        self._one_at_a_time = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not append:
                self.path.open("wb").close()
            # the operating system puts each row after those of other processes, whole
            self._file: BinaryIO = self.path.open("ab", buffering=0)
        except OSError as error:
            raise TraceError(f"{self.path}: the trace cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the file. Rows were on their way to disk before."""
        try:
            self._file.close()
        except OSError as error:
            raise TraceError(f"{self.path}: the trace cannot be written: {error.strerror}") from error

    def _write(self, row: TraceRow) -> TraceRow:
        line = self._line(row)
        if self.lost is not None:
            return row
        try:
            with self._one_at_a_time:
                self._write_whole(line)
        except OSError as error:
            if self._goes_on:
                self.lost = error.strerror or str(error)
                return row
            raise TraceError(f"{self.path}: the trace cannot be written: {error.strerror}") from error
        return row

    def _write_whole(self, line: bytes) -> None:
        written = self._file.write(line)
        while written < len(line):  # a disk that fills up takes a part, and tells why when it is asked again
            written += self._file.write(line[written:])


def read_trace(path: Path | str) -> Iterator[TraceRow]:
    """The rows of a trace in order, in memory that does not grow with its length.

    `path` is a file of JSON Lines, compressed or not (its name ends in `.gz`), a Parquet file (its name ends in
    `.parquet`), or a directory that holds `trace.jsonl`, `trace.parquet` or `trace.jsonl.gz` (the first of them is
    taken). Raises `TraceError` at the first row that
    cannot be read; all rows before it have been given by then. Raises `MissingExtra` where Parquet needs pyarrow.
    """
    file = trace_file(path)
    if file.suffix == ".parquet":
        with needed_for(f"to read {file}"):
            from amqpspec.conformance.traces.trace_parquet import read_parquet
        return read_parquet(file)
    return _read_lines(file)


def trace_file(path: Path | str) -> Path:
    """The file that `path` means as a trace. Raises `TraceError` if there is none."""
    path = Path(path)
    if not path.is_dir():
        return path
    for name in ("trace.jsonl", "trace.parquet", "trace.jsonl.gz"):
        if (path / name).is_file():
            return path / name
    raise TraceError(f"{path}: the directory holds no trace.jsonl and no trace.parquet{_others(path)}")


def _others(directory: Path) -> str:
    """What is there instead: most likely the pieces that `amqpspec record --rotate` leaves."""
    names = sorted(file.name for suffix in ("jsonl", "parquet") for file in directory.glob(f"*.{suffix}"))
    if not names:
        return ""
    there = ", but " + (names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)} files)")
    if not any(directory.glob("trace-[0-9]*.jsonl")):
        return f"{there}: name the file"
    return f"{there}: a recording in pieces is one trace after cat {directory}/trace-*.jsonl > FILE.jsonl"


def jsonl_to_parquet(source: Path | str, destination: Path | str) -> int:
    """Writes the trace `source` as one Parquet file, in flat memory; gives the number of rows.

    Keys that the schema does not know are dropped. Raises `TraceError` if the source cannot be read to its
    end (what came before is in the file then) or the destination cannot be written; `MissingExtra` without pyarrow.
    """
    with needed_for("to write Parquet"):
        from amqpspec.conformance.traces.trace_parquet import write_parquet
    return write_parquet(read_trace(source), destination)


def _read_lines(path: Path) -> Iterator[TraceRow]:
    number = 0
    for block in _blocks(path):
        rows = parsed_lines(block)
        if rows is not None and TAG_MARK in block:
            rows = _without_tags(block, rows)
        if rows is not None and not any(map(row_problem, rows)):
            number += len(rows)
            yield from cast(list[TraceRow], rows)
            continue
        for raw in io.BytesIO(block):
            number += 1
            row = _read_line(path, number, raw)
            if row is not None:
                yield row


def _read_line(path: Path, number: int, raw: bytes) -> TraceRow | None:
    """The row of that line; None: the line is empty."""
    try:
        row = parsed(raw)
        if TAG_MARK in raw:
            _undo_tags(row)
        problem = row_problem(row)
    except (ValueError, RecursionError) as error:
        if not raw.isspace():
            raise _unreadable(path, number, raw, error) from error
        return None
    if problem is not None:
        key, sentence = problem
        column = raw.decode("utf-8").find(f'"{key}"') + 1 or 1
        raise TraceError(f"{path}:{number}:{column}: {sentence}")
    return cast(TraceRow, row)


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, about as many at a time as `_BLOCK` says; the last one may be cut short."""
    try:
        with gzip.open(path) if path.suffix == COMPRESSED else path.open("rb") as file:
            parts: list[bytes] = []
            while block := file.read(_BLOCK):
                end = block.rfind(b"\n") + 1
                if end:
                    yield b"".join((*parts, block[:end]))
                    parts = []
                parts.append(block[end:])
                if len(parts) * _BLOCK > MAX_LINE:
                    break
            if last := b"".join(parts)[:MAX_LINE]:
                yield last
    except EOFError as error:
        raise TraceError(f"{path}: the compressed trace is cut short") from error
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceError(f"{path}: the trace cannot be read: {reason}") from error


def _without_tags(block: bytes, rows: list[Any]) -> list[Any] | None:
    """The rows of those lines with their tags undone; None: it fails on one of them."""
    try:
        for line, row in zip(block.split(b"\n"), rows, strict=False):
            if TAG_MARK in line:
                _undo_tags(row)
    except (ValueError, RecursionError):
        return None
    return rows


def _undo_tags(row: Any) -> None:
    if isinstance(row, dict):
        for key in ("arguments", "properties"):
            if key in row:
                row[key] = decode_value(row[key])


def _unreadable(path: Path, number: int, raw: bytes, error: Exception) -> TraceError:
    place = f"{path}:{number}"
    if len(raw) == MAX_LINE:
        return TraceError(f"{place}:1: the line is longer than {MAX_LINE} octets")
    if isinstance(error, json.JSONDecodeError):
        if not raw.endswith(b"\n"):
            return TraceError(f"{place}:{error.pos + 1}: the last line is cut short")
        return TraceError(f"{place}:{error.pos + 1}: not JSON: {error.msg}")
    if isinstance(error, UnicodeDecodeError):
        cut = "the last line is cut short" if not raw.endswith(b"\n") else "not UTF-8"
        return TraceError(f"{place}:{error.start + 1}: {cut}")
    if isinstance(error, RecursionError):
        return TraceError(f"{place}:1: tables are nested too deep")
    return TraceError(f"{place}:1: {error}")


def sequences(rows: Iterable[TraceRow]) -> Iterator[list[TraceRow]]:
    """The rows of each sequence together, from its start row to its end row, as soon as the end row is there.

    Memory holds the sequences that are open at a time. What has no end row, because the run was stopped,
    comes last. A name may be used again after its end. Raises `TraceError` for a row outside any sequence.
    """
    open_ones: dict[str, list[TraceRow]] = {}
    for row in rows:
        name = row["sequence"]
        collected = open_ones.get(name)
        kind = row["kind"]
        if collected is None:
            if kind != "start":
                raise TraceError(f"a row of kind {kind!r} of the sequence {name!r} comes before its start row")
            open_ones[name] = [row]
            continue
        if kind == "start":
            raise TraceError(f"the sequence {name!r} starts again before its end row")
        collected.append(row)
        if kind == "end":
            yield open_ones.pop(name)
    yield from open_ones.values()
