"""What a command can do without, and is sent all the same: bits, entries of argument tables, basic properties."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_arguments import ARGUMENTS, BIT
from amqpspec.model.protocol.methods import Table


class _Part(Enum):
    BIT = auto()
    TABLE = auto()
    PROPERTIES = auto()


@dataclass(frozen=True, slots=True)
class OptionalArgument:
    """One of them, by where it stands in the command and by its name there."""

    part: _Part
    name: str


def optional_arguments(command: Command) -> list[OptionalArgument]:
    """All that may be left out of the command."""
    kinds = ARGUMENTS.get(command.method, {})
    bits = [name for name, value in command.arguments.items() if kinds.get(name) == BIT and value is True]
    found = [OptionalArgument(_Part.BIT, name) for name in bits]
    found += [OptionalArgument(_Part.TABLE, name) for name in command.arguments.get("arguments") or ()]
    if command.content is not None:
        found += [OptionalArgument(_Part.PROPERTIES, name) for name in command.content.properties]
    return found


def with_only(command: Command, kept: Set[OptionalArgument]) -> Command:
    """The command without the optional arguments that are not among these."""
    out = set(optional_arguments(command)) - kept
    if not out:
        return command
    arguments = _left(command.arguments, _Part.BIT, out)
    if table := _left(arguments.pop("arguments", None) or {}, _Part.TABLE, out):
        arguments["arguments"] = table
    content = command.content
    if content is not None:
        content = replace(content, properties=_left(content.properties, _Part.PROPERTIES, out))
    return replace(command, arguments=arguments, content=content)


def _left(named: Mapping[str, Any], part: _Part, out: Set[OptionalArgument]) -> Table:
    return {name: value for name, value in named.items() if OptionalArgument(part, name) not in out}
