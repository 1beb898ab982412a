"""What a queue has to be for a change to be met, decided by the arguments that it was declared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amqpspec.model.promises.queue_types import QueueType

CLASSIC, QUORUM, STREAM = (each.value for each in (QueueType.CLASSIC, QueueType.QUORUM, QueueType.STREAM))
#: By a type: any other.
OTHER_THAN = {each: f"not {each}" for each in (CLASSIC, QUORUM, STREAM)}
ACTIVE = "quorum with a single active consumer"
QUORUM_UNLIMITED = "quorum without a delivery limit"
QUORUM_NO_LIMIT = "quorum without x-delivery-limit"
QUORUM_TTL = "quorum with a time to live"

_Arguments = Mapping[str, Any]


def _type(arguments: _Arguments) -> str:
    return str(arguments.get("x-queue-type", CLASSIC))


def _is_quorum(arguments: _Arguments) -> bool:
    return _type(arguments) == str(QUORUM)


def _limit(arguments: _Arguments) -> int | None:
    limit = arguments.get("x-delivery-limit")
    return limit if isinstance(limit, int) else None


def _is_unlimited(arguments: _Arguments, limited: bool) -> bool:
    limit = _limit(arguments)
    return not limited if limit is None else limit < 0


#: By need: is a queue that was declared with these arguments so? The second is whether the broker has a limit of its
#: own for a queue without x-delivery-limit.
NEEDS: Mapping[str, Callable[[_Arguments, bool], bool]] = {
    CLASSIC: lambda arguments, limited: _type(arguments) == CLASSIC,
    QUORUM: lambda arguments, limited: _is_quorum(arguments),
    STREAM: lambda arguments, limited: _type(arguments) == STREAM,
    OTHER_THAN[CLASSIC]: lambda arguments, limited: _type(arguments) != CLASSIC,
    OTHER_THAN[QUORUM]: lambda arguments, limited: _type(arguments) != QUORUM,
    OTHER_THAN[STREAM]: lambda arguments, limited: _type(arguments) != STREAM,
    ACTIVE: lambda arguments, limited: _is_quorum(arguments) and bool(arguments.get("x-single-active-consumer")),
    QUORUM_NO_LIMIT: lambda arguments, limited: _is_quorum(arguments) and _limit(arguments) is None,
    QUORUM_UNLIMITED: lambda arguments, limited: _is_quorum(arguments) and _is_unlimited(arguments, limited),
    QUORUM_TTL: lambda arguments, limited: _is_quorum(arguments) and "x-message-ttl" in arguments,
}
