"""The two gates: everything that breaks a promise, or only what is new to somebody who knows the broker."""

from __future__ import annotations

import pytest

from amqpspec.conformance.verdicts.gate import Gate, through
from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, RunResult, TargetDescription
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

RABBITMQ_4_3 = TargetDescription("t", "RabbitMQ", "4.3.6", "rabbitmq-4.3")


def result(*defects: str, target: TargetDescription = RABBITMQ_4_3) -> RunResult:
    failures = tuple(
        FoundFailure(Failure("QUEUE-026", Shape.WRONG_ARGUMENT, "d", "c", "o", (), (), defect), "s")
        for defect in defects
    )
    return RunResult("amqpspec", "0", target, 1, "lockstep", (), failures, 100, 1)


@pytest.mark.parametrize(
    ("gate", "defects", "code"),
    [
        (Gate.PROMISE, (), 0),
        (Gate.PROMISE, ("quorum-consumer-count",), 1),
        (Gate.KNOWN, ("quorum-consumer-count",), 0),
        (Gate.KNOWN, ("quorum-consumer-count", ""), 1),
        # of another version
        (Gate.KNOWN, ("cancel-leaves-backlog",), 1),
    ],
)
def test_what_fails_a_run(gate: Gate, defects: tuple[str, ...], code: int) -> None:
    assert through(result(*defects), gate).exit_code == code


def test_a_failure_that_is_accepted_says_why() -> None:
    (found,) = through(result("quorum-consumer-count"), Gate.KNOWN).failures
    assert found.known == "known defect quorum-consumer-count"


@pytest.mark.parametrize(("undecided", "sequences", "code"), [(1, 100, 0), (2, 100, 4), (1, 99, 4), (10, 1000, 0)])
def test_one_sequence_in_a_hundred_may_stay_undecided(undecided: int, sequences: int, code: int) -> None:
    names = tuple((f"search {number}", "too many explanations") for number in range(undecided))
    run = RunResult("amqpspec", "0", RABBITMQ_4_3, 1, "lockstep", (), (), sequences, 1, undecided=names)
    assert run.exit_code == code


def test_a_requirement_that_was_not_decided_is_not_let_through() -> None:
    requirement = RequirementVerdict("ACK-001", Verdict.INCONCLUSIVE, 0, "why")
    run = RunResult("amqpspec", "0", RABBITMQ_4_3, 1, "lockstep", (requirement,), (), 1000, 1)
    assert run.exit_code == 4
