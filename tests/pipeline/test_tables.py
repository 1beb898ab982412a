"""The tables: what each counts, from DataFrames and as views of a store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
from amqpspec.pipeline.duckdb_source import duckdb_connection
from amqpspec.pipeline.judging.judged_parts import write_judgements
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


RUNS: dict[tuple[str, ...], list[dict[str, Any]]] = {
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


TARGET = "docker:rabbitmq:4.3"


def made(folder: Path, runs: Mapping[tuple[str, ...], list[dict[str, Any]]]) -> Store:
    """A store of judgements, by day, run, and target where that is another one."""
    store = create_store(folder)
    for (day, run, *target), content in runs.items():
        part = Part("-".join((day, run, *target)), day, target[0] if target else TARGET, run, 1, 10, len(content), 100)
        (store.root / part.trace).parent.mkdir(parents=True, exist_ok=True)
        judged = write_judgements(store, part, pa.Table.from_pylist(content, schema=JUDGEMENTS))
        store.commit([part], judgements={part.id: judged.judged})
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return made(tmp_path_factory.mktemp("tables") / "store", RUNS)


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What both engines say must be the same: each table is one text of SQL for both."""
    if request.param == "spark":
        yield request.getfixturevalue("spark")
        return
    with duckdb_connection() as connection:
        yield connection


@pytest.fixture(scope="module")
def judgements(engine: Any, store: Store) -> Any:
    return read_judgements(engine, store)


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    chosen = table.select(*columns) if columns else table
    return [tuple(row) for row in (chosen.collect() if hasattr(table, "sparkSession") else chosen.fetchall())]


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


def test_the_worst_verdict_stands_for_several(engine: Any, tmp_path: Path) -> None:
    mixed = sequence("x", said=[
        {"requirement": id, "verdict": verdict, "as_known": known, "exercised": 0}
        for id, verdict, known in (
            ("A", "pass", "pass"), ("A", "fail", "pass"), ("A", "inconclusive", "inconclusive"),
            ("B", "not applicable", "not applicable"), ("B", "not exercised", "not exercised"),
        )
    ])  # fmt: skip
    judgements = read_judgements(engine, made(tmp_path / "store", {("2026-01-01", "r"): [mixed]}))
    assert rows(tables.compliance(judgements), "requirement", "verdict", "as_known") == [
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


def test_percentiles_of_a_day_are_those_of_all_its_runs(engine: Any, tmp_path: Path) -> None:
    runs = {("2026-11-01", run): rows for (_, run), rows in RUNS.items()}
    table = tables.latency(read_judgements(engine, made(tmp_path / "store", runs)))
    assert rows(table, "what", "times", "p50", "p90", "p999")[0] == ("confirm", 100, 0.001, 0.001, 0.5)


def test_what_the_same_commands_show_at_one_time_only_is_flaky(judgements: Any) -> None:
    table = tables.flaky(judgements)
    assert rows(table, "identity", "failed", "tried", "rate", "run") == [(LOST, 1, 2, 0.5, "first")]


def test_recordings_of_applications_repeat_nothing(engine: Any, tmp_path: Path) -> None:
    runs = {key: [{**row, "mode": "open"} for row in rows] for key, rows in RUNS.items()}
    assert rows(tables.flaky(read_judgements(engine, made(tmp_path / "store", runs)))) == []


def test_the_difference_of_two_runs(judgements: Any) -> None:
    assert rows(tables.difference(judgements, "first", "second")) == [
        ("failure", COUNT, TARGET, "not seen", "seen"),
        ("requirement", "QUEUE-026", TARGET, None, "fail"),
    ]
    assert rows(tables.difference(judgements, "first", "first")) == []


def test_what_became_of_the_failures_of_last_night(engine: Any, tmp_path: Path) -> None:
    def failing(identity: str, name: str, **more: Any) -> dict[str, Any]:
        return sequence(name, "fail", identity, **more)

    def testing(requirement: str, name: str) -> dict[str, Any]:
        return sequence(name, said=[
            {"requirement": requirement, "verdict": "pass", "as_known": "pass", "exercised": 1}
        ])  # fmt: skip

    runs: dict[tuple[str, ...], list[dict[str, Any]]] = {
        ("2026-11-01", "first"): [failing("QOS-006|a|b", "old")],
        ("2026-11-02", "second"): [
            failing("ACK-002|stays|x", "s 1"), failing("ACK-003|goes|x", "s 2"), failing("GET-001|a|b", "s 3"),
            failing("TX-001|a|b", "s 4"), sequence("s 5"),
        ],
        ("2026-11-02", "elsewhere", "other"): [failing("ACK-002|stays|x", "s 1")],
        ("2026-11-04", "third"): [
            failing("ACK-002|stays|x", "t 1"), sequence("s 2"), testing("GET-001", "t 3"),
            failing("CHAN-001|a|b", "s 5"), failing("QOS-006|a|b", "t 6", version="4.3.7"),
        ],
    }  # fmt: skip
    store = made(tmp_path / "store", runs)
    judgements = read_judgements(engine, store)
    columns = ("state", "identity", "version", "first_seen", "same_commands", "run", "sequence")
    found = rows(tables.regressed(judgements), "target", *columns)
    assert {(row[0], *row[2:]) for row in found} == {
        (TARGET, "CHAN-001|a|b", "4.3.6", date(2026, 11, 4), True, "third", "s 5"),
        (TARGET, "QOS-006|a|b", "4.3.7", date(2026, 11, 1), False, "third", "t 6"),
        (TARGET, "ACK-002|stays|x", "4.3.6", date(2026, 11, 2), False, "third", "t 1"),
        (TARGET, "ACK-003|goes|x", "4.3.6", date(2026, 11, 2), True, "second", "s 2"),
        (TARGET, "GET-001|a|b", "4.3.6", date(2026, 11, 2), False, "second", "s 3"),
        (TARGET, "TX-001|a|b", "4.3.6", date(2026, 11, 2), False, "second", "s 4"),
        ("other", "ACK-002|stays|x", "4.3.6", date(2026, 11, 2), False, "elsewhere", "s 1"),
    }
    assert [(state, target, identity) for target, state, identity, *_ in found] == [
        ("new", TARGET, "CHAN-001|a|b"), ("new", TARGET, "QOS-006|a|b"), ("still", TARGET, "ACK-002|stays|x"),
        ("fixed", TARGET, "ACK-003|goes|x"), ("not seen", TARGET, "GET-001|a|b"),
        ("not tried", TARGET, "TX-001|a|b"), ("not tried", "other", "ACK-002|stays|x"),
    ]  # fmt: skip
    chosen = tables.regressed(judgements, "2026-11-01", "2026-11-02")
    assert {row[0] for row in rows(chosen, "state")} == {"new", "not tried"}


def test_every_table_is_a_view(engine: Any, store: Store, judgements: Any) -> None:
    register_views(engine, store)
    for name, table in TABLES.items():
        assert engine.table(name).columns == table(judgements).columns
    worst = engine.sql("select distinct requirement from compliance where verdict = 'fail' order by 1")
    assert rows(worst) == [("ACK-002",), ("QUEUE-026",)]
    assert rows(engine.sql("select count(*) from judgements where problem is not null")) == [(1,)]


def test_a_store_of_nothing_has_empty_tables(engine: Any, tmp_path: Path) -> None:
    empty = read_judgements(engine, create_store(tmp_path / "store"))
    for table in TABLES.values():
        assert rows(table(empty)) == []


def test_the_recorded_rows_are_a_view_too(engine: Any, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    add_trace(store, write_trace(tmp_path / "t.jsonl", "a=b/c", {"s": [(1, b"x")]}), day="2026-11-01", run="7")
    judge_store(store, judge=judge)
    register_views(engine, store)
    assert rows(engine.sql("select day, target, run, method from trace_rows where kind = 'frame'")) == [
        (date(2026, 11, 1), "a=b/c", "7", "basic.deliver")
    ]
    (found,) = rows(engine.table("judgements"), "sequence", "target", "run", "version", "verdict")
    assert found == ("s", "a=b/c", "7", "1", "pass")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_the_command_writes_a_table(store: Store, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"table{suffix}"
    assert main(["pipeline", "table", "failures_by_identity", str(store.root), "--out", str(out)]) == 0
    if suffix == ".parquet":
        assert pq.read_table(out).column("identity").to_pylist() == [LOST, COUNT]
    elif suffix == ".json":
        assert [json.loads(line)["identity"] for line in out.read_text().splitlines()] == [LOST, COUNT]
    else:
        assert out.read_text().splitlines()[1].startswith(f'"{LOST}","ACK-002"')


def test_the_command_prints_a_table(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pipeline", "table", "difference", str(store.root), "--before", "first", "--after", "second"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "what\tname\ttarget\tbefore\tafter",
        f"failure\t{COUNT}\t{TARGET}\tnot seen\tseen",
        f"requirement\tQUEUE-026\t{TARGET}\t\tfail",
    ]
    assert main([*command[:-1], "third"]) == 2
    assert capsys.readouterr().err == "amqpspec: the store has no run 'third', but first, second\n"
    assert main(["pipeline", "table", "prices", str(store.root)]) == 2
    assert "there is no table 'prices', but compliance, coverage" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["pipeline", "table", "--help"])
    assert ", ".join([*TABLES, DIFFERENCE, "conservation"]) in " ".join(capsys.readouterr().out.split())
