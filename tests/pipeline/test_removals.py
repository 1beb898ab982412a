"""What is removed from a store, by deletion or compaction: once, whoever does it, and never from under who reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.judging import compaction
from amqpspec.pipeline.judging.compaction import compact
from amqpspec.pipeline.judging.deletion import Choice, delete
from amqpspec.pipeline.judging.judged_parts import is_judged
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.local_files import LocalFiles
from amqpspec.pipeline.store.store import Store, create_store, open_store
from tests.pipeline.stand_in import judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three parts of one run, and one of an earlier day."""
    made = create_store(tmp_path / "store")
    for number in range(4):
        trace = write_trace(tmp_path / f"{number}.jsonl", "b", {f"s {number}": GOOD})
        add_trace(made, trace, run="late" if number else "early", day="2026-11-02" if number else "2026-11-01")
    return made


def sequences(store: Store) -> list[str]:
    return sorted(
        row["sequence"]
        for part in store.contents().parts
        for row in read_trace(store.root / part.trace)
        if row["kind"] == "start"
    )


def meanwhile(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> None:
    """Something is done by another between the look at what counts and the removal."""
    files = LocalFiles.put_new
    done = []

    def put_new(self: LocalFiles, path: str, octets: bytes) -> bool:
        if "removal-" in path and not done:
            done.append(True)
            do()
        return files(self, path, octets)

    monkeypatch.setattr(LocalFiles, "put_new", put_new)


def test_two_compactions_at_a_time_count_nothing_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: compact(open_store(store.root)))
    compact(store)
    assert sequences(store) == ["s 0", "s 1", "s 2", "s 3"]
    assert len(store.contents().parts) == 2 and not store.foreign()


def test_what_is_deleted_while_it_is_compacted_stays_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: delete(open_store(store.root), Choice(runs=("late",))))
    compact(store)
    assert sequences(store) == ["s 0"] and not store.foreign()


def test_what_is_compacted_while_it_is_deleted_is_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: compact(open_store(store.root)))
    delete(store, Choice(runs=("late",)))
    assert sequences(store) == ["s 0"]


def test_what_is_judged_again_while_it_is_compacted_stays_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_store(store, judge=judge)
    meanwhile(monkeypatch, lambda: judge_store(open_store(store.root), again=True, judge=judge))
    compact(store)
    assert all(is_judged(store, part) for part in store.contents().parts)
    assert sequences(store) == ["s 0", "s 1", "s 2", "s 3"]


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--run", "late"], ["s 0"]), (["--day", "2026-11-01"], ["s 1", "s 2", "s 3"]),
        (["--before", "2026-11-02"], ["s 1", "s 2", "s 3"]), (["--keep-days", "1"], []),
        (["--run", "early", "--run", "late"], []),
        (["--run", "early", "--day", "2026-11-02"], ["s 0", "s 1", "s 2", "s 3"]),
    ],
)  # fmt: skip
def test_what_is_chosen_is_deleted(store: Store, words: list[str], left: list[str]) -> None:
    judge_store(store, judge=judge)
    before = store.contents().parts
    assert main(["pipeline", "delete", str(store.root), *words]) == 0
    assert sequences(store) == left
    # who had begun to read goes on
    assert all((store.root / path).is_file() for part in before for path in (part.trace, part.judgements))
    assert main(["pipeline", "compact", str(store.root), "--grace", "0"]) == 0
    files = [each.path for folder in ("traces", "judgements") for each in store.files.listed(folder)]
    assert len(files) == 2 * len(store.contents().parts) and sequences(store) == left
    assert main(["pipeline", "status", str(store.root)]) == 0


def test_what_was_deleted_does_not_come_back_by_itself(store: Store, tmp_path: Path) -> None:
    delete(store, Choice(runs=("early",)), grace=0.0)
    assert add_trace(store, tmp_path / "0.jsonl", run="early", day="2026-11-01").known
    assert add_trace(store, tmp_path / "0.jsonl", run="early again").parts
    assert "s 0" in sequences(store)


def test_nothing_is_deleted_by_mistake(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "delete", str(store.root)]) == 2
    assert "what is deleted is said by --run, --day" in capsys.readouterr().err
    assert main(["pipeline", "delete", str(store.root), "--run", "other"]) == 2
    assert capsys.readouterr().err == f"amqpspec: {store.root}: the store has no run 'other'\n"
    assert len(sequences(store)) == 4


def test_judging_again_leaves_the_old_file_for_who_reads_it(store: Store) -> None:
    judge_store(store, judge=judge)
    before = [store.root / part.judgements for part in store.contents().parts]
    judge_store(store, again=True, judge=judge)
    after = [store.root / part.judgements for part in store.contents().parts]
    assert not {*before} & {*after} and all(file.is_file() for file in [*before, *after]) and not store.foreign()
    delete(store, Choice(runs=("early",)), grace=0.0)
    assert not any(file.exists() for file in before) and sum(file.exists() for file in after) == 3


def test_files_of_a_killed_import_are_removed_when_that_is_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = (store.root / store.contents().parts[0].trace).with_name("0123.parquet")
    left.write_bytes(b"PAR1")
    assert compact(store, grace=0.0) and delete(store, Choice(), unnamed=True) and left.exists(), "it may be under way"
    monkeypatch.setattr("amqpspec.pipeline.judging.deletion.LEFT_OVER", -1.0)
    assert delete(store, Choice(), unnamed=True).removed == 1 and not left.exists()


def test_a_name_is_put_once_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    files = LocalFiles(tmp_path)
    monkeypatch.setattr("os.link", refused)
    assert files.put_new("a/b", b"1") and not files.put_new("a/b", b"2")
    assert [(each.path, files.read(each.path)) for each in files.listed("a")] == [("a/b", b"1")]


def test_a_store_of_the_first_version_is_read(store: Store) -> None:
    """There a file of judgements counted because it was there."""
    judge_store(store, judge=judge)
    for part in store.contents().parts:
        (store.root / part.judgements).rename(store.root / replace(part, judged="").judgements)
    for file in (store.root / "manifest").iterdir():
        commit = json.loads(file.read_text())
        if commit.pop("judgements"):
            file.unlink()
        else:
            file.write_text(json.dumps(commit | {"version": 1}))
    (store.root / "store.json").write_text(json.dumps({"format": "amqpspec store", "version": 1}))
    old = open_store(store.root)
    assert all(is_judged(old, part) for part in old.contents().parts)
    assert judge_store(old, judge=judge).sequences == 0
    (store.root / old.contents().parts[0].judgements).unlink()
    assert judge_store(old, judge=judge).sequences == 1 and judge_store(old, again=True, judge=judge).sequences == 4
    assert compact(old, grace=0.0).after == 2 and judge_store(old, judge=judge).sequences == 0
    tables = [pq.read_table(old.root / part.judgements) for part in old.contents().parts]
    assert sum(table.num_rows for table in tables) == 4 and not old.foreign()


def test_a_checkpoint_holds_copies_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "CHECKPOINT_COMMITS", 1)
    before = store.contents()
    compact(store)
    checkpoint = store.root / "manifest/checkpoint.jsonl"
    with_it = store.contents()
    assert checkpoint.is_file() and {part.run for part in with_it.parts} == {part.run for part in before.parts}
    for content in (b"{", b"[]\n", b""):
        checkpoint.write_bytes(content)
        assert store.contents() == with_it


def test_a_removal_that_cannot_be_written_is_one_line(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"removal-00000001\.json: cannot be written: No space left on device"):
        delete(store, Choice(runs=("late",)))
    assert len(sequences(store)) == 4
    assert not [each for each in store.files.listed("manifest") if "removal" in each.path]
