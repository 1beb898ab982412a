"""What the search leaves alone: rules that a broker breaks again and again, and that end the judging."""

from __future__ import annotations

import pytest

from amqpspec.conformance.verdicts.broken_rules import BrokenRules
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

COMES_BACK = Failure("ACK-013", Shape.UNEXPECTED, "basic.get-ok", "c", "o", (), ())
KNOWN = Failure("ACK-013", Shape.UNEXPECTED, "basic.get-ok", "c", "o", (), (), defect="some-defect")
DECLARED = Failure("QUEUE-001", Shape.UNEXPECTED, "connection.close in place of queue.declare-ok", "c", "o", (), ())


def _sequence(name: str, failure: Failure | None = None, seen: str = "ACK-013", ends: bool = True) -> SequenceJudgement:
    return SequenceJudgement(
        name, "t", "amqp-0-9-1", None, Verdict.FAIL if failure else Verdict.PASS, (failure,) if failure else (),
        {seen: 2}, None, 9, ended_by=failure.identity if failure and ends else None,
    )  # fmt: skip


def _learned(*sequences: SequenceJudgement) -> BrokenRules:
    broken = BrokenRules()
    for each in sequences:
        broken.note(each, each.sequence.startswith("scenario"))
    return broken


def test_a_scenario_is_enough_where_no_other_shows_the_rule_kept() -> None:
    broken = _learned(_sequence("scenario ACK-013", COMES_BACK))
    assert broken.avoided["ACK-013"] == COMES_BACK.identity
    # what RabbitMQ has as a rule of its own is the same rule in the text
    assert set(broken.avoided) == {"ACK-013", "DLX-005"}


def test_a_rule_that_is_kept_as_a_rule_is_not_left_alone() -> None:
    kept = [_sequence(f"scenario {number}") for number in range(3)]
    assert not _learned(_sequence("scenario ACK-013", COMES_BACK), *kept).avoided


@pytest.mark.parametrize(("times", "kept", "avoided"), [(2, 0, False), (3, 27, True), (3, 28, False)])
def test_of_the_search_three_are_needed_and_a_tenth(times: int, kept: int, avoided: bool) -> None:
    broken = _learned(
        *(_sequence(f"search {number}", COMES_BACK) for number in range(times)),
        *(_sequence(f"search {number}") for number in range(10, 10 + kept)),
    )
    assert ("ACK-013" in broken.avoided) is avoided


def test_only_what_ends_the_judging_counts() -> None:
    assert not _learned(_sequence("scenario ACK-013", COMES_BACK, ends=False)).avoided
    assert not _learned(_sequence("scenario ACK-013", KNOWN)).avoided


def test_what_every_application_does_is_searched_all_the_same() -> None:
    assert not _learned(*(_sequence(f"search {number}", DECLARED) for number in range(9))).avoided
