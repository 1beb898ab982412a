"""Judging traces in bulk on Spark, by the same function that judges them live.

The rows of a sequence are brought together by Spark and sorted; each worker judges its sequences one after
the other and adds them up; only the sums come back. So the work is spread by sequence, and memory does not
depend on the number of sequences.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from amqpspec.conformance.traces.trace import TraceError, TraceRow, jsonl_to_parquet, sequences, trace_file
from amqpspec.conformance.traces.trace_parquet import batch_rows, columns_of, require_schema
from amqpspec.conformance.verdicts.judge import judge as judge_of_suite
from amqpspec.conformance.verdicts.tally import Tally, tally_from_json, tally_to_json
from amqpspec.pipeline.spark_session import failing_in_a_line, spark_session
from amqpspec.pipeline.table import ComplianceTable, Judge, compliance_table

#: About this many octets of Parquet are one task.
OCTETS_PER_TASK = 8 * 1024 * 1024

#: What comes from a partition: one of these.
_ERROR, _PARTS = "error", "parts"


def check_with_spark(paths: Sequence[Path | str], master: str, judge: Judge | None = None) -> ComplianceTable:
    """The compliance table of some traces, made on Spark.

    `paths` are what `read_trace` accepts, on a file system that all workers see; JSON Lines are converted to
    Parquet first, in a temporary directory of this machine. `judge` is the judge of the suite if not given.
    Raises `TraceError` for traces that cannot be read and `PipelineError` if Spark fails.
    """
    judge = judge or judge_of_suite
    with tempfile.TemporaryDirectory(prefix="amqpspec-check-") as directory:
        files = [_as_parquet(trace_file(path), Path(directory) / f"{n}") for n, path in enumerate(paths)]
        with spark_session(master) as spark:
            tally = Tally()
            for partition in _run(spark, files, judge):
                if _ERROR in partition:
                    raise TraceError(partition[_ERROR])
                tally.merge(tally_from_json(partition[_PARTS]))
            return compliance_table(tally)


def _as_parquet(file: Path, directory: Path) -> Path:
    if file.suffix == ".parquet":
        require_schema(file)
        return file.resolve()
    directory.mkdir()
    converted = directory / "trace.parquet"
    jsonl_to_parquet(file, converted)
    return converted


def _run(spark: Any, files: Sequence[Path], judge: Judge) -> list[dict[str, Any]]:
    from pyspark.sql import functions

    octets = sum(file.stat().st_size for file in files)
    tasks = max(spark.sparkContext.defaultParallelism, octets // OCTETS_PER_TASK)
    with failing_in_a_line("the Spark job failed"):
        of: Any = functions  # PySpark's type information lacks arrow_udf
        judged = of.arrow_udf(_judge_partition(judge), "string")
        # Spark takes a percent sign as it is; the files may be of several versions
        read = spark.read.option("mergeSchema", True).parquet(*(f"file://{file}" for file in files))
        columns = columns_of(read.columns, "the traces")
        texts = (
            read.withColumn("source", of.input_file_name())
            .repartition(tasks, "source", "sequence")
            .sortWithinPartitions("source", "sequence", "row")
            # Nondeterministic: it must neither be run twice nor be moved before the sorting.
            .select(judged.asNondeterministic()(of.struct("source", *columns)).alias("parts"))
            .where("parts is not null")
            .collect()
        )
    return [json.loads(row["parts"]) for row in texts]


def _judge_partition(judge: Judge) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """A function over the batches of a sorted partition, in the form of a column: nulls, then at its end the
    sums.

    `mapInArrow` would be the natural form, but PySpark refuses it where pandas is not installed.
    """

    def judge_partition(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        adder = _PartitionAdder(judge)
        unanswered = 0
        for batch in batches:
            # One batch behind, because only what follows tells whether a batch is the last one.
            yield pa.nulls(unanswered, pa.string())
            unanswered = len(batch)
            adder.add(batch)
        if unanswered:
            yield pa.array([None] * (unanswered - 1) + [adder.parts()], pa.string())

    return judge_partition


class _PartitionAdder:
    """Judges the sequences of a partition, whose rows come sorted, and adds them up."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._tally = Tally()
        self._key: tuple[str, str] | None = None
        self._rows: list[TraceRow] = []
        self._error: TraceError | None = None

    def add(self, array: pa.StructArray) -> None:
        if self._error is not None:
            return
        batch = pa.RecordBatch.from_struct_array(array)
        sources = batch.column("source").to_pylist()
        try:
            for source, row in zip(sources, batch_rows(batch, "trace"), strict=True):
                key = (source, row["sequence"])
                if key != self._key:
                    self._judge_rows()
                    self._key = key
                self._rows.append(row)
        except TraceError as error:
            self._error = error

    def _judge_rows(self) -> None:
        rows, self._rows = self._rows, []
        for sequence in sequences(rows):
            self._tally.add(self._judge(sequence))

    def parts(self) -> str:
        """All that was added, as JSON, or the error: thrown, it would be many lines of Java."""
        try:
            if self._error is None:
                self._judge_rows()
        except TraceError as error:
            self._error = error
        if self._error is not None:
            return json.dumps({_ERROR: str(self._error)})
        return json.dumps({_PARTS: tally_to_json(self._tally)})
