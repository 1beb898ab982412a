"""What makes a run red: everything that breaks a promise, or only what is not known of the broker.

A team that builds a broker takes the first gate. A team that runs RabbitMQ, and wants to know what an upgrade changes,
takes the second one. Of a broker that is no RabbitMQ neither gate counts what is minor
(`conformance.verdicts.minor`).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, TargetDescription
from amqpspec.conformance.verdicts.minor import AS_RABBITMQ, COMPATIBILITY, RECOMMENDED, WORDS_ONLY, why_minor
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.verdict import Failure


class Gate(StrEnum):
    """By what the exit code goes."""

    PROMISE = "promise"
    #: known defects of the target's version (of its dialect, where the version is not known) are accepted
    KNOWN = "known"


def excuse_of(failure: Failure, target: TargetDescription, gate: Gate) -> str | None:
    """Why the gate accepts a failure; None: it does not."""
    if minor := why_minor(failure, target.product, target.dialect):
        return minor
    if gate is Gate.KNOWN and is_as_known(failure, target.dialect, target.judged_version):
        return f"known defect {failure.defect}"
    return None


def is_minor(found: FoundFailure) -> bool:
    return found.known in (RECOMMENDED, WORDS_ONLY, COMPATIBILITY, AS_RABBITMQ)


def is_warning(found: FoundFailure) -> bool:
    """Is it minor as the text only recommends what the broker does not do?"""
    return found.known == RECOMMENDED


def is_as_rabbitmq(found: FoundFailure) -> bool:
    """Is it against the text, as RabbitMQ does?"""
    return found.known == AS_RABBITMQ


def through(result: RunResult, gate: Gate) -> RunResult:
    """The result with the failures marked that the gate accepts."""
    failures = tuple(
        replace(found, known=found.known or excuse_of(found.failure, result.target, gate)) for found in result.failures
    )
    return replace(result, failures=failures)
