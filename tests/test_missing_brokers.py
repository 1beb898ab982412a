"""A broker that the machine cannot run is reported: skipped by name and listed, or failed where required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import BROKER_IMAGES

_ROOT = Path(__file__).resolve().parent.parent
_TEST = "tests/targets/brokers/test_docker_broker.py::test_every_broker_can_be_logged_in_to"


def run_without_docker(**environment: str) -> subprocess.CompletedProcess[str]:
    settings = {name: value for name, value in os.environ.items() if name != "AMQPSPEC_REQUIRE_BROKERS"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", _TEST],
        cwd=_ROOT,
        env=settings | {"DOCKER_HOST": "tcp://127.0.0.1:1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_missing_brokers_are_skipped_by_name_and_listed() -> None:
    outcome = run_without_docker()
    assert outcome.returncode == pytest.ExitCode.OK
    assert f"{len(BROKER_IMAGES)} skipped" in outcome.stdout and "passed" not in outcome.stdout
    listed = outcome.stdout.partition("MISSING BROKERS")[2]
    assert all(f"\n{name}: " in listed for name in BROKER_IMAGES)
    assert "have NOT been run" in listed


def test_missing_brokers_fail_where_they_are_required() -> None:
    outcome = run_without_docker(AMQPSPEC_REQUIRE_BROKERS="1")
    assert outcome.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"{len(BROKER_IMAGES)} error" in outcome.stdout and "MISSING BROKER: garagemq" in outcome.stdout
