"""The order of a dead letter's history up to 3.12 (rabbit_dead_letter:group_by_queue_and_reason).

Each further death turns the earlier ones around: third, first, second. What it says of each is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import HISTORY
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.patterns import AnyMoment


def _turns_around(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    if mismatch.argument != "properties" or method.content is None or not isinstance(mismatch.right, Mapping):
        return None
    right, told = _history(mismatch.right), _history(method.content.properties)
    if len(told) < 3 or right[0] != told[0] or not _same(right, told):
        return None
    headers = {**mismatch.right["headers"], HISTORY: told}
    if {**mismatch.right, "headers": headers} != method.content.properties:
        return None
    return (replace(mismatch, requirement="DLX-002", defect="deaths-turn-around"),)


def _history(properties: Mapping[str, Any]) -> list[Any]:
    history = (properties.get("headers") or {}).get(HISTORY)
    return history if isinstance(history, list) else []


def _same(one: list[Any], other: list[Any]) -> bool:
    """Are the entries the same, in whatever order? An entry of the broker has the moment that the broker says."""
    left = [_with_any_time(entry) for entry in other]
    for entry in map(_with_any_time, one):
        if entry not in left:
            return False
        left.remove(entry)
    return not left


def _with_any_time(entry: Any) -> Any:
    """The entry with no more of its time than that it has one: an entry that a publisher sent along may have none."""
    if not isinstance(entry, Mapping):
        return entry
    return {name: _has_time(value) if name == "time" else value for name, value in entry.items()}


def _has_time(value: Any) -> bool:
    return isinstance(value, AnyMoment | datetime)


DEATH_ORDER_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name="deaths-turn-around",
        requirement="DLX-002",
        statement="In the history of a dead letter each further death turns the order of the earlier ones: third,"
        " first, second.",
        source="v3.12.14 rabbit_dead_letter:group_by_queue_and_reason; mended in 3.13.0",
        dialects=("rabbitmq-3",),
        versions=(versions("3.10.0", "3.12.14"),),
        names=_turns_around,
    ),
)
