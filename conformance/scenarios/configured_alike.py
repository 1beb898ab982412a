"""Scenarios that change the broker as a whole in one and the same way can run side by side."""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.faults import as_done, breaks_broker

_CONFIGURE = "operator.configure"
#: These change what all connections meet.
_OF_ALL = frozenset((_CONFIGURE, "operator.reset-configuration", "operator.set-alarm", "operator.clear-alarm"))


def changes_broker(commands: Iterable[Command]) -> bool:
    """Does one of them change the broker as a whole, so that they cannot run beside others?"""
    commands = list(commands)
    return breaks_broker(commands) or any(each.method in _OF_ALL or _takes_from_all(each) for each in commands)


def _takes_from_all(command: Command) -> bool:
    """Some brokers delete an exchange that is there from the beginning."""
    return command.method == "exchange.delete" and str(command.arguments.get("exchange", "")).startswith("amq.")


def configured_alike(scenarios: Iterable[CommandFile]) -> list[list[CommandFile]]:
    """In groups, in the order of their first ones: those that begin with one and the same configuration, and keep to
    it, and each of the others by itself.
    """
    groups: dict[str, list[CommandFile]] = {}
    for number, scenario in enumerate(scenarios):
        groups.setdefault(_configuration(scenario) or f"{number}", []).append(scenario)
    return list(groups.values())


def broken_alike(scenarios: Iterable[CommandFile]) -> list[list[CommandFile]]:
    """In groups, in the order of their first ones: during which the same happens to the broker. Those that change it in
    another way as well are groups by themselves.
    """
    groups: dict[tuple[str, ...], list[CommandFile]] = {}
    for number, scenario in enumerate(scenarios):
        key = tuple(map(str, as_done(scenario.commands)))
        if changes_broker(each for each in scenario.commands if not breaks_broker([each])):
            key = (*key, f"{number}")
        groups.setdefault(key, []).append(scenario)
    return list(groups.values())


def _configuration(scenario: CommandFile) -> str | None:
    first, *others = scenario.commands
    return None if first.method != _CONFIGURE or changes_broker(others) else str(first)
