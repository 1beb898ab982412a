"""Which requirements made a difference in a world, and which in none."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.scenarios.applicability import needs_operator
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.model.promises.registry import Requirement, applies, requirements

#: Octets of a content beyond which no world has it.
LARGE = 100_000


def in_reach(dialects: Collection[str]) -> list[str]:
    """Identifiers of the requirements of those dialects that some scenario shows without an operator, a cluster or
    large content.
    """
    shown = {each.requirement for each in all_scenarios() if each.requirement and _is_plain(each.commands)}
    return [id for id, each in requirements().items() if id in shown and _holds_in(each, dialects)]


def asleep(exercised: Collection[str], dialects: Collection[str]) -> list[str]:
    """Of these, those that made no difference."""
    return [id for id in in_reach(dialects) if id not in exercised]


def _holds_in(requirement: Requirement, dialects: Collection[str]) -> bool:
    return any(applies(requirement, dialect) for dialect in dialects)


def _is_plain(commands: Iterable[Command]) -> bool:
    commands = list(commands)
    if needs_operator(commands):
        return False
    for each in commands:
        if "@" in each.connection or "node" in each.arguments or each.method.startswith(("network.", "queue.transfer")):
            return False
        if each.content is not None and len(each.content.body) > LARGE:
            return False
    return True
