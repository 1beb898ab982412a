"""What makes a run red: everything that breaks a promise, or only what is new to somebody who knows the broker.

A team that builds a broker takes the first gate. A team that runs RabbitMQ, and wants to know what an upgrade changes,
takes the second one. Of a broker that is no RabbitMQ neither gate counts what does nothing to an application, or is
compatibility with RabbitMQ and nothing else: such a failure is minor.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, TargetDescription
from amqpspec.model.defects.known_defects import is_as_known, strength_of
from amqpspec.model.promises.dialects import EMBEDDED_PRODUCT, dialect_named
from amqpspec.model.promises.severity import Severity, severity_of
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import RABBITMQ

#: Why a failure is minor.
WORDS_ONLY = "wrong words only"
COMPATIBILITY = "compatibility with RabbitMQ only"


class Gate(StrEnum):
    """By what the exit code goes."""

    PROMISE = "promise"
    #: known defects of the target's version (of its dialect, where the version is not known) are accepted
    KNOWN = "known"


def excuse_of(failure: Failure, target: TargetDescription, gate: Gate) -> str | None:
    """Why the gate accepts a failure; None: it does not."""
    if minor := _minor(failure, target):
        return minor
    if gate is Gate.KNOWN and is_as_known(failure, target.dialect, target.judged_version):
        return f"known defect {failure.defect}"
    return None


def _minor(failure: Failure, target: TargetDescription) -> str | None:
    """The embedded broker means to be a RabbitMQ."""
    if target.product in (RABBITMQ, EMBEDDED_PRODUCT):
        return None
    severity = severity_of(failure)
    if severity is Severity.WRONG_WORDS:
        return WORDS_ONLY
    is_text = not dialect_named(target.dialect).extensions
    if severity is Severity.WRONG_CODE and not is_text and strength_of(failure) is Strength.CONVENTIONAL:
        return COMPATIBILITY
    return None


def is_minor(found: FoundFailure) -> bool:
    return found.known in (WORDS_ONLY, COMPATIBILITY)


def through(result: RunResult, gate: Gate) -> RunResult:
    """The result with the failures marked that the gate accepts."""
    failures = tuple(
        replace(found, known=found.known or excuse_of(found.failure, result.target, gate)) for found in result.failures
    )
    return replace(result, failures=failures)
