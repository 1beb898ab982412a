"""Judging one part of a store: the same function as in the live run, sequence by sequence.

What a part was judged to be is written as one file, and counts by a commit: a job that was stopped goes on with the
parts that have none. A sequence that cannot be read or judged costs itself. Memory holds one batch of
rows, the state of one sequence and the results of the part, however long a sequence is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace_parquet import batch_rows, columns_of
from amqpspec.conformance.traces.trace_row import DIGEST, TraceError, TraceRow
from amqpspec.conformance.verdicts.judge import judge as judge_of_suite
from amqpspec.conformance.verdicts.judge import judge_open
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.pipeline.judging.judged_parts import write_judgements
from amqpspec.pipeline.judging.judgement_rows import JUDGEMENTS, judgement_row, problem_row
from amqpspec.pipeline.judging.latencies import Latencies
from amqpspec.pipeline.judging.open_part import open_judgements
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store
from amqpspec.targets.suite_error import suite_error_in

#: Judges the rows of one sequence. Must be importable by name to be used by Spark.
Judge = Callable[[Iterable[TraceRow]], SequenceJudgement]
_BATCH = 4096


@dataclass(frozen=True, slots=True)
class PartJudged:
    """What became of a part, in numbers. `unreadable`: why it was not judged, one line; `broken`: its sequences that
    were not, a few of them, one line each, and `broken_sequences` their number.
    """

    part: str
    sequences: int = 0
    frames: int = 0
    failed: int = 0
    inconclusive: int = 0
    #: sequences that only repeat or shorten others: they are judged, and no other number but that of frames counts them
    repeats: int = 0
    broken_sequences: int = 0
    broken: tuple[str, ...] = ()
    #: sequences that came to an error of this suite, a few of them as (name, line), and their number
    errors: tuple[tuple[str, str], ...] = ()
    erring_sequences: int = 0
    unreadable: str | None = None
    #: the store cannot be seen or written: nothing more can be done
    fatal: bool = False


#: So many broken sequences of a part are named.
_MOST_NAMED = 3


def judge_part(store: Store, part: Part, judge: Judge = judge_of_suite) -> PartJudged:
    """Judge a part, and keep what came of it. Raises nothing that has to do with the part or the disk."""
    try:
        store.require_seen()
    except StoreError as error:
        return PartJudged(part.id, unreadable=str(error), fatal=True)
    name = store.named(part.trace)
    try:
        with store.files.reading(part.trace) as file:
            rows = _in_columns(file, part, judge) or list(_judgements(file, name, part, judge))
    except (TraceError, FileNotFoundError) as error:
        if not store.files.exists(part.trace) and part.id not in {each.id for each in store.contents().parts}:
            return PartJudged(part.id)  # it was removed meanwhile, or others took its place
        problem = f"{name}: cannot be read: no such file" if isinstance(error, FileNotFoundError) else str(error)
        return PartJudged(part.id, unreadable=problem)
    except StoreError as error:
        return PartJudged(part.id, unreadable=str(error))
    try:
        judged = write_judgements(store, part, pa.Table.from_pylist(rows, schema=JUDGEMENTS))
        store.commit(judgements={part.id: judged.judged})
    except StoreError as error:
        return PartJudged(part.id, unreadable=str(error), fatal=True)
    broken = [row for row in rows if row.get("problem")]
    erring = [(row["sequence"], row["ended_by"]) for row in rows if suite_error_in(row.get("ended_by")) is not None]
    counted = [row for row in rows if row["repeats"] is None]
    return PartJudged(
        part.id,
        len(counted),
        sum(row["frames"] for row in rows),
        sum(row["verdict"] == "fail" for row in counted),
        sum(row["verdict"] == "inconclusive" for row in counted),
        len(rows) - len(counted),
        len(broken),
        tuple(f"{part.run}: {row['problem']}" for row in broken[:_MOST_NAMED]),
        tuple(erring[:_MOST_NAMED]),
        len(erring),
    )


def _in_columns(file: Path, part: Part, judge: Judge) -> list[dict[str, Any]] | None:
    """The judgements of a part of the open world; None: it is none, or has to be read row by row."""
    if judge not in (judge_of_suite, judge_open):
        return None
    try:
        return open_judgements(file, part, always=judge is judge_open)
    except Exception:  # noqa: BLE001 - whatever it is, the way row by row says to which sequence it belongs
        return None


def _judgements(file: Path, name: str, part: Part, judge: Judge) -> Iterator[dict[str, Any]]:
    """`name`: that of the file for people."""
    rows = _Rows(file, name, part)
    while rows.next is not None:
        yield _one(rows, judge)


class _Rows:
    """The rows of a part, one sequence at a time. Raises `TraceError` when the file cannot be read."""

    def __init__(self, file: Path, name: str, part: Part) -> None:
        self._rows = _rows(file, name, part)
        self.number = 0
        #: the first row of the next sequence, or what is wrong with it
        self.next = next(self._rows, None)

    def of_sequence(self) -> Iterator[TraceRow]:
        """The rows of the next sequence. Raises `_BrokenRow` for one of its rows that cannot be read."""
        name = _name(self.next)
        is_first = True
        while (row := self.next) is not None and _name(row) == name and (is_first or _begins(row) is False):
            is_first = False
            self.next = next(self._rows, None)
            self.number += 1
            if isinstance(row, _BrokenRow):
                raise row
            yield row


class _Unreadable(TraceError):
    """The file of the part cannot be read any further."""


class _BrokenRow(TraceError):
    """A row that cannot be read, though the file can."""

    def __init__(self, sequence: str, is_start: bool, problem: str) -> None:
        super().__init__(problem)
        self.sequence, self.is_start = sequence, is_start


def _name(row: TraceRow | _BrokenRow | None) -> str:
    if row is None:
        return ""
    return row.sequence if isinstance(row, _BrokenRow) else row["sequence"]


def _begins(row: TraceRow | _BrokenRow) -> bool:
    return row.is_start if isinstance(row, _BrokenRow) else row["kind"] == "start"


def _one(rows: _Rows, judge: Judge) -> dict[str, Any]:
    """The judgement of the next sequence, which is read to its end whatever becomes of it."""
    name, first_row = _name(rows.next), rows.number + 1
    start = TraceRow(kind="start", sequence=name)
    if not isinstance(rows.next, _BrokenRow) and rows.next is not None and rows.next["kind"] == "start":
        start = rows.next
    latencies, commands = Latencies(), sha256()
    frames = 0
    of_sequence = rows.of_sequence()

    def watched() -> Iterator[TraceRow]:
        nonlocal frames
        for row in of_sequence:
            kind = row["kind"]
            if kind == "frame":
                frames += 1
                latencies.row(row)
            elif kind == "command":
                commands.update(row["text"].encode("utf-8", "surrogatepass") + b"\n")
            yield row

    problem: str | None = None
    judgement: SequenceJudgement | None = None
    iterator = watched()
    try:
        judgement = judge(iterator)
    except _Unreadable:
        raise
    except TraceError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - whatever the judge meets in a sequence costs that sequence only
        problem = f"the judge itself failed: {error!r}"
    try:
        for _ in iterator:
            pass
    except _Unreadable:
        raise
    except TraceError as error:
        problem = problem or str(error)
    while rows.next is not None and _name(rows.next) == name and not _begins(rows.next):
        # after a broken row
        rows.next = next(rows._rows, None)
        rows.number += 1
    if judgement is None or problem is not None:
        said = f"the sequence {name!r} cannot be judged: {problem}"
        return problem_row(start, first_row, " ".join(said.split()), frames)
    return judgement_row(judgement, start, first_row, commands.hexdigest()[:DIGEST], latencies.found)


def _rows(file: Path, name: str, part: Part) -> Iterator[TraceRow | _BrokenRow]:
    try:
        with pq.ParquetFile(file) as columns:
            wanted = columns_of(columns.schema_arrow.names, name)
            if columns.metadata.num_rows != part.rows:
                raise _Unreadable(f"{name}: {columns.metadata.num_rows} rows, where the manifest says {part.rows}")
            for batch in columns.iter_batches(_BATCH, columns=wanted):
                yield from _rows_of(batch)
    except TraceError as error:
        raise _Unreadable(str(error)) from error
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise _Unreadable(f"{name}: not a readable Parquet file: {' '.join(str(error).split())}") from error


def _rows_of(batch: pa.RecordBatch) -> Iterator[TraceRow | _BrokenRow]:
    """The rows of a batch; where one cannot be read, that is told in its place."""
    at = 0
    while at < batch.num_rows:
        try:
            for row in batch_rows(batch.slice(at), "its rows"):
                at += 1
                yield row
        except TraceError as error:
            name, kind = batch.column("sequence")[at].as_py(), batch.column("kind")[at].as_py()
            yield _BrokenRow(name or "", kind == "start", str(error))
            at += 1
