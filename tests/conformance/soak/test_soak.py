"""Whole soaks of the embedded broker, with the faults that it offers."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.judging import judged
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.soak.soak import soak
from amqpspec.conformance.soak.soak_trace import NAME
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.conformance.soak.soaks import EMBEDDED, soak_of


@pytest.mark.quick
def test_nothing_is_wrong_with_the_embedded_broker_whatever_befalls_it(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        result = soak_of(broker, tmp_path, 4.0, Kind.KILL, Kind.STOP, Kind.PAUSE, Kind.CUT, Kind.CLIENT, patience=8.0)
    assert [each for each in result.judgement.findings if not each.allowed] == []
    assert result.judgement.failures == []
    assert result.verdict is Verdict.PASS
    assert not result.problems
    assert result.judgement.unknown_queues == {}
    counts = result.judgement.tally
    assert set(counts.of_types) == {"classic", "quorum", "stream"}
    assert all(each.sent and each.confirmed and each.delivered for each in counts.of_types.values())
    assert sum(each.times for each in counts.of_faults.values()) >= 3
    # the result is a function of the trace, which is one like any other
    again = judged(read_trace(tmp_path), 4.0)
    assert again.tally.to_json() == counts.to_json()
    verdicts = {each.verdict for each in judge_all(read_trace(tmp_path))}
    assert verdicts <= {Verdict.PASS, Verdict.INCONCLUSIVE}


@pytest.mark.quick
def test_what_a_soak_makes_is_deleted(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        soak_of(broker, tmp_path, 0.5)
        served = broker.responder.own.broker
        assert not served.queues
        assert not [name for name in served.exchanges if name.startswith("amqpspec")]


@pytest.mark.quick
def test_the_first_interruption_ends_a_soak_in_order(tmp_path: Path) -> None:
    asked = 0

    def asks() -> int:
        nonlocal asked
        asked += 1
        return int(asked > 200)

    with EmbeddedBroker() as broker:
        target = TargetUnderTest(broker.address, EMBEDDED)
        options = SoakOptions(1, 600.0, (), tmp_path, judges_meanwhile=False)
        result = soak(target, options, asks_to_end=asks)
    assert result.ended_early == "interrupted"
    assert result.judgement.unknown_queues == {}
    assert result.wrong == 0
    assert result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.quick
def test_a_broker_that_is_gone_for_good_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpspec.conformance.soak.mill.LOST_AFTER", 0.5)
    with EmbeddedBroker() as broker:
        target = TargetUnderTest(broker.address, EMBEDDED)
    options = SoakOptions(1, 600.0, (), tmp_path, judges_meanwhile=False)
    result = soak(target, options)
    assert "no connection could be opened" in result.lost
    assert (tmp_path / NAME).is_file()
    assert result.verdict is Verdict.INCONCLUSIVE


def test_it_is_judged_while_it_runs_as_it_is_afterwards(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        target = TargetUnderTest(broker.address, EMBEDDED, faults=broker.faults())
        told: list[str] = []
        options = SoakOptions(3, 3.0, (Kind.CLIENT, Kind.KILL), tmp_path, rate=100.0, patience=8.0)
        result = soak(target, options, told.append)
    assert result.judgement.tally.to_json() == judged(read_trace(tmp_path), 4.0).tally.to_json()
    assert any("wrong" in line for line in told)


def test_what_nobody_judges_meanwhile_is_judged_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that does so may be ended from outside."""
    with EmbeddedBroker() as broker:
        target = TargetUnderTest(broker.address, EMBEDDED, faults=broker.faults())
        options = SoakOptions(3, 1.0, (Kind.CLIENT,), tmp_path, rate=100.0, patience=8.0)

        def end_the_judge(line: str) -> None:
            for each in multiprocessing.active_children():
                each.kill()

        result = soak(target, options, end_the_judge)
    assert result.verdict is Verdict.PASS
    assert result.judgement.tally.to_json() == judged(read_trace(tmp_path), 4.0).tally.to_json()
