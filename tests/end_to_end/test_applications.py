"""Recordings of programs with real clients, judged in the open world: a right broker is blamed for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from amqpspec import EmbeddedBroker
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.pipeline.table import judge_traces
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.docker_broker import DockerBroker
from benchmarks.applications import run_all
from tests.patience import patience
from tests.proxies import recording

#: Requirements that the programs put to the test, whatever the broker.
EXERCISED = {
    "CONFIRM-003", "CONFIRM-009", "CONSUME-001", "CONSUME-014", "QOS-001", "CANCEL-001", "GET-001", "PUBLISH-007",
    "CHAN-007", "QUEUE-001", "TX-001", "CONN-020",
}  # fmt: skip


def recorded(address: Address, directory: Path, count: int = 60) -> Sequence[SequenceJudgement]:
    with recording(f"amqp://{address.host}:{address.port}", directory) as proxy:
        ended = run_all(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", directory.name, count, patience(60))
    assert ended == {}
    return list(judge_traces([directory]))


def blamed(judgements: Sequence[SequenceJudgement]) -> list[str]:
    return [f"{each.identity}: {each.observed}" for judged in judgements for each in judged.failures]


def test_on_the_embedded_broker(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        judgements = recorded(broker.address, tmp_path)
    assert blamed(judgements) == []
    assert set().union(*(judged.exercised for judged in judgements)) >= EXERCISED
    assert all(not judged.undecided for judged in judgements)


def test_on_rabbitmq(tmp_path: Path, rabbitmq_4_3: DockerBroker) -> None:
    judgements = recorded(rabbitmq_4_3.address, tmp_path, count=500)
    assert blamed(judgements) == []
    assert set().union(*(judged.exercised for judged in judgements)) >= EXERCISED


@pytest.mark.parametrize(
    ("fault", "requirement"), [("confirm-twice", "CONFIRM-003"), ("prefetch-off-by-one", "QOS-006")]
)
def test_a_planted_defect_is_caught(tmp_path: Path, fault: str, requirement: str) -> None:
    with EmbeddedBroker(fault=fault) as broker, recording(f"amqp://127.0.0.1:{broker.address.port}", tmp_path) as proxy:
        run_all(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", "app", 60, patience(20))
    assert {each.requirement for judged in judge_traces([tmp_path]) for each in judged.failures} == {requirement}
