"""Which failed deliveries a dead letter takes along is free: no version is blamed for the ways of another (DLX-010)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.model.promises.choices import CarriedFailures
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from tests.end_to_end.runs import run_suite


@pytest.mark.parametrize("carried", CarriedFailures)
@pytest.mark.parametrize("version", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_each_way_is_right_in_each_version(version: str, carried: CarriedFailures, tmp_path: Path) -> None:
    """All that dead letters bring along, and the delivery limit of a further queue (DLX-010-limit)."""
    dialect = replace(dialect_named(version), carried_failures=carried)
    result = run_suite("embedded", tmp_path, only=("DLX-010",), dialect=dialect, judged_by=version)
    assert not result.failures
    assert next(each for each in result.requirements if each.id == "DLX-010").verdict is Verdict.PASS
