"""Which requirements made a difference in a world, and which in none."""

from __future__ import annotations

from collections.abc import Collection

from amqpspec.model.promises.registry import requirements


def asleep(exercised: Collection[str], dialects: Collection[str]) -> list[str]:
    """Identifiers of the requirements of those dialects that made no difference."""
    return sorted(each.id for each in requirements().values() if each.id not in exercised and _is_of(each, dialects))


def _is_of(requirement: object, dialects: Collection[str]) -> bool:
    return True
