"""What a soak finds is known of the versions, queues and targets that it is a finding about, and of no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.soak.findings import CLOSED, Finding, What
from amqpspec.conformance.soak.judging import SoakJudgement
from amqpspec.conformance.soak.known import KNOWN, Known, known_finding
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.soak.windows import Window
from amqpspec.conformance.verdicts.judgement import TargetDescription

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("label", "dialect", "queue", "lines", "is_known"),
    [
        ("cluster:rabbitmq:4.3", "rabbitmq-4.3", "q", {CLOSED: 7}, True),
        ("cluster:rabbitmq:4.0", "rabbitmq-4.0", "q", {CLOSED: 7}, True),
        ("cluster:rabbitmq:3.10", "rabbitmq-3", "q", {CLOSED: 7}, False),
        ("docker:rabbitmq:4.3", "rabbitmq-4.3", "q", {CLOSED: 7}, False),
        ("cluster:rabbitmq:4.3", "rabbitmq-4.3", "q", {}, False),
        ("cluster:rabbitmq:4.3", "rabbitmq-4.3", "stream", {CLOSED: 7}, False),
    ],
)
def test_settlements_that_a_close_overtakes(
    label: str, dialect: str, queue: str, lines: dict[str, int], is_known: bool
) -> None:
    judgement = SoakJudgement(queue_types={"q": "classic", "stream": "stream"})
    finding = Finding(What.SETTLED, queue, "p1-1", 1.0, lines)
    target = TargetDescription(label, "RabbitMQ", "", dialect)
    assert bool(known_finding(finding, judgement, target)) is is_known


@pytest.mark.parametrize(
    ("kind", "killed_at", "published", "is_known"),
    [
        (Kind.KILL, 1.5, 1.2, True),
        (Kind.KILL, 1.5, 1.7, False),
        (Kind.KILL, 9.0, 1.2, False),
        (Kind.STOP, 1.5, 1.2, False),
    ],
)
def test_a_quorum_queue_that_is_killed_when_it_is_new(
    kind: Kind, killed_at: float, published: float, is_known: bool
) -> None:
    judgement = SoakJudgement(
        queue_types={"q": "quorum"}, declared={"q": 1.0}, windows=[Window(kind, killed_at, 7, end=4.0)]
    )
    finding = Finding(What.LOST_IN_RESTART, "q", "p1-1", 9.0, published=published)
    target = TargetDescription("docker:rabbitmq:4.3", "RabbitMQ", "", "rabbitmq-4.3")
    assert bool(known_finding(finding, judgement, target)) is is_known


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.finding[:40])
def test_what_is_known_can_be_read(known: Known) -> None:
    page, _, words = known.finding.rpartition(": ")
    text = (ROOT / (page or "docs/findings.md")).read_text(encoding="utf-8").replace("**", "")
    assert (words if page else f"\n## {words}\n").lower() in text.lower()
