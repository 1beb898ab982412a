"""Whoever lacks a feature altogether gets no pass for what it promises: it is absent, or it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.end_to_end.runs import run_suite
from tests.targets.faults.lacking import LACKING, Lacking


@pytest.mark.parametrize("lacking", LACKING, ids=lambda each: each.fault.name.replace(" ", "-"))
def test_no_rule_of_a_feature_that_is_not_there_passes(lacking: Lacking, tmp_path: Path) -> None:
    with EmbeddedBroker(fault=lacking.fault) as broker:
        result = run_suite(broker, tmp_path, only=lacking.areas, shrinking_time=0, deadline=0.4)
    said = {each.id: each.verdict for each in result.requirements if each.id.startswith(lacking.areas)}
    assert result.lost is None
    assert [id for id, verdict in said.items() if verdict is Verdict.PASS] == []
    # it is told as well: by a failure, or by what a refusal has left undecided
    assert result.failures
