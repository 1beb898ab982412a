"""Judging recordings while they arrive: a Structured Streaming query over a folder of trace files.

`amqpspec record --rotate` closes a file every so often; a file counts from the moment on at which it has its name. Its
number in the name says where it belongs: a file that comes before an earlier one waits for that. Spark's checkpoint
holds which files belong to which batch. A batch is a function of its files and of what the batch before it left, and
writes both under its own number, in whole files: when the query was killed in the middle, the batch is done again, and
writes the same. Connections are spread over tasks by their names, which do not change.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.conformance.traces.local_path import not_served
from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace
from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.pipeline.judging.judgement_rows import JUDGEMENTS, judgement_row
from amqpspec.pipeline.judging.live_state import load, save
from amqpspec.pipeline.spark_session import PipelineError, failing_in_a_line, spark_session
from amqpspec.pipeline.spark_tasks import run_tasks
from amqpspec.pipeline.store.files import StoreError, write_whole
from amqpspec.reports.text import plural

#: Tasks of a batch. The number says to which of them a connection belongs, so it must not change while state is kept.
TASKS = 4
#: How often the folder is looked at.
_EVERY = "1 second"
#: Of a batch, so that a backlog is done in pieces.
_MOST_FILES = 100
#: What is wrong where a worker and the driver do not see the same.
_SHARED = "all workers must see the folder under the same path"
_NUMBERED = re.compile(r"(.*?)(\d+)\.jsonl")


@dataclass(frozen=True, slots=True)
class Line:
    """Of what was found: a failure, an error of this suite, or else something that could not be read or judged."""

    text: str
    is_failure: bool
    is_error: bool = False
    #: a failure that fails nothing
    is_accepted: bool = False


#: Is told the number of a batch, and a line for each failure and each problem.
Told = Callable[[int, list[Line]], None]


def live(
    incoming: Path, out: Path, master: str, told: Told, *, until_done: bool = False, most_files: int = _MOST_FILES,
    acceptance: Acceptance | None = None,
) -> None:
    """Judge what arrives in `incoming` and its folders; `until_done`: only what is there, then end.

    `out` gets `judgements/*.parquet` with the columns of a store's judgements and `recording`. Raises `StoreError`,
    `PipelineError`. It goes on where it was when it is called again with the same `out`.
    """
    for path in (incoming, out):
        problem = not_served(path)
        if problem is not None:
            raise StoreError(problem)
    if not incoming.is_dir():
        raise StoreError(f"{incoming}: there is no such folder")
    out.mkdir(parents=True, exist_ok=True)
    with spark_session(master) as spark:
        from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

        schema = StructType([
            StructField("path", StringType()), StructField("modificationTime", TimestampType()),
            StructField("length", LongType()), StructField("content", BinaryType()),
        ])  # fmt: skip
        files = (
            spark.readStream.format("binaryFile")
            .schema(schema)
            .option("pathGlobFilter", "*.jsonl")
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", most_files)
            .load(f"file://{incoming.resolve()}")
            .select("path")  # what is in them is read by the tasks
        )
        batches = _Batches(spark, out.resolve(), told, acceptance or Acceptance())
        writer = (
            files.writeStream.foreachBatch(batches.carry_out)
            .option("checkpointLocation", f"file://{out.resolve() / 'checkpoint'}")
            .trigger(**({"availableNow": True} if until_done else {"processingTime": _EVERY}))
        )
        try:
            with failing_in_a_line(f"the query of {out} failed"):
                _run(writer)
        except PipelineError:
            if batches.error is None:
                raise
            raise batches.error from None  # what a batch itself says


def _run(writer: Any) -> None:
    """Carry out a query to its end. Raises what has ended it."""
    query = writer.start()
    ended = _Ended(query)
    try:
        ended.wait()
    finally:
        query.stop()
        ended.join()


class _Ended(threading.Thread):
    """Waits for the end of a query, so that the thread that signals come to is in no call of Java when they do."""

    def __init__(self, query: Any) -> None:
        super().__init__(daemon=True)
        self._query, self._done = query, threading.Event()
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._query.awaitTermination()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> None:
        """Raises what has ended the query."""
        self._done.wait()
        if self._error is not None:
            raise self._error


class _Batches:
    def __init__(self, spark: Any, out: Path, told: Told, acceptance: Acceptance) -> None:
        self._spark, self._out, self._told, self._acceptance = spark, out, told, acceptance
        self.error: Exception | None = None

    def carry_out(self, arrived: Any, number: int) -> None:
        """Judge the files of a batch, and those that waited for them."""
        try:
            paths = [unquote(urlparse(row["path"]).path) for row in arrived.collect()]
            ready, waiting = in_order(*_waiting(self._out, number), paths)
            work = [(task, number, ready) for task in range(TASKS)]
            out, acceptance = self._out, self._acceptance

            def judge_share(share: tuple[int, int, Sequence[str]]) -> list[Line]:
                return _judge_share(out, acceptance, *share)

            # what cannot be read each task meets, what cannot be judged the one that it belongs to
            lines = list(dict.fromkeys(run_tasks(self._spark, work, judge_share)))
            for task in range(TASKS):
                _require_state(out, number, task, "is missing, though a worker says that it wrote it")
            write_whole(out / "batches" / f"{number}.json", lambda file: file.write_text(json.dumps(waiting)))
            for old in range(TASKS):
                _state(out, number - 2, old).unlink(missing_ok=True)
            self._told(number, lines)
        except (StoreError, PipelineError, TraceError) as error:
            self.error = error
            raise


def _waiting(out: Path, number: int) -> tuple[list[str], dict[str, int]]:
    """What the batch before left: files that came too early, and the number of the next file of each recording."""
    file = out / "batches" / f"{number - 1}.json"
    if not file.exists():
        return [], {}
    kept = json.loads(file.read_text())
    return kept["early"], kept["next"]


def in_order(
    early: Sequence[str], following: dict[str, int], arrived: Sequence[str]
) -> tuple[list[str], dict[str, Any]]:
    """The files that can be judged now, in their order, and what waits: early ones, and which number is to come.

    Files are numbered from 1, by the digits before `.jsonl`; one without a number is a recording of its own.
    """
    following = dict(following)
    ready: list[str] = []
    left: list[str] = []
    numbered: list[tuple[str, int, str]] = []
    for path in {*early, *arrived}:
        found = _NUMBERED.fullmatch(path)
        if found is None:
            ready.append(path)
        else:
            numbered.append((found[1], int(found[2]), path))
    for recording, number, path in sorted(numbered):
        if number == following.get(recording, 1):
            ready.append(path)
            following[recording] = number + 1
        elif number > following.get(recording, 1):
            left.append(path)
    return sorted(ready, key=_place), {"early": sorted(left), "next": following}


def _place(path: str) -> tuple[str, int]:
    found = _NUMBERED.fullmatch(path)
    return (found[1], int(found[2])) if found else (path, 0)


def _judge_share(out: Path, acceptance: Acceptance, task: int, number: int, paths: Sequence[str]) -> list[Line]:
    """Judge the connections that belong to a task; gives a line for each failure and for each file that is broken."""
    if not out.is_dir():
        raise StoreError(f"{out}: {socket.gethostname()} sees no such folder; {_SHARED}")
    if (out / "batches" / f"{number - 1}.json").exists():
        _require_state(out, number - 1, task, "what the batch before left is missing")
    state = load(_state(out, number - 1, task))
    lines: list[Line] = []
    found: list[dict[str, Any]] = []
    for path in paths:
        recording = _place(path)[0]
        try:
            for start, judgement in state.take(recording, _own(read_trace(path), task)):
                row = judgement_row(judgement, start, 0, "", {})
                found.append({"recording": recording, "target": start["target"], **row})
                if judgement.repeats is not None:
                    continue  # one that only repeats another shows nothing new
                where = f"in {start['sequence']} of {recording}"
                if judgement.suite_error is not None:
                    said = f"{start['target']}: {judgement.suite_error} {where}; please send it to the project"
                    lines.append(Line(said, is_failure=False, is_error=True))
                elif judgement.ended_by == judgement.reason is not None:
                    lines.append(Line(judgement.reason, is_failure=False))
                broker = (start.get(name) for name in ("target", "product", "version", "dialect"))
                target = TargetDescription(*(str(each or "") for each in broker))
                for each in judgement.failures:
                    why = acceptance.why(each, target)
                    said = f"{start['target']}: {each.identity} {where}: {each.observed}"
                    said += f" (accepted: {why})" if why else ""
                    lines.append(Line(said, is_failure=why is None, is_accepted=why is not None))
        except TraceError as error:
            lines.append(Line(str(error), is_failure=False))
    schema = pa.schema([pa.field("recording", pa.string()), pa.field("target", pa.string()), *JUDGEMENTS])
    if found:
        table = pa.Table.from_pylist(found, schema=schema)
        write_whole(out / "judgements" / f"{number:08}-{task}.parquet", lambda file: pq.write_table(table, file))
    save(state, _state(out, number, task))
    return lines


def _state(out: Path, number: int, task: int) -> Path:
    return out / "state" / f"{number}-{task}.pickle"


def _require_state(out: Path, number: int, task: int, problem: str) -> None:
    if not _state(out, number, task).is_file():
        raise StoreError(f"{_state(out, number, task)}: {problem}; {_SHARED}")


def left_undone(incoming: Path, out: Path) -> list[str]:
    """What waits for more to come, after the last batch: one line for each recording. Raises `StoreError`."""
    others = [f"{file}: is not read, only *.jsonl is" for file in sorted(incoming.rglob("*.parquet"))]
    done = [int(file.stem) for file in (out / "batches").glob("*.json")]
    if not done:
        return [*others, f"{incoming}: no trace file (*.jsonl) has come, so nothing was judged"]
    waiting, following = _waiting(out, max(done) + 1)
    lines = [f"{path}: waits for number {following.get(_place(path)[0], 1)} of its recording" for path in waiting]
    open_ones: Counter[str] = Counter()
    for task in range(TASKS):
        open_ones.update(recording for recording, _ in load(_state(out, max(done), task)).starts)
    return (
        others
        + lines
        + [
            f"{recording}: {plural(many, 'sequence')} without an end, not judged yet"
            for recording, many in open_ones.items()
        ]
    )


def _own(rows: Iterator[TraceRow], task: int) -> Iterator[TraceRow]:
    for row in rows:
        if crc32(row["sequence"].encode("utf-8", "surrogatepass")) % TASKS == task:
            yield row
