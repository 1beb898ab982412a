"""Recordings made of real ones keep their verdicts, and what is planted in them is found and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.store.store import Store, create_store
from benchmarks import bulk
from benchmarks.bulk_recordings import CORPUS, base_of_applications, base_of_searches, generate, passing
from benchmarks.planted import KINDS, OPEN_KINDS, planted_sequences


@pytest.fixture(scope="module")
def base() -> list[list[TraceRow]]:
    return base_of_searches()


@pytest.fixture(scope="module")
def planted() -> dict[str, list[TraceRow]]:
    return planted_sequences(passing(sorted(CORPUS.glob("rabbitmq-4.3-*.parquet"))))


def found(store: Store) -> list[dict[str, Any]]:
    return [
        row
        for part in store.contents().parts
        for row in pq.read_table(store.root / part.judgements).to_pylist()
    ]


def test_copies_keep_their_verdicts(tmp_path: Path) -> None:
    failing = list(sequences(read_trace(CORPUS / "garagemq-search.parquet")))[:3]
    store = create_store(tmp_path / "store")
    assert generate(store, failing, 3 * sum(row["kind"] == "frame" for rows in failing for row in rows)) == 9
    expected = sorted((judge(rows).verdict, judge(rows).frames) for rows in failing for _ in range(3))
    judge_store(store)
    rows = found(store)
    assert sorted((row["verdict"], row["frames"]) for row in rows) == expected
    assert len({row["sequence"] for row in rows}) == 9
    assert sum(part.frames for part in store.contents().parts) == sum(row["frames"] for row in rows)


def test_there_are_violations_of_at_least_twenty_kinds(planted: dict[str, list[TraceRow]]) -> None:
    assert planted.keys() == KINDS.keys() and len(planted) >= 20
    assert len({judge(rows).failures[0].identity for rows in planted.values()}) >= 15


def test_each_planted_violation_is_found_and_nothing_else(
    spark: Any, base: list[list[TraceRow]], planted: dict[str, list[TraceRow]], tmp_path: Path
) -> None:
    store = create_store(tmp_path / "store")
    generate(store, base, 20_000, list(planted.values()), part_rows=8_000)
    summary = judge_store(store, "local[2]")
    assert summary.frames == sum(part.frames for part in store.contents().parts) > 20_000
    blamed = [row for row in found(store) if row["failures"]]
    failed = {row["sequence"]: [each["identity"] for each in row["failures"]] for row in blamed}
    assert failed == {
        f"planted: {kind}": [each.identity for each in judge(rows).failures] for kind, rows in planted.items()
    }
    assert summary.failed == len(planted) and summary.inconclusive == 0


def test_planted_in_recordings_of_applications(spark: Any, tmp_path: Path) -> None:
    connections = base_of_applications()
    open_ones = planted_sequences(connections, OPEN_KINDS)
    assert open_ones.keys() == OPEN_KINDS.keys() and len(open_ones) >= 20
    store = create_store(tmp_path / "store")
    generate(store, connections, 30_000, list(open_ones.values()), part_rows=8_000)
    summary = judge_store(store, "local[2]")
    failed = {row["sequence"]: [each["identity"] for each in row["failures"]] for row in found(store)}
    assert {name: identities for name, identities in failed.items() if identities} == {
        f"planted: {kind}": [each.identity for each in judge(rows).failures] for kind, rows in open_ones.items()
    }
    assert summary.failed == len(open_ones) and summary.inconclusive == 0


def test_the_benchmark_runs_to_its_end() -> None:
    """Spark starts once: what it does with more cores, and with other stores, the tests above show."""
    table = bulk.run((6_000,), ("local[2]", ""), searched=3_000, broker="embedded", seconds=0.3)
    ways = [("applications", "local[2]"), *((kind, "one process") for kind in ("applications", "traffic", "searches"))]
    assert [(row[0], row[4]) for row in table.rows] == ways
    assert all(int(row[2].replace(",", "")) >= 3_000 for row in table.rows)
