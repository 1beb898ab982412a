"""The order in which every report lists failures, and the heading that each comes under.

What is new comes first, the gravest at the head, and behind it what was not seen again; then what is known, accepted or
minor; last what is against the text as RabbitMQ is. Terminal, JSON, HTML, JUnit and Markdown all go by this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

from amqpspec.conformance.verdicts.gate import is_as_rabbitmq
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.reports.overview import Entry

#: The heading of what is against the text as RabbitMQ is.
AS_RABBITMQ_HEADING = "Against the text, as RabbitMQ does"
#: What is said below it.
AS_RABBITMQ_HINT = (
    "The text of 0-9-1 says otherwise, and RabbitMQ does the same: its dialect permits what the broker did. It fails"
    " no run"
)


class Heading(IntEnum):
    """What a failure comes under, in the order of the reports."""

    NEW = 0
    KNOWN = 1
    AS_RABBITMQ = 2


def heading_of(found: FoundFailure, result: RunResult) -> Heading:
    if is_as_rabbitmq(found):
        return Heading.AS_RABBITMQ
    return Heading.NEW if found.known is None and not result.is_as_known(found) else Heading.KNOWN


def in_order(result: RunResult) -> list[FoundFailure]:
    """All failures, as they are listed."""
    return sorted(result.failures, key=lambda found: (heading_of(found, result), found.order))


def pairs(listed: Iterable[Entry], result: RunResult) -> list[tuple[Entry, FoundFailure]]:
    """Each failure with its requirement, as they are listed."""
    by_id = {entry.id: entry for entry in listed}
    return [(entry, found) for found in in_order(result) if (entry := by_id.get(found.failure.requirement)) is not None]


def failing(listed: Iterable[Entry], result: RunResult) -> tuple[Entry, ...]:
    """Those with failures, by the first that they have, in whose order those of each are."""
    place = {found.failure.identity: place for place, found in enumerate(in_order(result))}
    sorted_in = (
        replace(entry, failures=tuple(sorted(entry.failures, key=lambda found: place[found.failure.identity])))
        for entry in listed
        if entry.failures
    )
    return tuple(sorted(sorted_in, key=lambda entry: place[entry.failures[0].failure.identity]))
