"""What is undecided by a failure is accepted with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amqpspec.conformance.verdicts.ended_by import blocked_by, failure_behind, lost_by
from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, RunResult, TargetDescription
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

CRASH = Failure("SERVER-001", Shape.MISSING, "an answer behind tx.commit", "a.1 tx.commit", "reset", (), ())


def lost(known: str | None, reason: str) -> RunResult:
    """A run in which the broker ended in the one scenario of TX-001."""
    found = FoundFailure(CRASH, "scenario TX-001", known=known)
    decided = RequirementVerdict("SERVER-001", Verdict.FAIL, 1)
    requirement = RequirementVerdict("TX-001", Verdict.INCONCLUSIVE, 0, reason)
    target = TargetDescription("t", "p", "1", "amqp-0-9-1")
    return RunResult(
        "amqpspec", "0", target, 1, "lockstep", (decided, requirement), (found,), 10, 1,
        undecided=(("scenario TX-001", reason),),
    )  # fmt: skip


def test_from_words_to_the_failure() -> None:
    assert [failure_behind(said(CRASH.identity)) for said in (lost_by, blocked_by)] == [CRASH.identity] * 2
    assert failure_behind("more than 256 explanations") is failure_behind(None) is None


@pytest.mark.parametrize(
    ("known", "reason", "code"),
    [
        ("we live with it", lost_by(CRASH.identity), 0),
        ("we live with it", blocked_by(CRASH.identity), 0),
        (None, lost_by(CRASH.identity), 1),
        ("we live with it", lost_by("SERVER-001|missing frame|another"), 4),
        ("we live with it", "more than 256 explanations", 4),
    ],
)
def test_what_an_accepted_crash_hides_is_accepted(known: str | None, reason: str, code: int) -> None:
    assert lost(known, reason).exit_code == code


@pytest.mark.parametrize(("by", "code"), [(CRASH.identity, 0), ("PUBLISH-007|missing frame|basic.return", 4)])
def test_what_an_accepted_failure_cut_short_is_accepted(by: str, code: int) -> None:
    """Such a sequence has failed: it is not among those that are undecided."""
    assert replace(lost("we live with it", by), undecided=()).exit_code == code


def test_a_lost_target_is_never_accepted() -> None:
    assert replace(lost("we live with it", lost_by(CRASH.identity)), lost="no answer").exit_code == 3
