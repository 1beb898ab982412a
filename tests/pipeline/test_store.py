"""The store: what is added counts as a whole or not at all, and compaction changes nothing that can be seen."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from amqpspec.conformance.traces.trace import TraceRow, jsonl_to_parquet, read_trace, sequences
from amqpspec.conformance.traces.trace_parquet import ADDED_LATER
from amqpspec.pipeline.bulk_import import import_traces
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.judging import compaction
from amqpspec.pipeline.judging.compaction import compact
from amqpspec.pipeline.judging.judged_parts import is_judged
from amqpspec.pipeline.store import adding
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part, folder_name
from amqpspec.pipeline.store.store import Store, create_store, open_store
from tests.pipeline.stand_in import judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]
BAD = [(1, b"m1"), (3, b"m2")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(tmp_path / "store")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "one.jsonl", "broker/1: a", {f"search {n}": GOOD for n in range(7)})


def rows_of(store: Store) -> dict[str, list[TraceRow]]:
    """All sequences of the store, by name."""
    found = {}
    for part in store.contents().parts:
        for rows in sequences(read_trace(store.root / part.trace)):
            found[rows[0]["sequence"]] = rows
    return found


def results(store: Store) -> list[tuple[object, ...]]:
    """What was found, without where it is."""
    names = ("sequence", "verdict", "frames", "reason")
    tables = [pq.read_table(store.root / part.judgements) for part in store.contents().parts if is_judged(store, part)]
    return sorted(tuple(row[name] for name in names) for table in tables for row in table.to_pylist())


def test_a_part_is_a_trace_with_the_rows_of_whole_sequences(store: Store, trace: Path) -> None:
    added = add_trace(store, trace, day="2026-11-01")
    (part,) = added.parts
    assert (part.day, part.target, part.sequences, part.frames) == ("2026-11-01", "broker/1: a", 7, 14)
    assert part.trace.startswith("traces/day=2026-11-01/target=broker%2F1%3A a/run=one-")
    assert rows_of(store) == {rows[0]["sequence"]: rows for rows in sequences(read_trace(trace))}
    names = [row["sequence"] for row in read_trace(store.root / part.trace)]
    assert names == sorted(names), "sequences follow one another"


def test_the_day_is_that_of_the_file(store: Store, trace: Path) -> None:
    (part,) = add_trace(store, trace).parts
    assert part.day == datetime.fromtimestamp(trace.stat().st_mtime, UTC).date().isoformat()


def test_a_trace_is_added_once(store: Store, trace: Path) -> None:
    add_trace(store, trace)
    again = add_trace(store, trace)
    assert again.known and not again.parts
    assert len(store.contents().parts) == 1


def test_another_trace_of_the_same_run_is_added(store: Store, trace: Path, tmp_path: Path) -> None:
    other = write_trace(tmp_path / "two.jsonl", "broker/1: a", {"search 9": GOOD})
    for each in (trace, other):
        assert not add_trace(store, each, run="nightly").known
        assert add_trace(store, each, run="nightly").known
    assert sum(part.sequences for part in store.contents().parts) == 8


def test_each_target_of_a_trace_has_parts_of_its_own(store: Store, tmp_path: Path) -> None:
    write_trace(tmp_path / "a.jsonl", "a", {"s": GOOD})
    write_trace(tmp_path / "b.jsonl", "b", {"t": GOOD})
    both = tmp_path / "both.jsonl"
    both.write_bytes((tmp_path / "a.jsonl").read_bytes() + (tmp_path / "b.jsonl").read_bytes())
    parts = add_trace(store, both).parts
    assert [part.target for part in parts] == ["a", "b"]
    (named,) = add_trace(store, both, target="c").parts
    assert named.target == "c"


def test_parts_are_of_a_bounded_size_and_a_long_sequence_is_not_held_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "PART_ROWS", 20)
    monkeypatch.setattr(adding, "MOST_IN_MEMORY", 10)
    path = write_trace(
        tmp_path / "t.jsonl",
        "b",
        {"long": [(n, b"\xff") for n in range(1, 200)], **{f"s {n}": GOOD for n in range(20)}, "stopped": GOOD * 9},
    )
    parts = add_trace(store, path).parts
    assert sorted(part.rows for part in parts)[-1] == 202
    assert all(part.rows <= 30 for part in parts if part.rows != 202)
    assert rows_of(store) == {rows[0]["sequence"]: rows for rows in sequences(read_trace(path))}
    assert not (store.root / ".temporary").exists()


def test_what_cannot_be_read_costs_itself_and_is_named(store: Store, trace: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(trace.read_bytes()[:-20])
    (tmp_path / "foreign.parquet").write_bytes(b"no Parquet")
    imported = import_traces(store.root, [cut, tmp_path / "foreign.parquet", tmp_path / "absent.jsonl", trace])
    assert "the last line is cut short" in imported.problems[0]
    assert "foreign.parquet: not a readable Parquet file" in imported.problems[1]
    assert "absent.jsonl: the trace cannot be read: No such file or directory" in imported.problems[2]
    assert imported.sequences == 14
    assert set(store.contents().problems) == set(imported.problems[:2])


def test_rows_outside_a_sequence_cost_that_sequence(store: Store, trace: Path, tmp_path: Path) -> None:
    lines = trace.read_bytes().splitlines(keepends=True)
    without = tmp_path / "without.jsonl"
    without.write_bytes(b"".join(lines[1:]))  # the first start row is gone
    added = add_trace(store, without)
    (problem,) = added.problems
    assert "rows of the sequence 'search 0' of without-" in problem and "left out" in problem
    assert sum(part.sequences for part in added.parts) == 6


def test_a_parquet_trace_of_an_earlier_version_is_read(store: Store, trace: Path, tmp_path: Path) -> None:
    new, old = tmp_path / "new.parquet", tmp_path / "old.parquet"
    jsonl_to_parquet(trace, new)
    pq.write_table(pq.read_table(new).drop_columns(sorted(ADDED_LATER)), old)
    assert not add_trace(store, old).problems
    assert judge_store(store, judge=judge).sequences == 7
    pq.write_table(pq.read_table(new).drop_columns(["method"]), old)
    assert add_trace(store, old).problems == [f"{old}: not a trace: the column method is missing"]


def test_a_part_of_an_earlier_schema_is_judged_and_compacted(store: Store, trace: Path) -> None:
    for run in ("a", "b"):
        (part,) = add_trace(store, trace, run=run, day="2026-11-01").parts
        file = store.root / part.trace
        pq.write_table(pq.read_table(file).drop_columns(sorted(ADDED_LATER)), file)
    assert judge_store(store, judge=judge).sequences == 14


def test_a_store_of_a_later_version_is_refused(store: Store) -> None:
    (store.root / "store.json").write_text(json.dumps({"format": "amqpspec store", "version": 99}))
    with pytest.raises(StoreError, match="a store of version 99; this program knows versions up to 2"):
        open_store(store.root)
    (store.root / "store.json").write_text("{}")
    with pytest.raises(StoreError, match="does not say what the folder is"):
        open_store(store.root)


def test_no_store_is_made_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StoreError, match="neither a store nor an empty folder"):
        create_store(tmp_path)
    with pytest.raises(StoreError, match="no store"):
        open_store(tmp_path)


def test_unfinished_and_foreign_files_are_not_read(store: Store, trace: Path) -> None:
    (part,) = add_trace(store, trace).parts
    folder = (store.root / part.trace).parent
    (folder / ".unfinished-1.parquet").write_bytes(b"cut")
    (folder / "other.parquet").write_bytes(b"PAR1")
    (store.root / "manifest" / "torn.json").write_text('{"parts": [')
    contents = store.contents()
    assert contents.parts == (part,)
    assert [store.root / each for each in store.foreign()] == [folder / "other.parquet"]
    (problem,) = contents.broken
    assert "torn.json: not a commit of a store" in problem


def test_what_was_written_and_not_committed_does_not_count(
    store: Store, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(Store, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            add_trace(store, trace)
    assert not store.contents().parts and len(store.foreign()) == 1
    assert len(add_trace(store, trace).parts) == 1


def test_compaction_keeps_rows_and_results(store: Store, tmp_path: Path) -> None:
    for number in range(6):
        path = write_trace(tmp_path / f"{number}.jsonl", "b", {f"s {number}": GOOD, f"t {number}": BAD})
        adder = adding.Adder(store, "2026-11-01", "run")
        for rows in sequences(read_trace(path)):
            adder.add(rows)
        adder.finish()
        if number == 3:
            judge_store(store, judge=judge)
    rows, found = rows_of(store), results(store)
    done = compact(store, grace=0.0)
    assert (done.before, done.after, done.removed, done.problems) == (6, 2, 10, [])
    assert rows_of(store) == rows and results(store) == found and len(found) == 8
    (judged,) = [part for part in store.contents().parts if is_judged(store, part)]
    table = pq.read_table(store.root / judged.judgements).to_pylist()
    whole = list(read_trace(store.root / judged.trace))
    assert [whole[row["first_row"] - 1]["kind"] for row in table] == ["start"] * 8
    assert [whole[row["first_row"] - 1]["sequence"] for row in table] == [row["sequence"] for row in table]
    assert judge_store(store, judge=judge).sequences == 4, "only those that were not judged"
    assert not store.foreign()


def test_compaction_leaves_what_it_cannot_read(store: Store, trace: Path) -> None:
    for name in ("x", "y"):
        adder = adding.Adder(store, "2026-11-01", "run")
        for rows in sequences(read_trace(trace)):
            adder.add([{**row, "sequence": name + row["sequence"]} for row in rows])
        adder.finish()
    torn = store.root / store.contents().parts[0].trace
    torn.write_bytes(torn.read_bytes()[:-30])
    done = compact(store)
    assert (done.before, done.after) == (2, 2)
    assert str(torn) in done.problems[0]


def test_what_was_replaced_is_kept_for_who_reads_it(store: Store, trace: Path) -> None:
    for _ in range(2):
        adder = adding.Adder(store, "2026-11-01", "run")
        for rows in sequences(read_trace(trace)):
            adder.add(rows)
        adder.finish()
    old = [store.root / part.trace for part in store.contents().parts]
    assert compact(store).removed == 0
    assert all(file.exists() for file in old) and not store.foreign()
    assert compact(store, grace=0.0).removed == 2


def test_left_over_files_are_removed_later(store: Store, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = add_trace(store, trace).parts
    left = (store.root / part.trace).with_name(".unfinished-7.parquet")
    left.touch()
    assert compact(store).removed == 0
    monkeypatch.setattr(compaction, "LEFT_OVER", -1.0)
    assert compact(store).removed == 1 and not left.exists()


def test_a_full_disk_is_one_line_and_loses_nothing(store: Store, trace: Path, tmp_path: Path) -> None:
    add_trace(store, trace)
    large = write_trace(tmp_path / "large.jsonl", "b", {f"s {n}": [(1, bytes([n]) * 5000)] for n in range(200)})
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from amqpspec import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    # without bytecode: Python would leave the file of a module cut short, without a word, and others would read it
    command = [sys.executable, "-B", "-c", program, "pipeline", "import", str(store.root), str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "cannot be written" in done.stderr and "File too large" in done.stderr
    assert len(store.contents().parts) == 1 and not store.foreign()
    assert add_trace(store, large).parts


def test_long_names_of_targets_are_distinct_folders() -> None:
    names = {folder_name("t" * 300 + end) for end in ("a", "b")} | {folder_name("ü" * 300)}
    assert len(names) == 3 and all(len(name) < 200 for name in names)
    assert Part("i", "2026-11-01", "", "r", 0, 0, 0, 0).folder == "day=2026-11-01/target=unknown/run=r"


def test_what_was_lacking_is_known_after_compaction_too(store: Store, trace: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    for number, octets in enumerate([trace.read_bytes(), trace.read_bytes()[:-9]]):
        torn.write_bytes(octets)
        add_trace(store, torn, run="r", day=f"2026-11-0{number // 2 + 1}")
    assert len(store.contents().flaws) == 1 and len(store.contents().parts) == 2
    assert compact(store).after == 1
    contents = store.contents()
    assert [part.id in contents.flaws for part in contents.parts] == [True]
    assert len(contents.problems) == 1
