"""What recordings of an application show of the changes between two dialects: traces, network captures, or a store.

They are read in this process, or spread over the tasks of a Spark job, a file in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from amqpspec.conformance.recording.capture import CaptureOptions, capture_rows, is_capture
from amqpspec.conformance.recording.connection_recording import UNKNOWN
from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace
from amqpspec.conformance.upgrade.application import Application, Reader
from amqpspec.conformance.upgrade.changes import changes_between
from amqpspec.conformance.upgrade.comparison import own_dialect
from amqpspec.conformance.upgrade.meeting_rules import rules_of
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import dialect_named

#: The file that a folder has which is a store.
_STORE = "store.json"


def files_of(paths: Iterable[Path]) -> list[Path]:
    """The recordings themselves: of a store its parts. Raises `TraceError`, and `StoreError` for a broken store."""
    found: list[Path] = []
    for path in paths:
        if (path / _STORE).is_file():
            from amqpspec.pipeline.store.store import open_store

            found += [path / part.trace for part in open_store(path).contents().parts]
        else:
            found.append(path)
    if not found:
        raise TraceError(f"{', '.join(map(str, paths))}: the store holds no recording")
    return found


def rows_of(path: Path) -> Iterator[TraceRow]:
    """The rows of a trace or capture. Raises `TraceError`."""
    if is_capture(path):
        return capture_rows(path, CaptureOptions(), lambda line: None)
    return read_trace(path)


def recorded_dialect(files: Sequence[Path]) -> str:
    """The dialect of the first broker that they are of. Raises `TraceError` if they hold nothing."""
    silent = None  # a connection on which the broker did not say what it is, such as of a check that the port is open
    for path in files:
        for row in rows_of(path):
            if row["kind"] == "start":
                found = own_dialect(_target(row["product"], row["version"], row["dialect"]))
                if row["product"] != UNKNOWN:
                    return found
                silent = silent or found
    if silent is not None:
        return silent
    raise TraceError(f"{', '.join(map(str, files))}: no sequence in it, so there is nothing to say of it")


def dialects_of(application: Application) -> list[str]:
    """Those of all brokers that were recorded."""
    return sorted({own_dialect(_target(*each)) for each in application.brokers})


def _target(product: str, version: str, dialect: str) -> TargetDescription:
    return TargetDescription("", product, version, dialect)


def read_recordings(files: Sequence[Path], one: str, other: str, master: str | None = None) -> Application:
    """What they show under the changes from the dialect of that name to the other. `master`: of Spark; None: in this
    process. Raises `TraceError`, and `PipelineError` where Spark fails.
    """
    application = Application()
    if master is None:
        for path in files:
            application.merge(_read(path, one, other))
        return _without_silent(application)
    from amqpspec.pipeline.spark_session import spark_session
    from amqpspec.pipeline.spark_tasks import run_tasks

    def read(path: Path) -> list[Application | str]:
        try:
            return [_read(path, one, other)]
        except TraceError as error:
            return [str(error)]

    with spark_session(master) as spark:
        for found in run_tasks(spark, [path.absolute() for path in files], read):
            if isinstance(found, str):
                raise TraceError(found)
            application.merge(found)
    return _without_silent(application)


def _without_silent(application: Application) -> Application:
    """Of brokers that have not said what they are nothing is told, if another one has."""
    application.brokers = {each for each in application.brokers if each[0] != UNKNOWN} or application.brokers
    return application


def _read(path: Path, one: str, other: str) -> Application:
    reader = Reader(rules_of(changes_between(dialect_named(one), dialect_named(other))))
    try:
        return reader.rows(rows_of(path))
    except TraceError as error:
        raise error if str(error).startswith(str(path)) else TraceError(f"{path}: {error}") from error
