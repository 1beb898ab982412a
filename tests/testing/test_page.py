"""The page "RabbitMQ in your tests": each of its programs is a test file that passes, and it lists all there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpspec.testing import FAULTS, EmbeddedBroker

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing-with-rabbitmq.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 11 == PAGE.count("```") / 2


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_each_program_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, spread: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(**{f"test_program_{number}": program for number, program in enumerate(PROGRAMS)})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "amqpspec.pytest_plugin", *spread)
    several = sum(int(times) - 1 for times in re.findall(r"parametrize\(.*range\((\d+)\)", PAGE))
    tests = re.findall(r"^(?:async )?def test_", "".join(PROGRAMS), re.MULTILINE)
    result.assert_outcomes(passed=len(tests) + several)


def test_all_faults_are_listed() -> None:
    assert re.findall(r'^\| `"([a-z-]+)"', PAGE, re.MULTILINE) == list(FAULTS)


def test_all_methods_are_listed() -> None:
    table = PAGE.partition("## All of it")[2]
    public = [name for name in vars(EmbeddedBroker) if not name.startswith("_")]
    missing = [name for name in public if not re.search(rf"`{name}[`(]", table)]
    assert missing == ["failures"]
