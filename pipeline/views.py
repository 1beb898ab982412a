"""A store in DuckDB or in Spark: its judgements, and all tables as SQL views."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from amqpspec.conformance.traces.trace_parquet import SCHEMA
from amqpspec.pipeline import tables
from amqpspec.pipeline.duckdb_source import load_rows
from amqpspec.pipeline.judging.judged_parts import judged_parts
from amqpspec.pipeline.judging.judgement_rows import JUDGEMENTS
from amqpspec.pipeline.store.any_files import AddressedFiles
from amqpspec.pipeline.store.live_files import LiveFile, live_files
from amqpspec.pipeline.store.parts import JUDGEMENTS as JUDGED
from amqpspec.pipeline.store.parts import TRACES, Part
from amqpspec.pipeline.store.store import Store, open_store

#: By their names in SQL and on the command line.
TABLES: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "compliance": tables.compliance,
        "coverage": tables.coverage,
        "failures_by_identity": tables.failures_by_identity,
        "latency": tables.latency,
        "flaky": tables.flaky,
        "regressed": tables.regressed,
        "said": tables.said,
        "failures": tables.failures,
        "measurements": tables.measurements,
    }
)
DIFFERENCE = "difference"

_PARTITIONS = "day date, target string, run string"
_NAMES = {pa.string(): "string", pa.int64(): "bigint", pa.int32(): "int", pa.float64(): "double"}
_NAMES |= {pa.bool_(): "boolean", pa.binary(): "binary"}


def read_judgements(engine: Any, store: Store | Path | str) -> Any:
    """A row for each sequence of the store that was judged, with `day`, `target` and `run`. `engine`: a connection of
    DuckDB, for a relation, or a session of Spark, for a DataFrame.

    What cannot be read is warned of, and left out.
    """
    store = _store(store)
    contents = store.contents()
    found = judged_parts(store, contents.parts)
    for line in [*contents.broken, *found.broken]:
        warnings.warn(line, stacklevel=2)
    return judgements_of(engine, store, found.judged)


def judgements_of(engine: Any, store: Store, judged: Iterable[Part]) -> Any:
    """The same of parts that were judged (`judged_parts`)."""
    files, lived = {part.judgements: part for part in judged}, list(live_files(store))
    if not is_spark(engine):
        return load_rows(engine, store, JUDGED, files, JUDGEMENTS, lived)
    found = _with_spark(engine, store, JUDGED, files, JUDGEMENTS)
    for each in lived:
        found = found.unionByName(_lived_with_spark(engine, each))
    return found


def read_rows(engine: Any, store: Store | Path | str) -> Any:
    """Every row of the recordings, as a relation or a DataFrame. A start row's `target` and `run` are those of the
    folder. DuckDB makes a copy of them all, so Spark is for large stores.
    """
    store = _store(store)
    # the label of a start row is that of the folder, if the import gave no other
    columns = pa.schema([field for field in SCHEMA if field.name != "target"])
    found = {each.path for each in store.files.listed(TRACES)}
    there = [part for part in store.contents().parts if part.trace in found]
    return _read(engine, store, TRACES, {part.trace: part for part in there}, columns)


def register_views(engine: Any, store: Store | Path | str) -> None:
    """Makes the store's `judgements`, its recorded `trace_rows`, and every table in `TABLES` views of the engine."""
    judgements = read_judgements(engine, store)
    views = {"judgements": judgements, "trace_rows": read_rows(engine, store)}
    views |= {name: table(judgements) for name, table in TABLES.items()}
    for name, view in views.items():
        if is_spark(engine):
            view.createOrReplaceTempView(name)
        else:
            view.create_view(name)


def is_spark(engine: Any) -> bool:
    """Is it a session of Spark, and no connection of DuckDB?"""
    return hasattr(engine, "sparkContext")


def _store(store: Store | Path | str) -> Store:
    return store if isinstance(store, Store) else open_store(store)


def _read(engine: Any, store: Store, folder: str, files: Mapping[str, Part], schema: pa.Schema) -> Any:
    return (_with_spark if is_spark(engine) else load_rows)(engine, store, folder, files, schema)


def _with_spark(spark: Any, store: Store, folder: str, files: Mapping[str, Part], schema: pa.Schema) -> Any:
    described = ", ".join([*(f"`{field.name}` {_type(field.type)}" for field in schema), _PARTITIONS])
    if not files:
        return spark.createDataFrame([], described)
    if isinstance(store.files, AddressedFiles):
        from amqpspec.pipeline.spark_source import read_files

        return read_files(spark, store.files, files, described, schema)
    # files of an earlier version lack columns, which are null then
    reader = spark.read.schema(described).option("basePath", _path(store.root / folder))
    return reader.parquet(*(_path(store.root / file) for file in files))


def _lived_with_spark(spark: Any, file: LiveFile) -> Any:
    from pyspark.sql import functions as f

    described = ", ".join([*(f"`{field.name}` {_type(field.type)}" for field in JUDGEMENTS), "target string"])
    read = spark.read.schema(described).parquet(_path(file.path))
    return read.withColumn("day", f.lit(file.day)).withColumn("run", f.lit(file.run))


def _path(file: Path) -> str:
    """What Spark takes for a local file: a percent sign in it stands for itself."""
    return f"file://{file}"


def _type(kind: pa.DataType) -> str:
    """The name of a type in Spark's SQL."""
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_type(field.type)}' for field in kind)}>"
    return _NAMES[kind]
