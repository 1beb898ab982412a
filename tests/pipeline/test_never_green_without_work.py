"""What reads nothing, judges nothing or leaves something out says so, and is not green."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpspec.command_line import main
from amqpspec.pipeline import campaign as campaigns
from amqpspec.pipeline.bulk_import import import_traces
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.campaign import ShareDone
from amqpspec.pipeline.live import live
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.store import Store, create_store, open_store
from amqpspec.pipeline.views import read_judgements
from tests.pipeline.stand_in import judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]
ELSEWHERE = ["ftp://host:8020/store", "file:///tmp/store", "dbfs:/store", "http://host/store"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = create_store(tmp_path / "store")
    for number in range(3):
        add_trace(made, write_trace(tmp_path / f"{number}.jsonl", "b", {f"s {number}": GOOD}), run=f"r {number}")
    return made


@pytest.mark.parametrize("address", ELSEWHERE)
@pytest.mark.parametrize(
    "command",
    [
        "pipeline import {} trace.jsonl", "pipeline import store {}", "pipeline judge {}", "pipeline status {}",
        "pipeline compact {}", "pipeline conservation {} --run r", "pipeline table compliance {}",
        "pipeline table compliance store --out {}", "pipeline page {}", "pipeline page store --out {}",
        "pipeline live {} --out out", "pipeline live in --out {}", "campaign embedded --store {} --sequences 1",
        "run embedded --store {}", "run embedded --out {}", "run embedded --junit {}", "check {}",
        "check trace.jsonl --out {}", "replay {}", "replay a.amqp --out {}", "report {}", "report out --out {}",
        "diff embedded embedded --out {}", "profile embedded --toml {}", "record --upstream amqp://h --out {}",
    ],
)  # fmt: skip
def test_what_is_elsewhere_is_refused_and_makes_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(command.format(address).split())
    assert ended.value.code == 2
    told = capsys.readouterr().err
    scheme = address.partition(":")[0]
    assert told.count("\n") == 1 and f"{scheme}:// is not served, but folders and files of a file system" in told
    assert list(tmp_path.iterdir()) == []


def test_an_interface_of_the_package_refuses_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (
        lambda: create_store("ftp://host/store"),
        lambda: open_store(Path("ftp://host/store")),
        lambda: import_traces("ftp://host/store", []),
        lambda: live(tmp_path, Path("ftp://host/out"), "local[1]", lambda number, lines: None),
    ):
        with pytest.raises(StoreError, match=r"ftp://host/[a-z]+: ftp:// is not served"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_a_colon_is_no_address(tmp_path: Path) -> None:
    assert create_store(tmp_path / "nightly: 4.3" / "store").contents().parts == ()


def test_an_empty_store_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_store(tmp_path)
    assert main(["pipeline", "judge", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"amqpspec: {tmp_path}: the store holds no recording, so there is nothing to judge\n"
    )


def made(*words: str) -> list[str]:
    return ["pipeline", *words]


def test_a_table_of_nothing(spark: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(store.root)
    tables = [made("table", "flaky", place), made("page", place, "--out", f"{place}.html")]
    for command in [*tables, made("table", "difference", place, "--before", "r 0", "--after", "r 1")]:
        assert main(command) == 2
        told = capsys.readouterr()
        assert told.out == "" and told.err == (
            f"amqpspec: {place}: nothing in the store is judged (amqpspec pipeline judge), so there is nothing to make "
            "a table of\n"
        )
    assert not Path(f"{place}.html").exists()


def test_a_table_says_what_is_not_in_it(spark: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(store.root)
    judge_store(store, judge=judge)
    add_trace(store, write_trace(Path(f"{place}.jsonl"), "b", {"s 9": GOOD}), run="r 9")
    first = next(part for part in store.contents().parts if part.run == "r 9")
    for command in (made("table", "said", place), made("page", place, "--out", f"{place}.html")):
        assert main(command) == 0
        line = "1 part of the store not judged yet (amqpspec pipeline judge), and left out"
        assert capsys.readouterr().err == f"amqpspec: {line}\n"
    assert main(made("table", "difference", place, "--before", first.run, "--after", "r 1")) == 2
    assert "nothing is judged of the run 'r 9'" in capsys.readouterr().err


def test_a_table_of_what_does_not_count(spark: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    judge_store(store, judge=judge)
    for part in store.contents().parts:
        file = store.root / part.judgements
        table = pq.read_table(file)
        at = table.schema.get_field_index("repeats")
        pq.write_table(table.set_column(at, table.schema.field(at), pa.array(["s"], pa.string())), file)
    for command in (made("table", "said", str(store.root)), made("page", str(store.root), "--out", f"{store.root}.h")):
        assert main(command) == 5
        assert "no sequence that counts" in capsys.readouterr().err


@pytest.mark.parametrize("broken", [b"", b"PAR1 and no more", b"cut", b"altered", b"columns", b"no rows"])
def test_a_broken_judgement_costs_itself(
    spark: Any, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: bytes
) -> None:
    judge_store(store, judge=judge)
    (part, *others) = store.contents().parts
    file = store.root / part.judgements
    breaks(file, broken)
    commands = [
        made("status", str(store.root)), made("table", "said", str(store.root)),
        made("page", str(store.root), "--out", str(tmp_path / "page.html")),
    ]  # fmt: skip
    for command in commands:
        assert main(command) == 5
        told = capsys.readouterr()
        assert told.err.startswith(f"amqpspec: {file}: ") and told.err.count("\n") == 1
        assert told.err.endswith(", so its part counts as not judged\n")
        if command[1] == "status":
            assert "3 parts, 2 judged" in told.out
    assert (tmp_path / "page.html").exists()
    with pytest.warns(UserWarning, match="counts as not judged"):
        assert read_judgements(spark, store).count() == len(others)
    summary = judge_store(store, judge=judge)
    assert (summary.sequences, summary.before, summary.unreadable) == (1, 2, 0)
    assert summary.problems[0].startswith(f"{file}: ") and summary.problems[0].endswith("; it is judged again")
    assert main(made("status", str(store.root))) == 0
    assert read_judgements(spark, store).count() == 3


def breaks(file: Path, how: bytes) -> None:
    whole = file.read_bytes()
    if how == b"cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif how == b"altered":
        # the last octet of a page: those of its head have no checksum, and not all of them make a difference
        column = pq.read_metadata(file).row_group(0).column(0)
        at = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    elif how == b"columns":
        pq.write_table(pa.table({"sequence": ["s"], "verdict": [1]}), file)
    elif how == b"no rows":
        pq.write_table(pq.read_table(file).slice(0, 0), file)
    else:
        file.write_bytes(how)


def test_all_broken_is_no_table(spark: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    judge_store(store, judge=judge)
    for part in store.contents().parts:
        (store.root / part.judgements).write_bytes(b"")
    assert main(made("table", "said", str(store.root))) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "not a readable Parquet file" in told


def test_a_broken_judgement_is_not_lost_in_compaction(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for part in store.contents().parts:
        add_trace(store, store.root / part.trace, run="same", day="2026-11-01")
    judge_store(store, judge=judge)
    part = next(part for part in store.contents().parts if part.run == "same")
    (store.root / part.judgements).write_bytes(b"PAR1")
    assert main(made("compact", str(store.root))) == 5
    assert str(store.root / part.judgements) in capsys.readouterr().err
    assert judge_store(store, judge=judge).sequences == 1


def test_a_broken_commit_is_told_by_all(spark: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """What it has added is in no table, and a message of it is published by nobody."""
    judge_store(store, judge=judge)
    commit = next(store.root.glob("manifest/*.json"))
    commit.write_text("{")
    place = str(store.root)
    for words in (("judge", place), ("status", place), ("compact", place), ("table", "said", place),
                  ("page", place, "--out", f"{place}.html")):  # fmt: skip
        assert main(made(*words)) == 5
        assert f"{commit}: not a commit of a store" in capsys.readouterr().err
    run = store.contents().parts[0].run
    assert main(made("conservation", place, "--run", run)) == 5
    assert f"{commit}: not a commit of a store" in capsys.readouterr().err


def test_conservation_of_no_message_is_not_decided(
    spark: Any, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_trace(store, write_trace(tmp_path / "t.jsonl", "b", {"t": []}), run="empty")
    for more in ((), ("--spark", "local[2]")):
        assert main(made("conservation", str(store.root), "--run", "empty", *more)) == 4
        assert "not decidable of the run: no message was published or delivered in it" in capsys.readouterr().out


def test_a_campaign_in_which_nothing_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def undecided(*_: object) -> Iterator[ShareDone]:
        yield ShareDone("embedded", sequences=2, frames=4, inconclusive=2)

    def over(*_: object) -> Iterator[ShareDone]:
        yield ShareDone("embedded")

    command = ["campaign", "embedded", "--store", str(tmp_path), "--quiet", "--sequences"]
    for search, why in ((undecided, "none of the sequences was decided"), (over, "the time was over before")):
        monkeypatch.setattr(campaigns, "search", search)
        assert main([*command, "4"]) == 4
        assert why in capsys.readouterr().err
