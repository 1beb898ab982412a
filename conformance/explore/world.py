"""Worlds: what a small exploration begins with, and which commands its clients may send how often.

A world is a TOML file:

    title = "Settlement with multiple"     a sentence
    dialects = ["rabbitmq-4.3"]            each makes a world of its own
    queue-types = ["classic", "quorum"]    likewise, `$type` standing for it; left out: one without
    crossing = true                        commands are sent while the broker still owes something; else when it is
                                           quiet, and all is at rest then
    inputs = 6                             most commands in one sequence
    states = 20000                         most states: where there are more the report says so; left out: no bound
    setup = ["a.1 queue.declare q"]        carried out first
    commands = ["2x a.1 basic.publish q"]  each once in a sequence, or so often

A publish without a body gets one that no other has: m1, m2, and so on.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import QUEUE_TYPES, CommandFileError
from amqpspec.conformance.language.command_parsing import CommandSyntaxError, parse_command
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, DIALECTS
from amqpspec.model.protocol.methods import CLOCK_WAIT, Content

FOLDER = Path(__file__).parent / "worlds"

_TIMES = re.compile(r"([1-9][0-9]?)x +")
_KEYS: Mapping[str, type[Any]] = {
    "title": str, "dialects": list, "queue-types": list, "crossing": bool, "inputs": int, "states": int,
    "setup": list, "commands": list,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """One small world, of one dialect and one type of queue."""

    name: str
    title: str
    dialect: str
    setup: tuple[Command, ...]
    #: what clients may send, and how often in one sequence
    commands: tuple[Command, ...]
    times: tuple[int, ...]
    #: most commands in one sequence
    inputs: int
    #: commands are sent while the broker still owes something
    crossing: bool = True
    #: most states; 0: no bound
    states: int = 0
    #: the commands come in their order, each when the broker is quiet but where the one before is not waited for
    ordered: bool = False

    @property
    def has_time(self) -> bool:
        """Does time pass in it?"""
        return any(command.method == CLOCK_WAIT for command in self.commands)

    def command(self, place: int, number: int) -> Command:
        """The command at that place, sent as the one of that number in its sequence, from 1."""
        command = self.commands[place]
        content = command.content
        if content is None or content.body or self.ordered:
            return command
        return replace(command, content=Content(content.properties, f"m{number}".encode()))


def worlds() -> list[World]:
    """Those that come with the project."""
    return [world for path in sorted(FOLDER.glob("*.toml")) for world in read_world(path)]


def read_world(path: Path) -> list[World]:
    """The worlds of a file, one for each dialect and type of queues. Raises `CommandFileError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandFileError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CommandFileError(f"{path}: not UTF-8") from None
    return parse_world(text, path)


def parse_world(text: str, path: Path) -> list[World]:
    """Like `read_world`; `path` begins error messages, and names the worlds."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CommandFileError(f"{path}: {error}") from None
    return list(_worlds(path, said))


def _worlds(path: Path, said: Mapping[str, Any]) -> Iterator[World]:
    for key, value in said.items():
        if key not in _KEYS:
            raise CommandFileError(f"{path}: {key} is none of {', '.join(_KEYS)}")
        is_right = type(value) is _KEYS[key]
        if not is_right or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
            kind = {str: "a text", bool: "true or false", int: "a number", list: "a list of texts"}[_KEYS[key]]
            raise CommandFileError(f"{path}: {key} must be {kind}")
    dialects: list[str] = said.get("dialects", [DEFAULT_DIALECT.name])
    types: list[str | None] = said.get("queue-types", [None])
    for name in dialects:
        if name not in DIALECTS:
            raise CommandFileError(f"{path}: {name!r} is not a dialect")
    for type_ in types:
        if type_ is not None and type_ not in QUEUE_TYPES:
            raise CommandFileError(f"{path}: {type_!r} is not a queue type")
    if not said.get("commands"):
        raise CommandFileError(f"{path}: commands are missing")
    for dialect in dialects:
        for queue_type in types:
            parts = [path.stem, (queue_type or "") if len(types) > 1 else "", dialect if len(dialects) > 1 else ""]
            commands, times = _commands(path, said["commands"], queue_type)
            setup, _ = _commands(path, said.get("setup", []), queue_type)
            yield World(
                " ".join(filter(None, parts)), said.get("title", ""), dialect, setup, commands, times,
                said.get("inputs", sum(times)), said.get("crossing", True), said.get("states", 0),
            )  # fmt: skip


def _commands(
    path: Path, lines: list[str], queue_type: str | None
) -> tuple[tuple[Command, ...], tuple[int, ...]]:
    commands, times = [], []
    for line in lines:
        said = _TIMES.match(line)
        text = line[said.end() :] if said else line
        try:
            commands.append(parse_command(text.replace("$type", queue_type) if queue_type else text))
        except CommandSyntaxError as error:
            raise CommandFileError(f"{path}: {line!r}: {error.message}") from None
        times.append(int(said[1]) if said else 1)
    return tuple(commands), tuple(times)
