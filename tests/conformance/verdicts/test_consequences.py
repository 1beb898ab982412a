"""What follows from a delivery tag that was taken is told as that."""

from __future__ import annotations

from amqpspec.conformance.verdicts.consequences import as_reported
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.verdict import Failure, Shape

TEXT = DIALECTS["amqp-0-9-1"]


def failure(requirement: str, shape: Shape, detail: str, command: str) -> Failure:
    return Failure(requirement, shape, detail, command, "nothing", (), ())


TAKEN = failure("ACK-010", Shape.MISSING, "channel.close for basic.ack", "a.2 basic.ack 1")
LOST = failure("QUEUE-001", Shape.MISSING, "messages ready", "a socket.abort")
OF_ITS_OWN = failure("TX-002", Shape.MISSING, "messages ready", "a.1 tx.commit")


def identities(*failures: Failure, dialect: str = "amqp-0-9-1") -> list[str]:
    told = as_reported(failures, DIALECTS[dialect])
    assert [each for each, _ in told] == list(failures)
    return [reported.identity for _, reported in told if reported is not None]


def test_what_is_lost_behind_a_tag_that_was_taken_is_that() -> None:
    assert identities(TAKEN, LOST) == [TAKEN.identity, "ACK-010|missing frame|messages ready"]
    (_, (_, reported)) = as_reported([TAKEN, LOST], TEXT)
    assert reported is not None and severity_of(reported) is Severity.LOST


def test_what_came_before_or_has_a_rule_of_its_own_stays_what_it_is() -> None:
    assert identities(LOST, TAKEN, OF_ITS_OWN) == [each.identity for each in (LOST, TAKEN, OF_ITS_OWN)]
    replied = failure("QUEUE-001", Shape.MISSING, "queue.declare-ok", "a.1 queue.declare q")
    assert identities(TAKEN, replied) == [TAKEN.identity, replied.identity]


def test_rabbitmqs_failures_stay_what_they_are() -> None:
    assert identities(TAKEN, LOST, dialect="rabbitmq-4.3") == [TAKEN.identity, LOST.identity]
