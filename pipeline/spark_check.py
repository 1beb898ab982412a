"""Judging traces in bulk on Spark, by the same function that judges them live.

The rows of a sequence are brought together by Spark and sorted; each worker judges its sequences one after
the other and adds them up; only the sums come back. So the work is spread by sequence, and memory does not
depend on the number of sequences.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from conformance.trace import TraceError, TraceRow, jsonl_to_parquet, sequences, trace_file
from conformance.trace_parquet import SCHEMA, batch_rows, require_schema
from pipeline.spark_session import PipelineError, reason, spark_session
from pipeline.table import PART_SCHEMA, ComplianceTable, Judge, Part, TableBuilder

#: About this many octets of Parquet are one task.
OCTETS_PER_TASK = 8 * 1024 * 1024

_ERROR = "error"


def check_with_spark(paths: Sequence[Path | str], master: str, judge: Judge | None = None) -> ComplianceTable:
    """The compliance table of some traces, made on Spark.

    `paths` are what `read_trace` accepts, on a file system that all workers see; JSON Lines are converted to
    Parquet first, in a temporary directory of this machine. `judge` is the judge of the suite if not given.
    Raises `TraceError` for traces that cannot be read and `PipelineError` if Spark fails.
    """
    if judge is None:
        from conformance.judge import judge as judge_of_suite

        judge = judge_of_suite
    with tempfile.TemporaryDirectory(prefix="amqpspec-check-") as directory:
        files = [_as_parquet(trace_file(path), Path(directory) / f"{n}") for n, path in enumerate(paths)]
        with spark_session(master) as spark:
            builder = TableBuilder()
            for part in _run(spark, files, judge):
                if part.kind == _ERROR:
                    raise TraceError(part.text)
                builder.merge(part)
            return builder.table()


def _as_parquet(file: Path, directory: Path) -> Path:
    if file.suffix == ".parquet":
        require_schema(file)
        return file.resolve()
    directory.mkdir()
    converted = directory / "trace.parquet"
    jsonl_to_parquet(file, converted)
    return converted


def _run(spark: Any, files: Sequence[Path], judge: Judge) -> list[Part]:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import input_file_name
    from pyspark.sql.pandas.types import from_arrow_schema

    octets = sum(file.stat().st_size for file in files)
    tasks = max(spark.sparkContext.defaultParallelism, octets // OCTETS_PER_TASK)
    try:
        rows = (
            spark.read.parquet(*(file.as_uri() for file in files))
            .select(*SCHEMA.names)
            .withColumn("source", input_file_name())
            .repartition(tasks, "source", "sequence")
            .sortWithinPartitions("source", "sequence", "row")
        )
        found = rows.mapInArrow(_judge_partition(judge), from_arrow_schema(PART_SCHEMA)).collect()
    except PySparkException as error:
        raise PipelineError(f"the Spark job failed: {reason(error)}") from error
    return [Part(**row.asDict()) for row in found]


def _judge_partition(judge: Judge) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        builder = TableBuilder()
        try:
            for _, rows in groupby(_sourced_rows(batches), key=lambda pair: (pair[0], pair[1]["sequence"])):
                for sequence in sequences(row for _, row in rows):
                    builder.add(judge(sequence))
        except TraceError as error:
            # As a value: an exception would come back as many lines of Java.
            builder.merge(Part(_ERROR, "", "", "", "", 0, 0, 0, "", str(error)))
        yield builder.parts()

    return judge_partition


def _sourced_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, TraceRow]]:
    for batch in batches:
        for source, row in zip(batch.column("source").to_pylist(), batch_rows(batch, "trace"), strict=True):
            yield source, row
