"""Adding up: what one sequence says of a requirement, and what many say together."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from amqpspec.conformance.traces.trace_failures import failure_from_json, failure_to_json
from amqpspec.conformance.verdicts.judgement import (
    FoundFailure,
    RequirementVerdict,
    RunResult,
    SequenceJudgement,
    TargetDescription,
    requirement_verdicts,
)
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict


def failure(requirement: str, detail: str = "d") -> Failure:
    return Failure(requirement, Shape.UNEXPECTED, detail, "a.1 basic.ack tag=1", "seen", ("a", "b"), ("s",))


def judged(verdict: Verdict, aim: str | None = None, **changes: Any) -> SequenceJudgement:
    values: dict[str, Any] = {
        "sequence": "s", "target": "t", "dialect": "rabbitmq-4.3", "requirement": aim, "verdict": verdict,
        "failures": (), "exercised": {}, "reason": None, "frames": 10,
    }  # fmt: skip
    return SequenceJudgement(**values | changes)


def registered(id: str, *dialects: str) -> Requirement:
    return Requirement(
        id, "area", "title", "statement", "0-9-1", "source", ("any",), dict.fromkeys(dialects, "as stated"),
        "observable", "exact", "no",
    )  # fmt: skip


def test_a_sequence_speaks_for_what_it_exercised_and_what_it_broke() -> None:
    judgement = judged(
        Verdict.FAIL, "ACK-001", failures=(failure("QOS-001"),), exercised={"ACK-002": 3, "QOS-001": 1, "TX-001": 0}
    )
    assert requirement_verdicts(judgement) == {
        "ACK-001": (Verdict.NOT_EXERCISED, Verdict.NOT_EXERCISED, 0),
        "ACK-002": (Verdict.PASS, Verdict.PASS, 3),
        "QOS-001": (Verdict.FAIL, Verdict.FAIL, 1),
    }


@pytest.mark.parametrize("verdict", [Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE])
def test_the_aim_shares_the_fate_of_its_sequence(verdict: Verdict) -> None:
    assert requirement_verdicts(judged(verdict, "ACK-001")) == {"ACK-001": (verdict, verdict, 0)}


def test_an_aim_that_was_exercised_before_the_sequence_became_inconclusive_does_not_pass() -> None:
    judgement = judged(Verdict.INCONCLUSIVE, "ACK-001", exercised={"ACK-001": 2})
    assert requirement_verdicts(judgement) == {"ACK-001": (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, 2)}


def test_an_inconclusive_search_is_not_lost() -> None:
    assert requirement_verdicts(judged(Verdict.INCONCLUSIVE)) == {"": (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, 0)}


JUDGEMENTS = {
    Verdict.FAIL: judged(Verdict.FAIL, "ACK-001", failures=(failure("ACK-001"),)),
    Verdict.INCONCLUSIVE: judged(Verdict.INCONCLUSIVE, "ACK-001", reason="too many explanations"),
    Verdict.PASS: judged(Verdict.PASS, "ACK-001", exercised={"ACK-001": 1}),
    Verdict.NOT_EXERCISED: judged(Verdict.PASS, "ACK-001"),
    Verdict.NOT_APPLICABLE: judged(Verdict.NOT_APPLICABLE, "ACK-001", reason="no administrator"),
}


@pytest.mark.parametrize("pair", list(permutations(JUDGEMENTS, 2)))
def test_of_two_sequences_the_worse_verdict_stands(pair: tuple[Verdict, Verdict]) -> None:
    tally = RunTally()
    for verdict in pair:
        tally.add(JUDGEMENTS[verdict])
    order = list(JUDGEMENTS)
    assert tally.verdict("ACK-001") is min(pair, key=order.index)


def test_the_registry_decides_where_no_sequence_did() -> None:
    tally = RunTally()
    tally.add(judged(Verdict.PASS, None, exercised={"ACK-001": 4}))
    tally.add(judged(Verdict.INCONCLUSIVE, "ACK-002", reason="lost"))
    tally.add(judged(Verdict.NOT_APPLICABLE, "ACK-003", reason="no quorum queues"))
    tally.add(judged(Verdict.FAIL, None, failures=(failure("ACK-006"), failure("NEW-001"))))
    registry = [
        registered("ACK-001", "rabbitmq-4.3"),
        registered("ACK-002", "rabbitmq-4.3"),
        registered("ACK-003", "rabbitmq-4.3"),
        registered("ACK-004", "rabbitmq-4.3"),
        registered("ACK-005", "rabbitmq-3"),
        registered("ACK-006", "rabbitmq-3"),
        registered("ACK-007", "rabbitmq-4.3"),
    ]
    assert tally.requirements(registry, "rabbitmq-4.3", {"ACK-007": "needs a policy", "ACK-006": "absent"}) == (
        RequirementVerdict("ACK-001", Verdict.PASS, 4),
        RequirementVerdict("ACK-002", Verdict.INCONCLUSIVE, 0, "lost"),
        RequirementVerdict("ACK-003", Verdict.NOT_APPLICABLE, 0, "no quorum queues"),
        RequirementVerdict("ACK-004", Verdict.NOT_EXERCISED, 0),
        RequirementVerdict("ACK-005", Verdict.NOT_APPLICABLE, 0, "rabbitmq-4.3 has no such rule"),
        RequirementVerdict("ACK-006", Verdict.FAIL, 0),
        RequirementVerdict("ACK-007", Verdict.NOT_APPLICABLE, 0, "needs a policy"),
        RequirementVerdict("NEW-001", Verdict.FAIL, 0),
    )


def test_equal_failures_are_found_once_and_counted_by_sequence() -> None:
    tally = RunTally()
    twice = (failure("ACK-001"), failure("ACK-001"), failure("ACK-001", "other"))
    for name in ("first", "second", "third"):
        tally.add(judged(Verdict.FAIL, sequence=name, failures=twice))
    assert {(found.failure.detail, found.sequence, found.sequences) for found in tally.found.values()} == {
        ("d", "first", 3),
        ("other", "first", 3),
    }
    assert (tally.sequences, tally.frames) == (3, 30)


def test_a_failure_survives_being_written() -> None:
    assert failure_from_json(failure_to_json(failure("ACK-001"))) == failure("ACK-001")
    with pytest.raises(ValueError, match="odd frame"):
        failure_from_json(failure_to_json(failure("ACK-001")) | {"shape": "odd frame"})


NEW = FoundFailure(failure("ACK-001"), "s")
KNOWN = FoundFailure(failure("ACK-001"), "s", known="D-0001")
UNDECIDED = RequirementVerdict("ACK-002", Verdict.INCONCLUSIVE, 0, "lost")


@pytest.mark.parametrize(
    ("failures", "requirements", "undecided", "expected"),
    [
        ((), (), (), 0),
        ((KNOWN,), (), (), 0),
        ((KNOWN, NEW), (UNDECIDED,), (), 1),
        ((KNOWN,), (UNDECIDED,), (), 4),
        ((), (), (("search 1", "lost"),), 4),
    ],
)
def test_the_exit_code_of_a_run(failures: Any, requirements: Any, undecided: Any, expected: int) -> None:
    target = TargetDescription("t", "p", "v", "d")
    result = RunResult("amqpspec", "0", target, 1, "burst", requirements, failures, 1, 1, undecided)
    assert result.exit_code == expected
    assert set(result.summary) == {"pass", "fail", "inconclusive", "not applicable", "not exercised"}
    assert sum(result.summary.values()) == len(requirements)
