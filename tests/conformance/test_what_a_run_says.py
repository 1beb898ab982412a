"""What a run says of itself is true of that run: of a search that was not made it says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from junitparser import JUnitXml

from amqpspec.command_line import main


def _run(folder: Path, *options: str) -> tuple[dict[str, object], str, dict[str, float]]:
    """The report as JSON and HTML, and the seconds of each test case of the JUnit file that has some."""
    junit = folder / "junit.xml"
    target = ("embedded:unknown-tag-accepted", "--only", "ACK-00", "--seed", "1", "--shrinking-time", "0")
    assert main(["run", *target, "--out", str(folder), "--junit", str(junit), *options]) == 1
    (suite,) = JUnitXml.fromstring(junit.read_bytes())
    times = {case.name.split()[0]: case.time for case in suite if case.time}
    times["suite"] = suite.time
    return json.loads((folder / "report.json").read_text()), (folder / "report.html").read_text(), times


@pytest.mark.parametrize("sequences", ["0", "30"])
def test_only_a_search_left_something_alone(tmp_path: Path, sequences: str) -> None:
    report, page, _ = _run(tmp_path, "--sequences", sequences)
    left_alone = report["left_alone"]
    assert isinstance(left_alone, dict)
    assert ("ACK-006" in left_alone) is ("The search left alone" in page) is (sequences != "0")


def test_requirements_have_the_time_of_their_scenarios(tmp_path: Path) -> None:
    _, _, times = _run(tmp_path, "--sequences", "0", "--jobs", "1")
    suite = times.pop("suite")
    assert {"ACK-001", "ACK-006"} <= set(times)
    assert {id[:6] for id in times} == {"ACK-00"}, "what other requirements is exercised by the way is not counted"
    assert 0 < sum(times.values()) <= suite


def test_requirements_have_a_part_of_the_time_of_the_search(tmp_path: Path) -> None:
    _, _, times = _run(tmp_path, "--sequences", "30", "--jobs", "1")
    suite = times.pop("suite")
    assert {"ACK-001", "QUEUE-001", "PUBLISH-002"} <= set(times)
    assert 0 < sum(times.values()) <= suite, "no time is counted twice"
