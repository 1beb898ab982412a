"""The two gates: everything that breaks a promise, or only what is new to somebody who knows the broker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amqpspec.conformance.verdicts.gate import Gate, is_minor, through
from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, RunResult, TargetDescription
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.reports.overview import headline

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


@pytest.mark.parametrize(
    ("undecided", "sequences", "code"),
    [(1, 100, 0), (2, 100, 4), (1, 50, 0), (1, 49, 4), (10, 1000, 0), (11, 1000, 4)],
)
def test_one_sequence_in_a_hundred_may_stay_undecided(undecided: int, sequences: int, code: int) -> None:
    names = tuple((f"search {number}", "too many explanations") for number in range(undecided))
    run = RunResult("amqpspec", "0", RABBITMQ_4_3, 1, "lockstep", (), (), sequences, 1, undecided=names)
    assert run.exit_code == code


def test_a_requirement_that_was_not_decided_is_not_let_through() -> None:
    requirement = RequirementVerdict("ACK-001", Verdict.INCONCLUSIVE, 0, "why")
    run = RunResult("amqpspec", "0", RABBITMQ_4_3, 1, "lockstep", (requirement,), (), 1000, 1)
    assert run.exit_code == 4


WORDS = Failure("CHAN-008", Shape.WRONG_ARGUMENT, "channel.close reply-text", "c", "o", (), ())
#: RabbitMQ's code for what the text does not name
CODE = Failure("EXCHANGE-003", Shape.WRONG_ARGUMENT, "channel.close reply-code", "c", "o", (), ())
#: a code that the text names
CODE_OF_THE_TEXT = Failure("TX-001", Shape.WRONG_ARGUMENT, "channel.close reply-code", "c", "o", (), ())
#: a convention that clients rely on
GRAVE = Failure("ACK-016", Shape.UNEXPECTED, "basic.deliver", "c", "o", (), ())


@pytest.mark.parametrize("gate", Gate)
@pytest.mark.parametrize(
    ("product", "dialect", "failure", "code"),
    [
        ("GarageMQ", "rabbitmq-4.3", WORDS, 0),
        ("GarageMQ", "rabbitmq-4.3", CODE, 0),
        ("GarageMQ", "rabbitmq-4.3", CODE_OF_THE_TEXT, 1),
        ("GarageMQ", "rabbitmq-4.3", GRAVE, 1),
        # by the text, what is demanded is no matter of compatibility
        ("GarageMQ", "amqp-0-9-1", CODE, 1),
        ("RabbitMQ", "rabbitmq-4.3", WORDS, 1),
        ("RabbitMQ", "rabbitmq-4.3", CODE, 1),
        # the embedded broker, whose faulty variants are all to be caught
        ("amqpspec", "rabbitmq-4.3", WORDS, 1),
    ],
)
def test_what_is_only_compatibility_with_rabbitmq_fails_no_other_product(
    gate: Gate, product: str, dialect: str, failure: Failure, code: int
) -> None:
    target = TargetDescription("t", product, "1", dialect)
    run = through(replace(result(target=target), failures=(FoundFailure(failure, "s"),)), gate)
    assert run.exit_code == code
    assert is_minor(run.failures[0]) is (code == 0)
    said = "Deviates from the promise: 1 new failure" if code else "Conforms, but for 1 minor failure"
    assert headline(run) == said
