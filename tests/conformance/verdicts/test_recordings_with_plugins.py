"""Recordings of brokers with plugins: no false alarm, whether they are judged in lockstep or in the open world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.judge import judge, judge_open
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Verdict

CORPUS = Path(__file__).parents[2] / "corpus"
Judge = Callable[[Iterable[TraceRow]], SequenceJudgement]
WORDS = {
    "hash": "x-consistent-hash",
    "random": "x-random",
    "history": "x-recent-history",
    "event": "amq.rabbitmq.event",
}


def recorded(version: str) -> dict[str, list[TraceRow]]:
    """The rows of each sequence, by the name of its command file."""
    found: dict[str, list[TraceRow]] = {}
    for row in read_trace(CORPUS / f"rabbitmq-{version}-plugins.parquet"):
        found.setdefault(row["sequence"].removeprefix("replay "), []).append(row)
    return found


def changed(rows: Iterable[TraceRow], method: str, change: Callable[[TraceRow], Iterable[TraceRow]]) -> list[TraceRow]:
    """With the last frame of that method from the broker replaced by what it is changed into."""
    whole = list(rows)
    places = [
        place for place, row in enumerate(whole) if row.get("method") == method and row["direction"] == "received"
    ]
    place = places[-1]
    return [*whole[:place], *change(whole[place]), *whole[place + 1 :]]


@pytest.mark.parametrize("version", ["3.10", "4.3"])
@pytest.mark.parametrize("name", WORDS)
def test_what_depends_on_the_word_is_undecided(version: str, name: str) -> None:
    judgement = judge(recorded(version)[name])
    assert (judgement.verdict, judgement.failures) == (Verdict.INCONCLUSIVE, ())
    assert judgement.reason is not None and WORDS[name] in judgement.reason


@pytest.mark.parametrize("version", ["3.10", "4.3"])
def test_in_the_open_world_nothing_fails(version: str) -> None:
    for name, rows in recorded(version).items():
        judgement = judge_open(rows)
        assert (judgement.verdict, judgement.failures) == (Verdict.PASS, ()), name


@pytest.mark.parametrize("judged", [judge, judge_open])
@pytest.mark.parametrize(("method", "requirement"), [("basic.ack", "CONFIRM-003"), ("basic.deliver", "CONSUME-014")])
def test_what_does_not_depend_on_it_fails(judged: Judge, method: str, requirement: str) -> None:
    """A confirm that comes twice, and a delivery that does."""
    judgement = judged(changed(recorded("4.3")["random"], method, lambda row: (row, row)))
    assert judgement.verdict is Verdict.FAIL
    assert requirement in {failure.requirement for failure in judgement.failures}
