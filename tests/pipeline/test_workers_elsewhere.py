"""Workers that do not see the store, or see another one under its path: never green, and one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line import main
from amqpspec.pipeline import bulk_import
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.judging.judged_parts import is_judged
from amqpspec.pipeline.store import store as stores
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.store import Store, create_store, open_store
from tests.pipeline.stand_in import judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]


class StoreElsewhere(Store):
    """A store that another process sees in another folder."""

    def __init__(self, root: Path, elsewhere: Path) -> None:
        super().__init__(root)
        self._elsewhere = elsewhere

    def __reduce__(self) -> Any:
        return Store, (self._elsewhere,)


@pytest.fixture
def store(tmp_path: Path) -> StoreElsewhere:
    made = create_store(tmp_path / "store")
    for number in range(3):
        add_trace(made, write_trace(tmp_path / f"{number}.jsonl", "b", {f"s {number}": GOOD}))
    return StoreElsewhere(made.root, tmp_path / "elsewhere")


def sees_nothing(store: StoreElsewhere) -> str:
    return " sees no store there; all workers must see the store's folder under the same path\n"


def sees_a_copy(store: StoreElsewhere) -> str:
    shutil.copytree(store.root, store._elsewhere)
    return "judged by a worker, and 3 of 3 parts have no new judgement; all workers must see the store's folder "


def sees_an_empty_one(store: StoreElsewhere) -> str:
    create_store(store._elsewhere)
    return "3 of 3 parts have no new judgement"


@pytest.mark.parametrize("arrange", [sees_nothing, sees_a_copy, sees_an_empty_one])
def test_judging_is_not_green(
    spark: Any,
    store: StoreElsewhere,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arrange: Callable[[StoreElsewhere], str],
) -> None:
    line = arrange(store)
    monkeypatch.setattr(stores, "open_store", lambda path: store)
    assert main(["pipeline", "judge", str(store.root), "--spark", "local[2]"]) == 2
    told = capsys.readouterr()
    assert line in told.err and told.err.count("\n") == 1 and told.out == ""
    assert not any(is_judged(store, part) for part in store.contents().parts)


def test_judging_again_needs_new_judgements(spark: Any, store: StoreElsewhere) -> None:
    judge_store(Store(store.root), judge=judge)
    sees_a_copy(store)
    with pytest.raises(StoreError, match="3 of 3 parts have no new judgement"):
        judge_store(store, "local[2]", again=True, judge=judge)
    assert judge_store(Store(store.root), "local[2]", again=True, judge=judge).sequences == 3


@pytest.mark.parametrize(
    ("arrange", "line"),
    [
        (sees_nothing, " sees no store there; all workers must see the store's folder under the same path"),
        (sees_an_empty_one, ": a worker says that it has added it; all workers must see the store's folder under"),
    ],
)
def test_importing_is_not_green(
    spark: Any,
    store: StoreElsewhere,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arrange: Callable[[StoreElsewhere], str],
    line: str,
) -> None:
    arrange(store)
    new = write_trace(tmp_path / "new.jsonl", "b", {"new": GOOD})
    monkeypatch.setattr(bulk_import, "create_store", lambda path: store)
    for _ in range(2):  # the second time that worker knows it already
        assert main(["pipeline", "import", str(store.root), str(new), "--spark", "local[2]"]) == 2
        told = capsys.readouterr()
        assert line in told.err and told.err.count("\n") == 1 and told.out == ""
    assert len(store.contents().parts) == 3


@pytest.mark.parametrize("arrange", [sees_nothing, sees_an_empty_one])
def test_a_campaign_is_not_green(
    spark: Any,
    store: StoreElsewhere,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arrange: Callable[[StoreElsewhere], str],
) -> None:
    arrange(store)
    monkeypatch.setattr(stores, "create_store", lambda path: store)
    command = ["campaign", "embedded", "--store", str(store.root), "--spark", "local[2]", "--run", "r", "--seed", "1"]
    for _ in range(2):  # the second time that worker has done it already
        assert main([*command, "--sequences", "2", "--steps", "3", "--quiet"]) == 2
        told = capsys.readouterr()
        assert "all workers must see the store's folder under the same path" in told.err
        assert told.err.count("\n") == 1 and told.out == "run r, seed 1\n"
    assert not any(part.run == "r" for part in open_store(store.root).contents().parts)
