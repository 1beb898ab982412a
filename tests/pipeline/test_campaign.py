"""Campaigns: the same commands however they are spread, traces in the store, and a target that dies."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.pipeline import campaign as campaigns
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.campaign import Campaign, ShareDone, search, shares_of
from amqpspec.pipeline.campaign_shrinking import shrink_new
from amqpspec.pipeline.store.store import Store, create_store
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.pipeline.stand_in import mortal

CAMPAIGN = Campaign("nightly", "2026-11-01", 7, sequences=11, steps=8, themes=("traffic",))


@pytest.fixture
def target() -> Iterator[TargetUnderTest]:
    with EmbeddedBroker() as broker:
        described = TargetDescription("embedded", "amqpspec", "", DEFAULT_DIALECT.name)
        yield TargetUnderTest(broker.address, described, deadline=30.0)


def commands(store: Store) -> dict[str, list[str]]:
    """The commands of each sequence of the store."""
    found: dict[str, list[str]] = {}
    for part in store.contents().parts:
        for row in read_trace(store.root / part.trace):
            if row["kind"] == "command":
                found.setdefault(row["sequence"], []).append(row["text"])
    return found


def test_equal_seeds_make_equal_commands_however_they_are_spread(
    spark: Any, target: TargetUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, many = create_store(tmp_path / "one"), create_store(tmp_path / "many")
    done = list(search(one, CAMPAIGN, [target]))
    assert len(done) == 1 and done[0].lost is None
    monkeypatch.setattr(campaigns, "ROUNDS_OF_ONE", 1)
    spread = list(search(many, CAMPAIGN, [target], "local[2]"))
    assert [each.sequences for each in spread] == [9, 2]
    assert commands(one) == commands(many) != {}
    assert len(commands(one)) == 11
    (part, *_) = many.contents().parts
    assert (part.target, part.run, part.day) == ("embedded", "nightly", "2026-11-01")
    assert not list(many.root.glob("incoming/*"))
    assert judge_store(many).failed == sum(each.failed for each in spread) == 0


def test_a_campaign_that_was_stopped_goes_on(
    target: TargetUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "ROUNDS_OF_ONE", 1)
    store = create_store(tmp_path / "store")
    next(search(store, CAMPAIGN, [target]))  # and no more
    done = list(search(store, CAMPAIGN, [target]))
    assert [(each.known, each.sequences) for each in done] == [(True, 0), (False, 2)]
    assert len(commands(store)) == 11
    other = list(search(store, replace(CAMPAIGN, run="other", sequences=9), [target]))
    assert [each.known for each in other] == [False]
    longer = list(search(store, replace(CAMPAIGN, steps=9), [target]))
    assert not any(each.known for each in longer), "other commands are another campaign"


def test_a_worker_that_is_killed_costs_time_only(spark: Any, target: TargetUnderTest, tmp_path: Path) -> None:
    whole, other = create_store(tmp_path / "whole"), create_store(tmp_path / "other")
    list(search(whole, CAMPAIGN, [target]))
    mark = tmp_path / "was killed"
    done = list(search(other, CAMPAIGN, [replace(target, address=mortal(target.address, 5, mark))], "local[2]"))
    assert mark.exists(), "it was killed in the middle"
    assert [(each.sequences, each.lost) for each in done] == [(11, None)]
    assert commands(other) == commands(whole)
    assert not list(other.root.glob("incoming/*"))


def test_a_target_that_dies_ends_its_share_only(tmp_path: Path, target: TargetUnderTest) -> None:
    store = create_store(tmp_path / "store")
    with EmbeddedBroker() as broker:
        described = TargetDescription("mortal", "amqpspec", "", DEFAULT_DIALECT.name)
        mortal = TargetUnderTest(broker.address, described, deadline=30.0)
        tasks = search(store, CAMPAIGN, [target, mortal])
        first = next(tasks)
        threading.Thread(target=broker.stop).start()
        second = next(tasks)
    assert (first.target, first.lost, first.sequences) == ("embedded", None, 11)
    assert second.target == "mortal" and second.lost and second.sequences < 11
    assert {part.target for part in store.contents().parts} >= {"embedded"}
    assert judge_store(store).failed == 0
    with EmbeddedBroker() as broker:
        again = list(search(store, CAMPAIGN, [target, replace(mortal, address=broker.address)]))
    assert [(each.known, each.sequences, each.lost) for each in again] == [(True, 0, None), (False, 11, None)]


def test_the_time_of_a_campaign_is_bounded(target: TargetUnderTest, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    (done,) = search(store, replace(CAMPAIGN, sequences=None, time_budget=1.0), [target])
    assert 0 < done.sequences < 5000 and done.lost is None


def test_each_target_has_its_part_of_the_time(target: TargetUnderTest, tmp_path: Path) -> None:
    other = replace(target, description=replace(target.description, label="other"))
    store = create_store(tmp_path / "store")
    done = list(search(store, replace(CAMPAIGN, sequences=None, time_budget=2.0), [target, other]))
    assert [each.target for each in done] == ["embedded", "other"]
    assert all(0 < each.sequences < 5000 for each in done)


def test_shares_are_spread_over_targets_and_rounds(target: TargetUnderTest) -> None:
    shares = shares_of(replace(CAMPAIGN, sequences=100), [target, target], 2)
    assert [(share.number, share.first, share.stop) for share in shares[:4]] == [
        (0, 0, 4), (1, 0, 4), (2, 4, 8), (3, 4, 8),
    ]  # fmt: skip
    assert shares[-1].stop == 12
    endless = shares_of(replace(CAMPAIGN, sequences=None), [target], 3)
    assert [(share.first, share.step) for share in endless] == [(0, 3), (1, 3), (2, 3)]


def test_new_failures_are_shrunk_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["campaign", "embedded:confirm-twice", "--store", str(tmp_path), "--seed", "3", "--theme", "publishing"]
    command += ["--sequences", "4", "--steps", "8", "--shrinking-time", "20"]
    assert main([*command, "--run", "one"]) == 1
    new = [line for line in capsys.readouterr().out.splitlines() if line.startswith("new on ")]
    file = next(Path(line.rpartition(": ")[2]) for line in new if "CONFIRM-003" in line)
    assert len(file.read_text().splitlines()) <= 5
    assert main(["replay", str(file), "embedded:confirm-twice"]) == 1
    capsys.readouterr()
    assert main([*command, "--run", "two"]) == 1
    assert "new on " not in capsys.readouterr().out


def test_the_command(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "store")
    command = ["campaign", "embedded", "embedded:multiple-zero-ignored", "--store", store, "--spark", "local[2]"]
    assert main([*command, "--seed", "3"]) == 2
    assert "needs --sequences N or --time-budget SECONDS" in capsys.readouterr().err
    assert main([*command, "--seed", "3", "--sequences", "4", "--steps", "5", "--run", "r"]) in (0, 1)
    said = capsys.readouterr().out
    assert said.startswith("run r, seed 3\n8 sequences, ")
    assert main([*command, "--seed", "3", "--sequences", "4", "--steps", "5", "--run", "r"]) == 0
    assert capsys.readouterr().out == "run r, seed 3\n0 sequences, 0 frames: 0 failed (2 shares done before)\n"
    assert main([*command, "--sequences", "4", "--steps", "5", "--run", "r"]) == 2
    assert "--run r: the store has it; to go on with it, give its --seed as well" in capsys.readouterr().err


def test_run_and_seed_are_told_before_it_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> Iterator[ShareDone]:
        raise KeyboardInterrupt

    monkeypatch.setattr(campaigns, "search", stopped)
    command = ["campaign", "embedded", "--store", str(tmp_path), "--sequences", "4", "--quiet"]
    assert main(command) == 130
    assert re.fullmatch(r"run campaign-\S+-seed-(\d+), seed \1\n", capsys.readouterr().out)


def test_a_target_that_is_lost_over_the_first_new_failure_is_told(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    with EmbeddedBroker(fault="confirm-twice") as broker:
        described = TargetDescription("faulty", "amqpspec", "", DEFAULT_DIALECT.name)
        target = TargetUnderTest(broker.address, described, deadline=0.3)
        (done,) = search(store, replace(CAMPAIGN, sequences=3, themes=("publishing",)), [target])
    assert done.shown
    (lost,) = shrink_new(store, [target], done.shown, 5.0, 7)
    assert lost.file is None and lost.lost is not None and "cannot connect" in lost.lost
