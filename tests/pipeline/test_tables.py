"""The tables: what each counts, from DataFrames and as views of a store."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpspec.command_line import main
from amqpspec.model.promises.registry import requirements
from amqpspec.pipeline import tables
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.judging.judgement_rows import JUDGEMENTS
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store, create_store
from amqpspec.pipeline.views import DIFFERENCE, TABLES, read_judgements, register_views
from tests.pipeline.stand_in import judge, write_trace

LOST = "ACK-002|missing frame|basic.deliver"
COUNT = "QUEUE-026|quorum-consumer-count"


def sequence(name: str, verdict: str = "pass", *failures: str, **more: Any) -> dict[str, Any]:
    """A row of judgements; all of one broker."""
    blamed = {failure.partition("|")[0] for failure in failures}
    said = [{"requirement": id, "verdict": "fail", "as_known": "fail", "exercised": 1} for id in sorted(blamed)]
    said.append({"requirement": "ACK-001", "verdict": "pass", "as_known": "pass", "exercised": 3})
    return {
        "sequence": name,
        "first_row": 1,
        "product": "RabbitMQ",
        "version": "4.3.6",
        "dialect": "rabbitmq-4.3",
        "commands": f"digest of {name}",
        "verdict": verdict,
        "frames": 10,
        "said": said,
        "failures": [
            {"identity": each, "requirement": each.partition("|")[0], "defect": "", "as_known": False,
             "strength": "promised", "command": "a.1 basic.get q", "observed": "nothing", "allowed": [], "state": []}
            for each in failures
        ],
        "measurements": [],
        "latencies": [],
    } | more  # fmt: skip


RUNS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("2026-11-01", "first"): [
        sequence("s 1"),
        sequence("s 2", "fail", LOST),
        sequence("s 3", latencies=[{"what": "confirm", "seconds": 0.001, "times": 98}]),
        sequence("s 4", "inconclusive", said=[
            {"requirement": "", "verdict": "inconclusive", "as_known": "inconclusive", "exercised": 0}
        ]),
        sequence("cannot be read", "inconclusive", problem="torn", said=[], latencies=None, failures=None),
        sequence("again", "fail", COUNT, repeats="s 2"),
    ],
    ("2026-11-03", "second"): [
        sequence("s 2"),
        sequence("s 9", "fail", LOST, COUNT),
        sequence("s 10", latencies=[{"what": "confirm", "seconds": 0.5, "times": 2}]),
        sequence("s 11", measurements=[
            {"requirement": "TIMEOUT-031", "method": "basic.cancel", "time": 2.0, "nominal": 1.0, "least": 0.0,
             "most": late, "tick": 0.0, "expected": True} for late in (0.002, 0.004, 0.006)
        ]),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = create_store(tmp_path_factory.mktemp("tables") / "store")
    for (day, run), rows in RUNS.items():
        part = Part(run, day, "docker:rabbitmq:4.3", run, 1, 10 * len(rows), len(rows), 100)
        for path, content in ((part.trace, None), (part.judgements, rows)):
            (store.root / path).parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                pq.write_table(pa.Table.from_pylist(content, schema=JUDGEMENTS), store.root / path)
        store.commit([part], judgements={part.id: part.id})
    return store


@pytest.fixture(scope="module")
def judgements(spark: Any, store: Store) -> Any:
    return read_judgements(spark, store).cache()


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in (table.select(*columns) if columns else table).collect()]


def test_compliance_is_by_requirement_broker_and_day(judgements: Any) -> None:
    table = tables.compliance(judgements)
    assert rows(table, "requirement", "day", "verdict", "sequences", "exercised", "fail", "pass") == [
        ("ACK-001", date(2026, 11, 1), "pass", 3, 9, 0, 3),
        ("ACK-001", date(2026, 11, 3), "pass", 4, 12, 0, 4),
        ("ACK-002", date(2026, 11, 1), "fail", 1, 1, 1, 0),
        ("ACK-002", date(2026, 11, 3), "fail", 1, 1, 1, 0),
        ("QUEUE-026", date(2026, 11, 3), "fail", 1, 1, 1, 0),
    ]
    assert rows(table, "target", "version")[0] == ("docker:rabbitmq:4.3", "4.3.6")


def test_the_worst_verdict_stands_for_several(spark: Any, judgements: Any) -> None:
    mixed = sequence("x", said=[
        {"requirement": id, "verdict": verdict, "as_known": known, "exercised": 0}
        for id, verdict, known in (
            ("A", "pass", "pass"), ("A", "fail", "pass"), ("A", "inconclusive", "inconclusive"),
            ("B", "not applicable", "not applicable"), ("B", "not exercised", "not exercised"),
        )
    ])  # fmt: skip
    row = {**mixed, "day": date(2026, 1, 1), "target": "t", "run": "r"}
    made = spark.createDataFrame([row], judgements.schema)
    assert rows(tables.compliance(made), "requirement", "verdict", "as_known") == [
        ("A", "fail", "inconclusive"),
        ("B", "not exercised", "not exercised"),
    ]


def test_coverage_has_every_requirement(judgements: Any) -> None:
    table = {row[0]: row[1:] for row in rows(tables.coverage(judgements), "requirement", "sequences", "exercised")}
    assert table.keys() == requirements().keys()
    assert table["ACK-001"] == (7, 21) and table["ACK-002"] == (2, 2) and table["QOS-001"] == (0, 0)


def test_failures_have_the_days_on_which_they_were_first_and_last_seen(judgements: Any) -> None:
    table = tables.failures_by_identity(judgements)
    found = rows(table, "identity", "first_seen", "last_seen", "runs", "sequences", "run", "sequence")
    first, last = date(2026, 11, 1), date(2026, 11, 3)
    assert found == [(LOST, first, last, 2, 2, "first", "s 2"), (COUNT, last, last, 1, 1, "second", "s 9")]
    assert rows(table, "versions", "as_known", "observed")[0] == (["4.3.6"], False, "nothing")


def test_latencies_are_percentiles(judgements: Any) -> None:
    table = tables.latency(judgements)
    first, last = date(2026, 11, 1), date(2026, 11, 3)
    assert rows(table, "what", "day", "times", "p50", "p99", "most") == [
        ("confirm", first, 98, 0.001, 0.001, 0.001),
        ("confirm", last, 2, 0.5, 0.5, 0.5),
        ("timeout", last, 3, 0.004, pytest.approx(0.00596), 0.006),
    ]
    both = tables.latency(judgements.drop("day").selectExpr("*", "date'2026-11-01' as day"))
    assert rows(both.where("what = 'confirm'"), "times", "p50", "p90", "p999") == [(100, 0.001, 0.001, 0.5)]


def test_what_the_same_commands_show_at_one_time_only_is_flaky(judgements: Any) -> None:
    table = tables.flaky(judgements)
    assert rows(table, "identity", "failed", "tried", "rate", "run") == [(LOST, 1, 2, 0.5, "first")]


def test_recordings_of_applications_repeat_nothing(judgements: Any) -> None:
    from pyspark.sql import functions as f

    assert rows(tables.flaky(judgements.withColumn("mode", f.lit("open"))), "identity") == []


def test_the_difference_of_two_runs(judgements: Any) -> None:
    assert rows(tables.difference(judgements, "first", "second")) == [
        ("failure", COUNT, "not seen", "seen"),
        ("requirement", "QUEUE-026", None, "fail"),
    ]
    assert rows(tables.difference(judgements, "first", "first")) == []


def test_every_table_is_a_view(spark: Any, store: Store, judgements: Any) -> None:
    register_views(spark, store)
    for name, table in TABLES.items():
        assert spark.table(name).columns == table(judgements).columns
    worst = spark.sql("select distinct requirement from compliance where verdict = 'fail' order by 1")
    assert rows(worst) == [("ACK-002",), ("QUEUE-026",)]
    assert rows(spark.sql("select count(*) from judgements where problem is not null")) == [(1,)]


def test_a_store_of_nothing_has_empty_tables(spark: Any, tmp_path: Path) -> None:
    empty = read_judgements(spark, create_store(tmp_path / "store"))
    for table in TABLES.values():
        assert rows(table(empty)) == []


def test_the_recorded_rows_are_a_view_too(spark: Any, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    add_trace(store, write_trace(tmp_path / "t.jsonl", "a=b/c", {"s": [(1, b"x")]}), day="2026-11-01", run="7")
    judge_store(store, judge=judge)
    register_views(spark, store)
    assert rows(spark.sql("select day, target, run, method from trace_rows where kind = 'frame'")) == [
        (date(2026, 11, 1), "a=b/c", "7", "basic.deliver")
    ]
    (found,) = rows(spark.table("judgements"), "sequence", "target", "run", "version", "verdict")
    assert found == ("s", "a=b/c", "7", "1", "pass")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_the_command_writes_a_table(spark: Any, store: Store, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"table{suffix}"
    assert main(["pipeline", "table", "failures_by_identity", str(store.root), "--out", str(out)]) == 0
    if suffix == ".parquet":
        assert pq.read_table(out).column("identity").to_pylist() == [LOST, COUNT]
    elif suffix == ".json":
        assert [json.loads(line)["identity"] for line in out.read_text().splitlines()] == [LOST, COUNT]
    else:
        assert out.read_text().splitlines()[1].startswith(f'"{LOST}","ACK-002"')


def test_the_command_prints_a_table(spark: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pipeline", "table", "difference", str(store.root), "--before", "first", "--after", "second"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "what\tname\tbefore\tafter",
        f"failure\t{COUNT}\tnot seen\tseen",
        "requirement\tQUEUE-026\t\tfail",
    ]
    assert main([*command[:-1], "third"]) == 2
    assert capsys.readouterr().err == "amqpspec: the store has no run 'third', but first, second\n"
    assert main(["pipeline", "table", "prices", str(store.root)]) == 2
    assert "there is no table 'prices', but compliance, coverage" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["pipeline", "table", "--help"])
    assert ", ".join([*TABLES, DIFFERENCE]) in " ".join(capsys.readouterr().out.split())
