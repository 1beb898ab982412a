"""The suite is measured by brokers that are wrong on purpose: each is caught, and the right requirement blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.runs import failed_requirements, run_suite


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught_by_the_scenarios_of_its_chapter(name: str, tmp_path: Path) -> None:
    wanted = FAULTS[name].requirement
    # how short a failure can be made is shown elsewhere
    result = run_suite(
        f"embedded:{name}", tmp_path, only=[wanted.split("-")[0]], enough=lambda failure: failure.requirement == wanted,
        deadline=0.3, shrinking_time=0.0, hasty=True,
    )  # fmt: skip
    assert result.exit_code == 1
    assert wanted in failed_requirements(result)


def test_sound_broker_conforms(tmp_path: Path) -> None:
    result = run_suite("embedded", tmp_path, sequences=50, seed=7)
    assert [found.failure for found in result.failures] == []
    assert result.exit_code == 0


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 80
