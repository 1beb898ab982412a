"""Recorded lockstep traces of fixed lengths, kept outside the project between runs.

`long`: one sequence of the workload. `many`: sequences of the search, as `amqpspec run` makes them, with their
deliberate mistakes. Shorter ones are the beginnings of the longest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, jsonl_to_parquet, read_trace, sequences
from amqpspec.conformance.traces.trace_row import row_line
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from benchmarks.workload import VERSION, Workload

KINDS = ("long", "many")
LENGTHS = (10_000, 30_000, 100_000)
#: Sequences that one search of a recording makes.
SEARCHED = 500
#: About what a sequence of the search has.
FRAMES_OF_ONE = 200


def cache_directory() -> Path:
    """Where recordings are kept: below XDG_CACHE_HOME, or ~/.cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "amqpspec-benchmarks"


def forget() -> None:
    """Delete all recordings."""
    for path in cache_directory().glob("v*-*"):
        path.unlink()


def recording(kind: str, length: int, form: str, longest: int) -> Path:
    """The recording of this kind with at least `length` frames, as "jsonl" or "parquet"; made if there is none.

    One that is not the `longest` is its beginning.
    """
    path = cache_directory() / f"v{VERSION}-{kind}-{length}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # under another name until it is complete
        unfinished = path.with_suffix(".part")
        if length == longest:
            (record_long if kind == "long" else _record_many)(unfinished, length)
        else:
            rows = read_trace(recording(kind, longest, "jsonl", longest))
            (_cut_long if kind == "long" else _cut_many)(rows, length, unfinished)
        unfinished.replace(path)
    if form == "jsonl":
        return path
    columns = path.with_suffix(".parquet")
    if not columns.exists() or columns.stat().st_mtime < path.stat().st_mtime:
        jsonl_to_parquet(path, columns)
    return columns


def _target(broker: EmbeddedBroker) -> TargetUnderTest:
    described = TargetDescription("embedded", "amqpspec", "", DEFAULT_DIALECT.name)
    return TargetUnderTest(broker.address, described, deadline=30.0)


def record_long(path: Path, length: int) -> None:
    """One sequence of the workload, of so many frames or a few more."""
    with EmbeddedBroker() as broker, TraceWriter(path) as trace, Session(_target(broker), trace, "long") as session:
        for number, command in enumerate(Workload(DEFAULT_DIALECT).commands()):
            session.run(command)
            if number % 100 == 0 and session.judge.judgement().frames >= length:
                return


def _record_many(path: Path, length: int) -> None:
    # a run gives each of its sequences a name of its own, so the parts are put together under new ones
    with EmbeddedBroker() as broker, path.open("wb") as file:
        recorded = 0
        for seed in count(1):
            part = path.with_suffix(".one")
            with TraceWriter(part) as trace:
                sequences_of_one = min(SEARCHED, length // FRAMES_OF_ONE + 1)
                options = RunOptions(only=("none",), seed=seed, sequences=sequences_of_one)
                Runner(_target(broker), trace, options).run()
            for sequence in sequences(read_trace(part)):
                if sequence[-1].get("verdict") != "pass":
                    continue  # a failure ends judging, so the rest of it would cost nothing
                for row in sequence:
                    row["sequence"] = f"{row['sequence']} of seed {seed}"
                    file.write(row_line(row))
                    recorded += row["kind"] == "frame"
            part.unlink()
            if recorded >= length:
                return


def _cut_long(rows: Iterator[TraceRow], length: int, path: Path) -> None:
    """Up to the first end of a barrier after so many frames."""
    frames = 0
    with path.open("wb") as file:
        for row in rows:
            file.write(row_line(row))
            frames += row["kind"] == "frame"
            if frames >= length and row["kind"] == "mark" and row["mark"] == "quiescent":
                break
        end = TraceRow(kind="end", sequence="long", verdict="pass", failures=[], exercised={}, reason=None)
        file.write(row_line(end))


def _cut_many(rows: Iterator[TraceRow], length: int, path: Path) -> None:
    frames = 0
    with path.open("wb") as file:
        for sequence in sequences(rows):
            for row in sequence:
                file.write(row_line(row))
                frames += row["kind"] == "frame"
            if frames >= length:
                return
