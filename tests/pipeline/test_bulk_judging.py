"""Bulk judging: the verdicts of the plain judge, each sequence once, and what is broken costs itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, read_trace
from amqpspec.conformance.traces.trace_row import row_line
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.pipeline import bulk_judging as bulk
from amqpspec.pipeline.bulk_judging import judge_store, shares
from amqpspec.pipeline.judging import part_judging
from amqpspec.pipeline.judging.latencies import CONFIRM, FIRST_DELIVERY, Latencies
from amqpspec.pipeline.store import adding
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store, create_store
from amqpspec.pipeline.table import judge_traces
from tests.corpus.expectations import DIRECTORY
from tests.pipeline.stand_in import judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]
BAD = [(1, b"m1"), (3, b"m2")]
CORPUS = [*sorted(DIRECTORY.glob("rabbitmq-4.3-search-*.parquet")), DIRECTORY / "garagemq-search.parquet"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(tmp_path / "store")


def found(store: Store) -> list[dict[str, Any]]:
    """What every sequence was judged to be, by name."""
    rows = [
        row
        for part in store.contents().parts
        if store.is_judged(part)
        for row in pq.read_table(store.root / part.judgements).to_pylist()
    ]
    return sorted(rows, key=lambda row: str(row["sequence"]))


@pytest.mark.parametrize("master", [None, "local[2]"])
def test_the_verdicts_are_those_of_the_plain_judge(
    store: Store, spark: Any, master: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "PART_ROWS", 1000)
    for path in CORPUS:
        assert not add_trace(store, path).problems
    assert len(store.contents().parts) > 5
    summary = judge_store(store, master)
    plain = sorted(judge_traces(CORPUS), key=lambda each: each.sequence)
    assert (summary.sequences, summary.frames) == (len(plain), sum(each.frames for each in plain))
    assert summary.failed == sum(each.verdict == "fail" for each in plain) > 0
    for row, judgement in zip(found(store), plain, strict=True):
        assert row["sequence"] == judgement.sequence
        assert row["verdict"] == judgement.verdict
        assert [each["identity"] for each in row["failures"]] == [each.identity for each in judgement.failures]
        assert {each["requirement"] for each in row["said"]} >= {each["requirement"] for each in row["failures"]}
        assert len(row["measurements"]) == len(judgement.measurements)
        assert row["problem"] is None


def test_what_is_judged_is_not_judged_again(store: Store, tmp_path: Path) -> None:
    add_trace(store, write_trace(tmp_path / "a.jsonl", "b", {"s": GOOD}))
    assert judge_store(store, judge=judge).sequences == 1
    add_trace(store, write_trace(tmp_path / "b.jsonl", "b", {"t": BAD, "u": GOOD}))
    summary = judge_store(store, judge=judge)
    assert (summary.sequences, summary.before, summary.failed) == (2, 1, 1)
    assert judge_store(store, judge=judge).sequences == 0
    assert judge_store(store, judge=judge, again=True).sequences == 3
    assert [row["verdict"] for row in found(store)] == ["pass", "fail", "pass"]


def test_what_only_repeats_others_is_judged_and_not_counted(store: Store, tmp_path: Path) -> None:
    file = write_trace(tmp_path / "a.jsonl", "b", {"s": BAD, "t": BAD, "u": GOOD})
    rows = list(read_trace(file))
    for row in rows:
        if (row["kind"], row["sequence"]) == ("start", "t"):
            row["repeats"] = "s"
    file.write_bytes(b"".join(map(row_line, rows)))
    add_trace(store, file)
    summary = judge_store(store, judge=judge)
    assert (summary.sequences, summary.repeats, summary.failed) == (2, 1, 1)
    assert [(row["sequence"], row["verdict"]) for row in found(store)] == [("s", "fail"), ("t", "fail"), ("u", "pass")]


class Stopped(BaseException):
    pass


def test_a_job_that_is_stopped_goes_on_where_it_was(store: Store, tmp_path: Path) -> None:
    for number in range(5):
        add_trace(store, write_trace(tmp_path / f"{number}.jsonl", "b", {f"s {number}": GOOD}))

    def stopped(done: int, of: int) -> None:
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        judge_store(store, judge=judge, progress=stopped)
    assert len(found(store)) == 3
    summary = judge_store(store, judge=judge)
    assert (summary.parts, summary.before) == (2, 3)
    assert [row["sequence"] for row in found(store)] == [f"s {number}" for number in range(5)]


def kills_its_worker_once(rows: Iterable[TraceRow]) -> SequenceJudgement:
    """The judge of a worker that is killed at its first sequence called "victim"."""
    rows = list(rows)
    mark = Path(str(rows[0]["user"]))
    if rows[0]["sequence"] == "victim" and not mark.exists():
        mark.touch()
        os._exit(9)
    return judge(rows)


def test_a_worker_that_is_killed_costs_time_only(store: Store, spark: Any, tmp_path: Path) -> None:
    mark = tmp_path / "was killed"
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as trace:
        for name in ("first", "victim"):
            trace.start(
                name, target="b", product="", version="", dialect="rabbitmq-4.3", mode="burst", user=str(mark)
            )
    add_trace(store, path)
    add_trace(store, write_trace(tmp_path / "u.jsonl", "b", {f"s {n}": GOOD for n in range(9)}))
    summary = judge_store(store, "local[2]", judge=kills_its_worker_once)
    assert mark.exists() and summary.sequences == 11 == len(found(store))


@pytest.mark.parametrize("master", [None, "local[2]"])
def test_a_broken_file_costs_itself_and_is_named(
    store: Store, spark: Any, tmp_path: Path, master: str | None
) -> None:
    for number in range(3):
        add_trace(store, write_trace(tmp_path / f"{number}.jsonl", "b", {f"s {number}": GOOD}))
    torn, fewer, _ = (store.root / part.trace for part in store.contents().parts)
    torn.write_bytes(torn.read_bytes()[:-40])
    pq.write_table(pq.read_table(fewer).slice(0, 2), fewer)
    summary = judge_store(store, master, judge=judge)
    assert (summary.unreadable, summary.sequences) == (2, 1)
    problems = sorted(summary.problems)
    assert len(problems) == 2
    assert any(str(torn) in each and "not a readable Parquet file" in each for each in problems)
    assert any(f"{fewer}: 2 rows, where the manifest says 5" in each for each in problems)
    assert judge_store(store, judge=judge).unreadable == 2, "as long as it is there"


def test_a_file_that_breaks_in_the_middle_is_not_taken_for_judged(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_trace(store, write_trace(tmp_path / "t.jsonl", "b", {f"s {n}": GOOD for n in range(9)}))
    (part,) = store.contents().parts
    batches = []

    def breaking(batch: pa.RecordBatch) -> Iterator[Any]:
        batches.append(batch)
        if len(batches) == 2:
            raise OSError("Input/output error")
        return whole(batch)

    whole = part_judging._rows_of
    monkeypatch.setattr(part_judging, "_BATCH", 7)
    monkeypatch.setattr(part_judging, "_rows_of", breaking)
    summary = judge_store(store, judge=judge)
    assert (summary.unreadable, summary.sequences) == (1, 0) and "Input/output error" in summary.problems[0]
    assert not store.is_judged(part)
    monkeypatch.undo()
    assert judge_store(store, judge=judge).sequences == 9


def test_a_broken_sequence_costs_itself_and_is_named(store: Store, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", "b", {"a": GOOD, "b": GOOD, "c": [(1, b"crash")], "d": BAD, "e": GOOD})
    (part,) = add_trace(store, path).parts
    file = store.root / part.trace
    rows = pq.read_table(file).to_pylist()
    next(row for row in rows if row["sequence"] == "b" and row["kind"] == "frame")["arguments"] = "{no JSON"
    next(row for row in rows if row["sequence"] == "e")["kind"] = "begin"
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(file)), file)
    summary = judge_store(store, judge=judge)
    verdicts = {row["sequence"]: row["verdict"] for row in found(store)}
    assert verdicts == {"a": "pass", "b": "inconclusive", "c": "inconclusive", "d": "fail", "e": "inconclusive"}
    assert summary.broken_sequences == 3
    first, second, third = summary.problems
    assert "the sequence 'b' cannot be judged: its rows: row" in first
    assert "the sequence 'c' cannot be judged: the judge itself failed: ZeroDivisionError" in second
    assert "the sequence 'e' cannot be judged" in third
    assert [row["frames"] for row in found(store) if row["sequence"] == "d"] == [2]


def test_the_same_name_twice_is_two_sequences(store: Store, tmp_path: Path) -> None:
    one = write_trace(tmp_path / "one.jsonl", "b", {"s": GOOD})
    twice = tmp_path / "twice.jsonl"
    twice.write_bytes(one.read_bytes() * 2)
    add_trace(store, twice)
    judge_store(store, judge=judge)
    assert [row["first_row"] for row in found(store)] == [1, 6]


def test_results_that_cannot_be_written_end_the_job_with_a_line(store: Store, tmp_path: Path) -> None:
    add_trace(store, write_trace(tmp_path / "t.jsonl", "b", {"s": GOOD}))
    (store.root / "judgements").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match=r"\.parquet: cannot be written: "):
        judge_store(store, judge=judge)


def part(number: int, rows: int) -> Part:
    return Part(f"{number:04}", "2026-11-01", "b", "r", rows, rows, 1, 1)


def test_one_giant_beside_very_many_small_ones_are_tasks_of_even_size() -> None:
    giant = part(0, 5_000_000)
    small = [part(number, 100) for number in range(1, 30_001)]
    work = shares([*small, giant], 2)
    assert work[0] == [giant], "it begins first, and alone"
    sizes = [sum(each.rows for each in share) for share in work[1:]]
    assert max(sizes) <= bulk.PART_ROWS and sum(sizes) == 3_000_000
    assert len(sizes) >= 16 and min(sizes[:-1]) > 0.9 * max(sizes)
    assert sorted(each.id for share in work for each in share) == sorted(each.id for each in [giant, *small])


def test_few_small_parts_are_spread_over_all_processors() -> None:
    assert len(shares([part(number, 3000) for number in range(16)], 2)) == 8
    assert len(shares([part(number, 3) for number in range(16)], 2)) == 1, "what is little is not worth a task"
    assert shares([], 2) == []


def frame(method: str, time: float, sent: bool = False, body: bytes | None = None, **arguments: Any) -> TraceRow:
    from amqpspec.conformance.traces.trace_row import event_row

    content = None if body is None else Content({}, body)
    return event_row("s", Method("a", 1, method, arguments, sent, content, time))


def test_latencies_of_confirms_and_first_deliveries() -> None:
    latencies = Latencies()
    for row in (
        frame("basic.publish", 0.0, True, b"before confirm mode"),
        frame("confirm.select-ok", 0.1),
        frame("basic.publish", 1.0, True, b"m1"),
        frame("basic.publish", 1.1, True, b"m2"),
        frame("basic.publish", 1.2, True, b"twice"),
        frame("basic.publish", 1.3, True, b"twice"),
        frame("basic.deliver", 1.5, body=b"m1", delivery_tag=1, redelivered=False),
        frame("basic.ack", 1.6, delivery_tag=2, multiple=True),
        frame("basic.ack", 1.7, True, delivery_tag=1),
        frame("basic.deliver", 1.8, body=b"twice", delivery_tag=2, redelivered=False),
        frame("basic.deliver", 1.8, body=b"m2", delivery_tag=3, redelivered=True),
        frame("basic.nack", 1.9, delivery_tag=3, multiple=False),
        frame("channel.close", 2.0, True),
        frame("basic.ack", 2.1, delivery_tag=4, multiple=False),
    ):
        latencies.row(row)
    assert latencies.found[CONFIRM] == {0.6: 1, 0.5: 1, 0.7: 1}
    assert latencies.found[FIRST_DELIVERY] == {0.5: 1}


def test_a_part_is_what_check_reads_too(store: Store, tmp_path: Path) -> None:
    (each,) = add_trace(store, write_trace(tmp_path / "t.jsonl", "b", {"s": BAD})).parts
    (judgement,) = judge_traces([store.root / each.trace], judge)
    assert judgement.verdict == "fail"
