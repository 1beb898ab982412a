"""Traces as Parquet: the same rows as in JSON Lines, in one typed schema (docs/trace-format.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.conformance.traces.json_text import decoded, encoded
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow, put_body, row_event, row_problem

#: One column for each key of a row, and `row`, the number of the row in its trace, from 1.
SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("sequence", pa.string(), nullable=False),
        pa.field("time", pa.float64()),
        pa.field("target", pa.string()),
        pa.field("product", pa.string()),
        pa.field("version", pa.string()),
        pa.field("dialect", pa.string()),
        pa.field("mode", pa.string()),
        pa.field("virtual_host", pa.string()),
        pa.field("user", pa.string()),
        pa.field("requirement", pa.string()),
        pa.field("seed", pa.int64()),
        pa.field("repeats", pa.string()),
        pa.field("planned", pa.string()),
        pa.field("driver", pa.string()),
        pa.field("text", pa.string()),
        pa.field("connection", pa.string()),
        pa.field("channel", pa.int32()),
        pa.field("direction", pa.string()),
        pa.field("method", pa.string()),
        pa.field("arguments", pa.string()),
        pa.field("properties", pa.string()),
        pa.field("body", pa.binary()),
        pa.field("body_size", pa.int64()),
        pa.field("body_sha256", pa.string()),
        pa.field("mark", pa.string()),
        pa.field("waited", pa.float64()),
        pa.field("nominal", pa.float64()),
        pa.field("least", pa.float64()),
        pa.field("most", pa.float64()),
        pa.field("tick", pa.float64()),
        pa.field("verdict", pa.string()),
        pa.field("failures", pa.string()),
        pa.field("exercised", pa.string()),
        pa.field("reason", pa.string()),
    ]
)

#: Columns that traces of earlier versions lack.
ADDED_LATER = frozenset({"virtual_host", "user", "repeats", "planned", "driver", "nominal", "least", "most", "tick"})

#: A row group ends at this many rows or octets, whichever comes first.
GROUP_ROWS = 20_000
GROUP_OCTETS = 32 * 1024 * 1024

_JSON_COLUMNS = ("arguments", "properties", "failures", "exercised")
_NULLABLE_KEYS = {"start": ("requirement", "seed", "user", "repeats", "planned"), "end": ("reason",)}


def write_parquet(rows: Iterable[TraceRow], destination: Path | str) -> int:
    """Writes `rows` as one Parquet file; gives their number. Raises `TraceError`."""
    number = 0
    try:
        with pq.ParquetWriter(destination, SCHEMA, compression="zstd") as writer:
            group: list[dict[str, Any]] = []
            octets = 0
            try:
                for row in rows:
                    number += 1
                    columns = _columns(row, number)
                    octets += len(columns.get("body") or b"") + len(columns.get("arguments") or "")
                    group.append(columns)
                    if len(group) >= GROUP_ROWS or octets >= GROUP_OCTETS:
                        writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
                        group, octets = [], 0
            finally:
                if group:
                    writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
    except OSError as error:
        raise TraceError(f"{destination}: the trace cannot be written: {error}") from error
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise TraceError(f"{destination}: row {number} does not fit the Parquet schema: {error}") from error
    return number


def _columns(row: TraceRow, number: int) -> dict[str, Any]:
    columns: dict[str, Any] = dict(row)
    columns["row"] = number
    for key in _JSON_COLUMNS:
        if key in columns:
            columns[key] = encoded(columns[key])
    if "body" in columns or "body_base64" in columns:
        content = row_event(row).content
        columns["body"] = content.body if content else None
        columns["body_size"] = len(content.body) if content else None
    return columns


def columns_of(present: Collection[str], origin: Path | str) -> list[str]:
    """The columns of a trace among those that are present in a file, in their order; of a trace of an earlier version
    some are missing. Raises `TraceError` where it is no trace.
    """
    for name in SCHEMA.names:
        if name not in present and name not in ADDED_LATER:
            raise TraceError(f"{origin}: not a trace: the column {name} is missing")
    return [name for name in SCHEMA.names if name in present]


def require_schema(path: Path | str) -> None:
    """Raises `TraceError` unless `path` is a Parquet file with the columns of a trace."""
    try:
        present = pq.read_schema(path).names
    except FileNotFoundError as error:
        raise TraceError(f"{path}: the trace cannot be read: {error.strerror or 'no such file'}") from error
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())}") from error
    columns_of(present, path)


def read_parquet(path: Path | str) -> Iterator[TraceRow]:
    """The rows of a Parquet trace, one row group's batch at a time. Raises `TraceError`."""
    require_schema(path)
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=4096, columns=columns_of(file.schema_arrow.names, path)):
                yield from batch_rows(batch, str(path))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())}") from error


def batch_rows(batch: pa.RecordBatch | pa.Table, origin: str) -> Iterator[TraceRow]:
    """The rows in an Arrow batch of the trace schema. `origin` names the trace in errors."""
    present = [name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows]
    names = [name for name in present if name in _COLUMN_NAMES]
    for values in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
        columns = {name: value for name, value in zip(names, values) if value is not None}  # noqa: B905
        number = columns.pop("row", 0)
        try:
            row = _row(columns)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{origin}: row {number}: {error}") from error
        problem = row_problem(row)
        if problem is not None:
            raise TraceError(f"{origin}: row {number}: {problem[1]}")
        yield row


_COLUMN_NAMES = frozenset(SCHEMA.names)


def _row(columns: dict[str, Any]) -> Any:
    for key in _JSON_COLUMNS:
        text = columns.get(key)
        if text is not None:
            columns[key] = decoded(text)
    body = columns.pop("body", None)
    if body is not None:
        del columns["body_size"]
        put_body(cast(TraceRow, columns), body)
    for key in _NULLABLE_KEYS.get(columns.get("kind", ""), ()):
        columns.setdefault(key, None)
    return columns
