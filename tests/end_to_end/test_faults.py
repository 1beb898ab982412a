"""The suite is measured by brokers that are wrong on purpose: each is caught, and the right requirement blamed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance import run
from conformance.command_file import CommandFile
from conformance.scenario_files import selected
from targets.faults import FAULTS
from tests.end_to_end.runs import failed_requirements, run_suite

#: Those that take their time to show, and how many of these are run at one time.
SLOW = [name for name, fault in FAULTS.items() if fault.requirement.startswith("TIMEOUT")]
AT_ONCE = 8


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in SLOW])
def test_fault_is_caught_by_the_scenarios_of_its_chapter(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS[name]

    def quick(prefixes: Sequence[str], dialect: str) -> list[CommandFile]:
        """Without those that only wait."""
        return [each for each in selected(prefixes, dialect) if not each.waits or each.requirement == fault.requirement]

    monkeypatch.setattr(run, "selected", quick)
    chapter = fault.requirement.split("-")[0]
    # how short a failure can be made is shown elsewhere
    result = run_suite(f"embedded:{name}", tmp_path, only=[chapter], deadline=0.3, shrinking_time=1.0)
    assert result.exit_code == 1
    assert fault.requirement in failed_requirements(result)


def test_slow_faults_are_caught_by_the_scenarios_of_their_requirement(tmp_path: Path) -> None:
    def blamed_for(name: str) -> set[str]:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        only = [FAULTS[name].requirement]
        return failed_requirements(
            run_suite(f"embedded:{name}", directory, only=only, deadline=1.0, shrinking_time=0.0)
        )

    def blamed_for_each(names: Sequence[str]) -> dict[str, set[str]]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip(names, pool.map(blamed_for, names), strict=True))

    blamed = blamed_for_each(SLOW)
    # on a busy machine a short wait may have seen nothing, or too much
    blamed |= blamed_for_each([name for name in SLOW if blamed[name] != {FAULTS[name].requirement}])
    assert blamed == {name: {FAULTS[name].requirement} for name in SLOW}


def test_sound_broker_conforms(tmp_path: Path) -> None:
    result = run_suite("embedded", tmp_path, sequences=50, seed=7)
    assert [found.failure for found in result.failures] == []
    assert result.exit_code == 0


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 80
