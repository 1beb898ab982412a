"""RabbitMQ's own ways: whoever has them is seen to, and whoever has others is told so, and fails nothing for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.shows import shows_of_ways
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import SeenWay, TargetDescription
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.reports.html import render_html
from amqpspec.reports.json_report import render_json
from amqpspec.reports.markdown import render_markdown
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.resolve import introduction
from amqpspec.targets.faults.compatible import COMPATIBLE_VARIANTS, DIALECT
from tests.reports.made_up import result


def _ways(dialect: Dialect, variant: str | None = None) -> dict[str, SeenWay]:
    fault = COMPATIBLE_VARIANTS[variant] if variant else None
    with EmbeddedBroker(dialect, fault=fault) as broker:
        properties, _ = introduction(broker.address)
        description = TargetDescription("t", str(properties["product"]), "1", "amqp-0-9-1")
        profile = measure(TargetUnderTest(broker.address, description, 2.0), None, (), ())
    return {each.name: each for each in profile.ways}


def test_who_is_rabbitmq_has_all_of_them() -> None:
    ways = _ways(dialect_named("rabbitmq-4.3"))
    assert ways.keys() == shows_of_ways().keys()
    assert [each.name for each in ways.values() if not each.is_same] == []


@pytest.mark.parametrize(
    ("variant", "way"), [("no-death-headers", "dead-letter-headers"), ("other-words", "missing-queue")]
)
def test_another_way_is_seen(variant: str, way: str) -> None:
    seen = _ways(DIALECT, variant)[way]
    assert not seen.is_same and seen.rabbitmq and seen.observed


WAYS = (SeenWay("one", "how one is", True), SeenWay("two", "how two is", False, "as it <is>", "as it was"))


def test_reports_have_a_section_that_decides_nothing() -> None:
    plain = result(failures=False, undecided=False)
    run = replace(plain, compatibility=WAYS)
    assert run.exit_code == plain.exit_code
    for text in (render_markdown(run), render_html(run)):
        assert "Compatibility with RabbitMQ" in text and "how two is" in text and "how one is" not in text
    assert "Compatibility with RabbitMQ" not in render_html(plain) + render_markdown(plain)
    assert [each["same"] for each in json.loads(render_json(run))["compatibility"]] == [True, False]
