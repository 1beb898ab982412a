"""Failures that follow from one before them: a broker that takes a delivery tag which it has to refuse settles by it,
or not, whatever it likes. What is lost or comes again behind that is the same mistake, whichever rule shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from amqpspec.conformance.verdicts.blame import blamed
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.verdict import Failure, Shape

_TAKEN = re.compile(r"channel\.close for basic\.(?:ack|nack|reject)$")
_OF_MESSAGES = re.compile(
    r"messages ready$|basic\.(?:deliver|get-ok)$|basic\.get-empty although .+|.+-ok message-count$"
)
#: Rules of no mistake in particular.
_GENERAL = frozenset({"ACK-001", "GET-001", "PUBLISH-002", "QUEUE-001"})


def as_reported(failures: Iterable[Failure], dialect: Dialect) -> list[tuple[Failure, Failure | None]]:
    """Each failure of a sequence, in its order, beside what it is reported as; None: it is none (`blamed`)."""
    told: list[tuple[Failure, Failure | None]] = []
    cause = ""
    for failure in failures:
        reported = blamed(failure, dialect)
        if cause and reported is not None and reported.requirement in _GENERAL and _is_of_messages(reported):
            reported = replace(reported, requirement=cause)
        is_taken = failure.shape is Shape.MISSING and _TAKEN.match(failure.detail) and not failure.defect
        if is_taken and not cause and reported is not None and not dialect.extensions:
            cause = reported.requirement
        told.append((failure, reported))
    return told


def _is_of_messages(failure: Failure) -> bool:
    return not failure.defect and _OF_MESSAGES.match(failure.detail) is not None
