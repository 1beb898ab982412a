"""Each recording is judged as it was when its expectation was written (README.md tells how to write it anew)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.expectations import changes, difference, expectation_file, recordings

#: A message names so many changes.
MOST_SHOWN = 30


@pytest.mark.parametrize("recording", recordings(), ids=lambda path: path.stem)
def test_recording_is_judged_as_before(recording: Path) -> None:
    assert expectation_file(recording).exists(), f"{recording.name} has no expectation"
    changed = changes(recording)
    if changed:
        more = [f"... and {len(changed) - MOST_SHOWN} more"] if len(changed) > MOST_SHOWN else []
        pytest.fail("\n".join([f"{recording.name} is judged otherwise:", *changed[:MOST_SHOWN], *more]), pytrace=False)


def test_there_are_recordings_of_every_broker() -> None:
    names = {path.stem.split("-s")[0] for path in recordings()}
    assert {"rabbitmq-3.10", "rabbitmq-4.0", "rabbitmq-4.3", "garagemq", "embedded"} <= names


def test_every_expectation_has_its_recording() -> None:
    kept = {path.stem for path in recordings()}
    assert {path.stem for path in Path(__file__).parent.glob("*.json")} == kept


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"frames": 3}, {"frames": 3}, []),
        ({"frames": 3}, {"frames": 4}, ["frames: 3 -> 4"]),
        (
            {"exercised": {"A": 1}},
            {"exercised": {"B": 1}},
            ["exercised: A: 1 -> nothing", "exercised: B: nothing -> 1"],
        ),
        ({}, {"s": {"x": {"verdict": "fail"}}}, ["s: x: verdict: nothing -> fail"]),
        ({"failures": ["A", "B"]}, {"failures": ["B", "C"]}, ["failures: - A", "failures: + C"]),
        ({"failures": ["A", "B"]}, {"failures": ["B", "A"]}, ["failures: in another order: B; A"]),
    ],
)
def test_a_change_is_told_in_a_line(before: dict[str, object], after: dict[str, object], lines: list[str]) -> None:
    assert list(difference(before, after)) == lines
