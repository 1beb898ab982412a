"""What the text of 0-9-1 only recommends: it says SHOULD, so that who does not do it breaks no promise.

Such a failure is a warning. It is one where a broker is held to the text; a broker of another dialect is held to what
RabbitMQ does, which is more than the text asks for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.verdict import Failure, Shape

_TEXT = "amqp-0-9-1"


class _Row(NamedTuple):
    """A failure of that requirement and shape, whose whole detail and whose observation are that (both patterns)."""

    requirement: str
    shape: Shape
    detail: str
    observed: str
    #: what the text says, with the place
    sentence: str


_TABLE = (
    _Row(
        "CONN-025",
        Shape.WRONG_ARGUMENT,
        r"connection\.start server-properties",
        r".*",
        'connection.start: "The properties SHOULD contain at least these fields"',
    ),
    # what comes back in another form than it should is no matter of whether the flag is known
    _Row(
        "PUBLISH-007",
        Shape.MISSING,
        r"basic\.return",
        r".*",
        'basic.publish: "The server SHOULD implement the mandatory flag."',
    ),
    # the other way round a broker says what is not true; what basic.recover brings back MUST have it, and a stream's
    # messages have none
    _Row(
        "ACK-015",
        Shape.WRONG_ARGUMENT,
        r"basic\.(deliver|get-ok) redelivered",
        r".* redelivered=false .*",
        'redelivered: "The server SHOULD try to signal redelivered messages when it can."',
    ),
)


def recommendation(failure: Failure, dialect: str) -> str | None:
    """The sentence with SHOULD that the broker does not follow; None: the failure breaks a promise."""
    if base_of(dialect) != _TEXT:
        return None
    for row in _TABLE:
        if (failure.requirement, failure.shape) != (row.requirement, row.shape):
            continue
        if re.fullmatch(row.detail, failure.detail) and re.fullmatch(row.observed, failure.observed, re.DOTALL):
            return row.sentence
    return None
