"""Tallies can be merged: neither how judgements are split among them nor the order of anything makes a difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpspec.conformance.verdicts import run_tally
from amqpspec.conformance.verdicts.ended_by import blocked_by
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.verdicts.tally import Part, Tally, tally_from_json, tally_to_json
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

DIALECT = "rabbitmq-4.3"
DEFECT = "quorum-consumer-count"
IDS = ("ACK-001", "QOS-001", "QUEUE-026")

failures = st.one_of(
    st.builds(
        Failure, st.sampled_from(IDS), st.sampled_from(Shape), st.sampled_from(("tag", "n")), st.just("a.1 tx.select"),
        st.sampled_from(("1", "2")), st.just(("0",)), st.just(()),
    ),
    st.builds(
        Failure, st.just("QUEUE-026"), st.just(Shape.WRONG_ARGUMENT), st.just("count"), st.just("a.1 queue.declare q"),
        st.sampled_from(("1", "2")), st.just(("0",)), st.just(()), st.just(DEFECT),
    ),
)  # fmt: skip
measurements = st.builds(
    Measurement, st.just("TIMEOUT-031"), st.just("basic.cancel"), st.floats(0, 9), st.just(0.5), st.just(0.0),
    st.sampled_from((0.001, 0.002, 5.0)),
)  # fmt: skip


@st.composite
def judgements(draw: st.DrawFn) -> SequenceJudgement:
    broken = tuple(draw(st.lists(failures, max_size=3)))
    other = st.sampled_from((Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE))
    return SequenceJudgement(
        sequence=draw(st.sampled_from(("one", "two", "three"))),
        target=draw(st.sampled_from(("here", "there"))),
        dialect=DIALECT,
        requirement=draw(st.sampled_from((None, *IDS))),
        verdict=Verdict.FAIL if broken else draw(other),
        failures=broken,
        exercised=draw(st.dictionaries(st.sampled_from(IDS), st.integers(0, 3))),
        reason=draw(st.sampled_from((None, "lost", "too many"))),
        frames=draw(st.integers(0, 9)),
        refuted=draw(st.sampled_from(((), (DEFECT,)))),
        measurements=tuple(draw(st.lists(measurements, max_size=2))),
        repeats=draw(st.sampled_from((None, None, None, "one"))),
    )


Numbered = tuple[int, SequenceJudgement]


def shared(data: st.DataObject, judged: Sequence[Numbered], kind: type[Any], *, numbered: bool) -> Any:
    """The judgements in any order, dealt out to some tallies, which are merged in any order and grouping."""
    heaps: list[Any] = [kind() for _ in range(data.draw(st.integers(1, 4)))]
    for number, judgement in data.draw(st.permutations(judged)):
        heap = heaps[data.draw(st.integers(0, len(heaps) - 1))]
        heap.add(judgement, number if numbered else None)
    while len(heaps) > 1:
        one = heaps.pop(data.draw(st.integers(0, len(heaps) - 1)))
        heaps[data.draw(st.integers(0, len(heaps) - 1))].merge(one)
    return heaps[0]


def parts(tally: Tally) -> list[Part]:
    return tally.parts()


def reported(tally: RunTally) -> list[Any]:
    """All that a report of a run takes from it, with its order."""
    return [
        tally.requirements(requirements().values(), DIALECT, {"ACK-001": "absent"}),
        list(tally.found.items()),
        (tally.sequences, tally.frames),
        tally.undecided,
        tally.measurements,
        tally.defects(DIALECT),
    ]


@settings(deadline=None)
@given(judged=st.lists(judgements(), max_size=8), data=st.data())
def test_any_split_and_order_add_up_to_the_same(judged: list[SequenceJudgement], data: st.DataObject) -> None:
    numbered = list(enumerate(judged))
    whole = Tally()
    for _, judgement in numbered:
        whole.add(judgement)
    assert parts(shared(data, numbered, Tally, numbered=False)) == parts(whole)


@settings(deadline=None)
@given(judged=st.lists(judgements(), max_size=8), data=st.data())
def test_any_split_and_order_make_the_same_report(judged: list[SequenceJudgement], data: st.DataObject) -> None:
    whole = RunTally()
    for judgement in judged:
        whole.add(judgement)
    assert reported(shared(data, list(enumerate(judged)), RunTally, numbered=True)) == reported(whole)


@settings(deadline=None)
@given(judged=st.lists(judgements(), max_size=4))
def test_a_tally_that_was_written_is_the_same(judged: list[SequenceJudgement]) -> None:
    tally = Tally()
    for number, judgement in enumerate(judged):
        tally.add(judgement, number)
    again = tally_from_json(json.loads(json.dumps(tally_to_json(tally))))
    assert parts(again) == parts(tally)


def test_what_is_merged_stays_as_it_is() -> None:
    judgement = SequenceJudgement("s", "t", DIALECT, None, Verdict.PASS, (), {"ACK-001": 1}, None, 10)
    one, other = Tally(), Tally()
    other.add(judgement)
    one.merge(other)
    one.add(judgement)
    assert {part.sequences for part in other.parts()} == {1}
    assert {part.sequences for part in one.parts()} == {2}


def test_examples_are_of_the_first_sequence_of_a_run_and_of_the_first_by_name_elsewhere() -> None:
    failure = Failure("ACK-001", Shape.UNEXPECTED, "d", "", "", (), ())
    run, bulk = RunTally(), Tally()
    for name in ("z", "a"):
        judgement = SequenceJudgement(name, "t", DIALECT, None, Verdict.FAIL, (failure,), {}, None, 1)
        run.add(judgement)
        bulk.add(judgement)
    assert [found.sequence for found in run.found.values()] == ["z"]
    assert {part.example for part in bulk.parts()} == {"a"}


def test_only_so_many_undecided_sequences_are_listed(monkeypatch: Any) -> None:
    monkeypatch.setattr(run_tally, "MAX_UNDECIDED", 2)
    tallies = RunTally(), RunTally()
    for number in range(6):
        name = f"search {number}"
        judgement = SequenceJudgement(name, "t", DIALECT, None, Verdict.INCONCLUSIVE, (), {}, "lost", 1)
        tallies[number % 2].add(judgement, number)
    tallies[1].merge(tallies[0])
    assert tallies[1].undecided == [("search 0", "lost"), ("search 1", "lost")]
    assert tallies[1].sequences == 6


def test_what_is_not_listed_by_name_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tally, "MAX_UNDECIDED", 3)
    tally, other = RunTally(), RunTally()
    for number in range(5):
        half = tally if number % 2 else other
        half.add(undecided(f"search {number}", "it ended early" if number else blocked_by("ACK-001|x|y")), number)
    tally.merge(other)
    assert len(tally.undecided) == 3
    assert tally.undecided_of == {None: 4, "ACK-001|x|y": 1}


def undecided(sequence: str, reason: str) -> SequenceJudgement:
    return SequenceJudgement(
        sequence=sequence, target="t", dialect=DIALECT, requirement=None, verdict=Verdict.INCONCLUSIVE, failures=(),
        exercised={}, reason=reason, frames=1,
    )  # fmt: skip
