"""Scenarios that change the broker as a whole in one and the same way can run side by side."""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.conformance.language.command_file import CommandFile

_CONFIGURE, _RESET = "operator.configure", "operator.reset-configuration"


def configured_alike(scenarios: Iterable[CommandFile]) -> list[list[CommandFile]]:
    """In groups, in the order of their first ones: those that begin with one and the same configuration, and keep to
    it, and each of the others by itself.
    """
    groups: dict[str, list[CommandFile]] = {}
    for number, scenario in enumerate(scenarios):
        groups.setdefault(_configuration(scenario) or f"{number}", []).append(scenario)
    return list(groups.values())


def _configuration(scenario: CommandFile) -> str | None:
    first, *others = scenario.commands
    changes_it = any(command.method in (_CONFIGURE, _RESET, "operator.set-alarm") for command in others)
    return None if first.method != _CONFIGURE or changes_it else str(first)
