"""The open world is sound: on recordings of real brokers it blames nothing where the whole law blames nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.verdicts.judge import judge_open
from amqpspec.model.promises.verdict import Verdict
from amqpspec.pipeline.judging.conservation import conservation_of
from tests.corpus.expectations import DIRECTORY

RECORDINGS = sorted(DIRECTORY.glob("*.parquet"))


def failed_live(rows: list[TraceRow]) -> bool:
    return any(row["kind"] == "end" and row["failures"] for row in rows)


def found(recording: str) -> Iterator[tuple[bool, str]]:
    """For each sequence that the open world says fails: whether it did live, and what is said."""
    for rows in sequences(read_trace(DIRECTORY / f"{recording}.parquet")):
        judgement = judge_open(rows)
        if judgement.verdict is Verdict.FAIL:
            yield failed_live(rows), f"{rows[0]['sequence']}: {[each.identity for each in judgement.failures]}"


@pytest.mark.parametrize("recording", [each.stem for each in RECORDINGS])
def test_nothing_is_blamed_that_the_law_permits(recording: str) -> None:
    assert [said for failed, said in found(recording) if not failed] == []


def test_conservation_blames_nothing_that_the_law_permits() -> None:
    wrong = []
    for file in RECORDINGS:
        for rows in sequences(read_trace(file)):
            violations = conservation_of([rows]).violations
            if violations and not failed_live(rows):
                wrong.append((file.stem, rows[0]["sequence"], violations[0].what))
    assert wrong == []


def test_a_trace_of_the_suite_can_be_judged_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--open", "--quiet", str(DIRECTORY / "rabbitmq-3.10-search-traffic.parquet")]) in (0, 4)
    assert "frames judged" in capsys.readouterr().out


def test_faulty_variants_are_caught() -> None:
    assert len({said for _, said in found("embedded-faults")}) >= 25
