"""The suite is measured by brokers that are wrong on purpose: each is caught, and the right requirement blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.fault_searches import area
from tests.end_to_end.runs import failed_requirements, run_suite

#: The first fault of each area.
ONE_OF_EACH_AREA = {area(name): name for name in reversed(FAULTS)}.values()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.quick if name in ONE_OF_EACH_AREA else ()) for name in FAULTS]
)
def test_fault_is_caught_by_the_scenarios_of_its_chapter(name: str, tmp_path: Path) -> None:
    """Mostly by those of its requirement: the others of the chapter are run where these are not enough."""
    wanted = FAULTS[name].requirement
    for only in (wanted, area(name)):
        # how short a failure can be made is shown elsewhere
        result = run_suite(
            f"embedded:{name}", tmp_path, only=[only], enough=lambda failure: failure.requirement == wanted,
            deadline=0.3, shrinking_time=0.0, fast_forward=True,
        )  # fmt: skip
        if wanted in failed_requirements(result):
            break
    assert result.exit_code == 1
    assert wanted in failed_requirements(result)


@pytest.mark.quick
def test_sound_broker_conforms_in_a_short_search(tmp_path: Path) -> None:
    """That it does in all scenarios is shown by `test_run_conforms_and_writes_its_files` of the command line."""
    result = run_suite("embedded", tmp_path, search_only=True, sequences=50, seed=7)
    assert [found.failure for found in result.failures] == []
    assert result.exit_code == 0


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 80
