"""The rows of a store in DuckDB, for tables without Spark: in this process, in a tenth of a second for a small
store. DuckDB keeps them in a file while they are asked for, so memory does not grow with the store.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.live_files import LiveFile
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store

_OF_PART = pa.schema([pa.field("day", pa.date32()), pa.field("target", pa.string()), pa.field("run", pa.string())])


@contextmanager
def duckdb_connection() -> Iterator[Any]:
    """A connection of DuckDB with a database of its own, which is removed at the end. Raises `StoreError` for what
    DuckDB says in the block, one line."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="amqpspec-duckdb-") as directory,
        duckdb.connect(str(Path(directory, "tables.duckdb"))) as connection,
    ):
        try:
            yield connection
        except duckdb.Error as error:
            raise StoreError(f"the table cannot be made: {' '.join(str(error).split())}") from error


def load_rows(
    connection: Any,
    store: Store,
    name: str,
    parts: Mapping[str, Part],
    schema: pa.Schema,
    lived: Iterable[LiveFile] = (),
) -> Any:
    """A relation with the rows of all files, and `day`, `target` and `run` of their parts. `parts`: by the paths of
    files; `schema`: the columns without those three; `lived`: files of judgements that are added.
    """
    arriving, table = (f"{each}_{name}_{uuid4().hex}" for each in ("arriving", "rows"))
    columns = pa.schema([*schema, *_OF_PART])
    rows = chain(_batches(store, parts, columns), _lived(lived, columns))
    connection.register(arriving, pa.RecordBatchReader.from_batches(columns, rows))
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {arriving}")
    connection.unregister(arriving)
    return connection.table(table)


def _batches(store: Store, parts: Mapping[str, Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for path, part in parts.items():
        values = (date.fromisoformat(part.day), part.target, part.run)
        of_part = [pa.scalar(value, field.type) for value, field in zip(values, _OF_PART, strict=True)]
        with store.files.reading(path) as whole, pq.ParquetFile(whole) as file:
            for batch in file.iter_batches():
                columns = [_column(batch, schema.field(n)) for n in range(len(schema) - len(of_part))]
                columns += [pa.repeat(value, batch.num_rows) for value in of_part]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _lived(files: Iterable[LiveFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for each in files:
        with pq.ParquetFile(each.path) as file:
            for batch in file.iter_batches():
                day, run = (pa.repeat(pa.scalar(value), batch.num_rows) for value in (each.day, each.run))
                columns = [_column(batch, schema.field(n)) for n in range(len(schema) - len(_OF_PART))]
                yield pa.RecordBatch.from_arrays([*columns, day, batch.column("target"), run], schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """A file of an earlier version lacks columns, which are null then."""
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    return batch.column(field.name).cast(field.type)
