"""The section *compatibility with RabbitMQ*: what a product that is not RabbitMQ does as RabbitMQ does, and otherwise.

It is for who brings applications of RabbitMQ along. It decides nothing, and has no part in the exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amqpspec.conformance.verdicts.judgement import SeenWay

COMPATIBILITY_HEADING = "Compatibility with RabbitMQ"


def compatibility_line(ways: Sequence[SeenWay]) -> str:
    """A sentence without its full stop."""
    same = sum(each.is_same for each in ways)
    return (
        f"Of {len(ways)} ways of RabbitMQ's that were looked at, this broker has {same}; that decides nothing, "
        "and is for who brings applications of RabbitMQ along"
    )


def otherwise(ways: Sequence[SeenWay]) -> list[SeenWay]:
    """Those that it does not have."""
    return [each for each in ways if not each.is_same]


def compatibility_as_json(ways: Sequence[SeenWay]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "about": each.about,
            "same": each.is_same,
            "rabbitmq": each.rabbitmq or None,
            "observed": each.observed or None,
        }
        for each in ways
    ]
