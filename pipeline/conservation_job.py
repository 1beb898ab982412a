"""Conservation as a Spark job: `pipeline.judging.conservation` as DataFrames, for runs that do not fit in one process.

The tasks of the first stage read the parts and write their facts; Spark adds these up, brings together what belongs to
one message by one shuffle, and puts it in order; the tasks of the second stage read that. Rows of Spark are handed to
Python as Parquet files, as Spark's own ways of doing so in columns (`mapInArrow`) need pandas. What comes back to the
driver are what is wrong, why something is undecided, and the notes on queues, which every task of the second stage has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace_row import TraceError
from amqpspec.pipeline.judging.connection_facts import facts_of
from amqpspec.pipeline.judging.conservation import (
    MOST_NAMED,
    Conservation,
    Judged,
    add_judged,
    beginning,
    files_of,
    judge_messages,
    only_certain,
    rows_of,
    sequences_of,
    with_bodies,
)
from amqpspec.pipeline.judging.message_facts import SCHEMA, What, batches
from amqpspec.pipeline.judging.queue_notes import ORDER, Added, notes_of
from amqpspec.pipeline.judging.topology import Topology
from amqpspec.pipeline.judging.topology_changes import Change, changes_in
from amqpspec.pipeline.spark_session import failing_in_a_line, spark_session
from amqpspec.pipeline.spark_tasks import run_tasks
from amqpspec.pipeline.store.files import SHARED, StoreError
from amqpspec.pipeline.store.store import Store

#: In the place of a requirement: `message` says how many more violations a task found, which it does not name.
_UNNAMED = "unnamed"


def conservation_with_spark(store: Store, run: str, master: str) -> Conservation:
    """What `conservation_of_run` finds. Raises `StoreError` where the store has no such run or cannot be written,
    `TraceError`, `PipelineError`.
    """
    files = [store.root / file for file in files_of(store, run)]
    folder = store.temporary / f"conservation-{uuid4().hex}"
    try:
        with spark_session(master) as spark, failing_in_a_line("the Spark job failed"):
            found = _with_spark(spark, files, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return with_bodies(only_certain(found, store, run), store, files_of(store, run))


def added_up(facts: Any) -> Any:
    """Facts, DataFrame in, DataFrame out: so many `times`, between `first` and `last`."""
    from pyspark.sql import functions as f

    counted = facts.groupBy(*ORDER).agg(
        f.count("time").alias("times"), f.min("time").alias("first"), f.max("time").alias("last")
    )
    return counted.select(*Added._fields)


def by_message(added: Any) -> Any:
    """What is said of messages, DataFrame in, DataFrame out: what belongs to one is together, in order."""
    return added.where(added.what <= What.SETTLED.value).repartition("message").sortWithinPartitions(*ORDER)


def _with_spark(spark: Any, files: list[Path], folder: Path) -> Conservation:
    from pyspark.sql import functions as f

    facts, messages = folder / "facts", folder / "messages"
    try:
        facts.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made: {error.strerror}") from error
    changes = _whole(run_tasks(spark, files, _changes))
    topology = spark.sparkContext.broadcast(Topology(changes))
    _whole(run_tasks(spark, files, lambda file: _write_facts(file, facts, topology.value)))
    if unseen := [file for file in files if not (facts / file.name).is_file()]:
        raise StoreError(f"{unseen[0]}: what a worker found in it is not here; {SHARED}")
    added = added_up(spark.read.parquet(f"file://{facts}"))
    notes = added.where(added.what > What.SETTLED.value).collect()
    queues = notes_of(Added(*row) for row in notes)
    by_message(added).write.parquet(f"file://{messages}")
    pieces = sorted(messages.glob("*.parquet"))
    known = spark.sparkContext.broadcast(queues)
    judged = run_tasks(spark, pieces, lambda piece: _judged(piece, known.value))
    published = spark.read.parquet(f"file://{messages}").where(f"what = {What.PUBLISHED.value}")
    found = beginning(queues)
    found.messages = published.select(f.count_distinct("message")).head()[0]
    add_judged(found, (each for each in judged if each.requirement != _UNNAMED))
    found.wrong += sum(each.message for each in judged if each.requirement == _UNNAMED)
    return found


def _whole(found: list[Any]) -> list[Any]:
    """Raises what a task gave back as wrong."""
    problem = next((each for each in found if isinstance(each, Exception)), None)
    if problem is not None:
        raise (TraceError if isinstance(problem, TraceError) else StoreError)(str(problem))
    return found


def _changes(file: Path) -> list[Change | Exception]:
    """What a part does to the topology, or what is wrong."""
    try:
        return [*changes_in(file)]
    except TraceError as error:
        return [error]


def _write_facts(file: Path, folder: Path, topology: Topology) -> list[Exception]:
    """The facts of a part as a file; gives what is wrong."""
    try:
        with pq.ParquetWriter(folder / file.name, SCHEMA) as writer:
            for rows in sequences_of(file):
                for batch in batches(facts_of(rows, topology)):
                    writer.write_batch(batch)
    except TraceError as error:
        return [error]
    except (OSError, pa.ArrowException) as error:
        return [StoreError(f"{folder}: cannot be written: {' '.join(str(error).split())}")]
    return []


def _judged(piece: Path, queues: Any) -> list[Judged]:
    """What the second stage says of the messages in a file, of the violations the first ones."""

    def rows() -> Iterator[Added]:
        with pq.ParquetFile(piece) as columns:
            for batch in columns.iter_batches(10_000):
                yield from rows_of(batch)

    found: list[Judged] = []
    wrong = 0
    for each in judge_messages(rows(), queues):
        wrong += bool(each.requirement)
        if not each.requirement or wrong <= MOST_NAMED:
            found.append(each)
    return [*found, Judged(_UNNAMED, "", "", max(wrong - MOST_NAMED, 0), 0.0)]
