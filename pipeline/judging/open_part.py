"""Judges a part of open-world recordings by columns: as row by row, in less than half the time.

Recordings of applications are large. So their rows are not made one by one: the arguments of a batch are parsed as one
text, and frames go to the judge as they stand in the columns. Where anything in a part is not as usual (a row that
lacks something, a sequence that does not begin with its start row, text that is no JSON) this gives up, and the way row
by row says what is wrong.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpspec.conformance.traces.json_text import decoded
from amqpspec.conformance.traces.trace_parquet import batch_rows
from amqpspec.conformance.traces.trace_row import DIGEST, OPEN, TraceRow, stand_in
from amqpspec.conformance.traces.trace_values import TAG_MARK
from amqpspec.conformance.verdicts.open_judge import OpenSequenceJudge
from amqpspec.model.protocol.methods import OTHER_EVENTS, Content, Method, Table
from amqpspec.pipeline.judging.judgement_rows import judgement_row
from amqpspec.pipeline.judging.latencies import Latencies
from amqpspec.pipeline.store.parts import Part

_BATCH = 8192
_FRAME = ("time", "connection", "channel", "direction", "method", "arguments")
_CONTENT = ("properties", "body", "body_size", "body_sha256")
#: What end rows, marks and measurements have.
_NOT_READ = frozenset(
    {"row", "mark", "waited", "nominal", "least", "most", "tick", "verdict", "failures", "exercised", "reason"}
)
_DIRECTIONS = pa.array(["sent", "received"])
_KINDS = pa.array(["start", "command", "frame", "mark", "measurement", "end"])


class Unusual(Exception):
    """Something in a part has to be read row by row."""


def open_judgements(file: Path, part: Part, always: bool) -> list[dict[str, Any]]:
    """The rows of judgements of a part, all of it recordings of the open world, or `always` judged as such.

    Raises `Unusual` where it is not, or has to be read row by row, and what Arrow raises.
    """
    found: list[dict[str, Any]] = []
    current: _Sequence | None = None
    number = 1
    with pq.ParquetFile(file) as columns, _without_collector():
        if columns.metadata.num_rows != part.rows:
            raise Unusual("the manifest says otherwise")
        wanted = [name for name in columns.schema_arrow.names if name not in _NOT_READ]
        for batch in columns.iter_batches(_BATCH, columns=wanted):
            rows = _Rows(batch)
            if current is not None:
                current.take(rows, 0, rows.starts[0] if rows.starts else rows.count)
            elif rows.starts[:1] != [0]:
                raise Unusual("it does not begin with a start row")
            starts = batch_rows(batch.take(rows.starts), "its rows") if rows.starts else iter(())
            for (begin, end), start in zip(pairwise([*rows.starts, rows.count]), starts, strict=True):
                if current is not None:
                    found.append(current.judged())
                if not always and start["mode"] != OPEN:
                    raise Unusual("a sequence of the suite")
                current = _Sequence(start, number + begin)
                current.take(rows, begin + 1, end)
            number += batch.num_rows
    if current is not None:
        found.append(current.judged())
    return found


@contextmanager
def _without_collector() -> Iterator[None]:
    """Nothing here refers to itself in a circle, and looking for that takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Rows:
    """The rows of a batch. Raises `Unusual`."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        kinds = batch.column("kind")
        if not pc.all(pc.is_in(kinds, _KINDS)).as_py():
            raise Unusual("rows of no kind")
        self.count = batch.num_rows
        self.sequences: list[str] = batch.column("sequence").to_pylist()
        #: numbers of start rows, from 0, and of commands, with their texts
        self.starts: list[int] = pc.indices_nonzero(pc.equal(kinds, "start")).to_pylist()
        commands = pc.indices_nonzero(pc.equal(kinds, "command"))
        self.commands = list(zip(commands.to_pylist(), batch.column("text").take(commands).to_pylist(), strict=True))
        is_frame = pc.equal(kinds, "frame")
        #: how many frames there are up to a row
        self.frames_up_to = [0, *pc.cumulative_sum(is_frame.cast(pa.int32())).to_pylist()]
        self.frames = list(_frames(batch.filter(is_frame)))


class _Sequence:
    def __init__(self, start: TraceRow, first_row: int) -> None:
        self._start, self._first_row = start, first_row
        self._judge, self._latencies, self._commands = OpenSequenceJudge(start), Latencies(), sha256()

    def take(self, rows: _Rows, begin: int, end: int) -> None:
        """The next rows of the sequence. Raises `Unusual`."""
        names = rows.sequences
        if names[begin:end].count(self._start["sequence"]) != end - begin:
            raise Unusual("rows of another sequence")
        for number, text in rows.commands:
            if begin <= number < end:
                self._commands.update(text.encode("utf-8", "surrogatepass") + b"\n")
        kind_of = OTHER_EVENTS.get
        events = [
            kind_of(name, Method)(connection, channel, name, arguments, direction == "sent", content, time)
            for time, connection, channel, direction, name, arguments, content in rows.frames[
                rows.frames_up_to[begin] : rows.frames_up_to[end]
            ]
        ]
        self._latencies.events(events)
        self._judge.events(events)

    def judged(self) -> dict[str, Any]:
        """Raises `Unusual` where an error came up: row by row it shows whose it is."""
        commands = self._commands.hexdigest()[:DIGEST]
        judgement = self._judge.judgement()
        if judgement.suite_error is not None:
            raise Unusual(judgement.suite_error)
        return judgement_row(judgement, self._start, self._first_row, commands, self._latencies.found)


def _frames(frames: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The columns `_FRAME` and contents. Raises `Unusual`."""
    if any(frames.column(name).null_count for name in _FRAME):
        raise Unusual("something is missing in a frame")
    if not pc.all(pc.is_in(frames.column("direction"), _DIRECTIONS), min_count=0).as_py():
        raise Unusual("a frame has no direction")
    plain = [frames.column(name).to_pylist() for name in _FRAME[:-1]]
    return zip(*plain, _tables(frames.column("arguments").to_pylist()), _contents(frames), strict=True)


def _tables(texts: list[str]) -> list[Table]:
    """What the texts say, parsed as one where no value is marked with its type."""
    whole = f"[{','.join(texts)}]".encode("utf-8", "surrogatepass")
    tables: list[Table]
    try:
        tables = [decoded(text) for text in texts] if TAG_MARK in whole else orjson.loads(whole)
    except (ValueError, RecursionError):
        raise Unusual("text that is no JSON") from None
    if len(tables) != len(texts) or not all(type(table) is dict for table in tables):
        raise Unusual("arguments that are no table")
    return tables


def _contents(frames: pa.RecordBatch) -> Iterator[Content | None]:
    columns = [frames.column(name) for name in _CONTENT]
    if all(column.null_count == frames.num_rows for column in columns):
        return repeat(None, frames.num_rows)
    texts = columns[0].dictionary_encode()
    tables = [*_tables(texts.dictionary.to_pylist()), {}]
    indices = pc.fill_null(texts.indices, len(tables) - 1).to_pylist()
    return map(_content, (tables[index] for index in indices), *(column.to_pylist() for column in columns[1:]))


def _content(properties: Table, body: bytes | None, size: int | None, digest: str | None) -> Content | None:
    if body is not None:
        return Content(properties, body)
    return None if digest is None else Content(properties, stand_in(size or 0, digest))
