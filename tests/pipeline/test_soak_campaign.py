"""Campaigns of soaks: each a share with its own seed, its trace in the store, what came of it kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.soak_campaign import SoakCampaign, SoakTarget, shares_of, soak_all
from amqpspec.pipeline.store.store import create_store
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.errors import TargetUnreachable
from tests.conformance.soak.soaks import EMBEDDED

CAMPAIGN = SoakCampaign("nightly", "2026-11-01", 7, 0.5, soaks=2, faults=(Kind.CLIENT, Kind.KILL), rate=50.0)


@contextmanager
def started() -> Iterator[TargetUnderTest]:
    with EmbeddedBroker() as broker:
        yield TargetUnderTest(broker.address, EMBEDDED, faults=broker.faults())


TARGET = SoakTarget("embedded", started, 10.0)


def test_a_share_is_a_soak_with_a_seed_of_its_own(tmp_path: Path) -> None:
    shares = shares_of(CAMPAIGN, [TARGET, replace(TARGET, label="other")])
    assert [(each.target.label, each.seed, each.run) for each in shares] == [
        ("embedded", 7, "nightly-soak-7"), ("other", 7, "nightly-soak-7"),
        ("embedded", 8, "nightly-soak-8"), ("other", 8, "nightly-soak-8"),
    ]  # fmt: skip
    assert len({each.commit for each in shares}) == len({each.report for each in shares}) == 4
    longer = shares_of(replace(CAMPAIGN, seconds=1.0), [TARGET])
    assert longer[0].commit != shares[0].commit, "another soak by what it does"
    assert shares_of(replace(CAMPAIGN, soaks=3), [TARGET])[0] == shares[0]


def test_a_campaign_that_was_stopped_goes_on(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    first = next(iter(soak_all(store, CAMPAIGN, [TARGET])))  # and no more
    assert first.report is not None and first.report["total"]["sent"] > 0
    assert first.report["faults"] == ["client", "kill"]
    done = list(soak_all(store, CAMPAIGN, [TARGET]))
    assert [(each.seed, each.known) for each in done] == [(7, True), (8, False)]
    assert done[0].report == json.loads(Path(first.file).read_text()) == json.loads(json.dumps(first.report))
    parts = store.contents().parts
    assert {(part.target, part.run, part.day) for part in parts} == {
        ("embedded", "nightly-soak-7", "2026-11-01"), ("embedded", "nightly-soak-8", "2026-11-01"),
    }  # fmt: skip
    reports = [each.report for each in done if each.report is not None]
    assert sum(part.frames for part in parts) == sum(report["frames"] for report in reports)
    assert not list(store.root.glob("incoming/*"))
    assert judge_store(store).failed == 0


def test_a_soak_whose_target_was_lost_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpspec.conformance.soak.mill.LOST_AFTER", 0.5)
    store = create_store(tmp_path / "store")

    @contextmanager
    def gone() -> Iterator[TargetUnderTest]:
        with EmbeddedBroker() as broker:
            target = TargetUnderTest(broker.address, EMBEDDED)
        yield target

    def missing() -> AbstractContextManager[TargetUnderTest]:
        raise TargetUnreachable("it does not start")

    one = replace(CAMPAIGN, soaks=1)
    (lost,) = soak_all(store, one, [replace(TARGET, start=gone)])
    assert "no connection could be opened" in lost.lost and lost.report is not None
    assert [part.run for part in store.contents().parts] == ["nightly-soak-7"], "what was recorded is kept"
    (never,) = soak_all(store, one, [replace(TARGET, start=missing)])
    assert (never.lost, never.report) == ("it does not start", None)
    (again,) = soak_all(store, one, [TARGET])
    assert (again.known, again.lost) == (False, "")


def test_the_command_spreads_soaks_over_spark(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    command = ["campaign", "embedded", "embedded:redelivered-never-set", "--store", str(store), "--soak", "1.5"]
    command += ["--rate", "100", "--faults", "client", "--run", "r"]
    assert main([*command, "--seed", "3", "--spark", "local[2]"]) == 1
    run, sound, faulty, wrong = capsys.readouterr().out.splitlines()
    assert run == "run r, seed 3"
    assert sound.startswith("embedded: 1 soak: ") and sound.endswith(" confirmed, 0 lost, 0 duplicates")
    assert faulty.startswith("embedded:redelivered-never-set: 1 soak: ")
    assert wrong.startswith("  seed 3: fail, ")
    report = json.loads(Path(wrong.rpartition(": ")[2]).read_text())
    assert f"{report['total']['sent']:,} sent, {report['total']['confirmed']:,} confirmed" in faulty
    assert f"{report['total']['duplicates']:,} duplicates" in faulty and report["total"]["duplicates"]
    # what was done before is read, and counts as well
    assert main([*command, "--seed", "3"]) == 1
    again = capsys.readouterr().out.splitlines()
    assert again == [run, *(line.replace("1 soak:", "1 soak (1 done before):") for line in (sound, faulty)), wrong]
    assert main(command) == 2
    assert "--run r: the store has it" in capsys.readouterr().err


def test_what_is_known_passes_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report of a soak says how much of what is wrong is not known; here, as if all of it were."""
    command = ["campaign", "embedded:redelivered-never-set", "--store", str(tmp_path), "--soak", "1.5", "--rate", "100",
               "--faults", "client", "--run", "r", "--seed", "3", "--target", "shop"]  # fmt: skip
    assert main(command) == main([*command, "--gate", "known"]) == 1
    (file,) = (tmp_path / "soaks").rglob("*.json")
    report = json.loads(file.read_text())
    assert report["wrong"] == report["not_known"] > 0
    file.write_text(json.dumps(report | {"not_known": 0}))
    capsys.readouterr()
    assert main(command) == 1
    assert main([*command, "--gate", "known"]) == 0
    assert "all of it known" in capsys.readouterr().out
    for cut_short in ("ended_early", "errors"):
        file.write_text(json.dumps(report | {"not_known": 0, cut_short: "yes"}))
        assert main([*command, "--gate", "known"]) == 4
    assert main([*command, "--deviations", str(file)]) == 2
    assert "what a soak finds has no identity" in capsys.readouterr().err
    assert {part.target for part in create_store(tmp_path).contents().parts} == {"shop"}


def test_a_broker_that_others_use_has_the_faults_of_its_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedBroker(password="Sesame-4711") as broker:
        place = f"{broker.address.host}:{broker.address.port}"
        command = ["campaign", f"amqp://guest:Sesame-4711@{place}/", "--store", str(tmp_path), "--soak", "0.5"]
        assert main([*command, "--rate", "50", "--faults", "kill,client"]) == 0
    said = capsys.readouterr().out
    assert f"amqp://guest@{place}/%2F: 1 soak: " in said
    (file,) = (tmp_path / "soaks").rglob("*.json")
    report = json.loads(file.read_text())
    assert (report["faults"], report["not_offered"]) == (["client"], ["kill"])
    assert not any(b"Sesame" in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())


@pytest.mark.quick
@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("embedded", "--soak", "1", "--sequences", "3"), 2, "a campaign of soaks has no --sequences"),
        (("embedded", "--soak", "0"), 2, "a number of seconds above 0"),
        (("no-such-target", "--soak", "1"), 2, "no-such-target"),
        (("embedded:no-such-fault", "--soak", "1"), 2, "no-such-fault"),
        (("amqp://127.0.0.1:1/", "--soak", "1"), 3, "amqp://guest@127.0.0.1:1/%2F was lost in the soak of seed"),
    ],
)
def test_bad_input_is_told_in_a_line(
    arguments: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["campaign", *arguments, "--store", str(tmp_path / "store")])
    except SystemExit as error:
        found = int(error.code or 0)
    assert found == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and err.startswith("amqpspec: ")
