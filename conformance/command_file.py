"""Command files: scenarios, shrunk counterexamples and regressions, all in the command language.

Lines that begin with `@` say what the file is:

    @requirement ACK-002            the requirement that it is written for (scenarios)
    @title …                        a sentence
    @queue-types classic quorum     run once for each, `$type` standing for it; none: run once
    @dialects rabbitmq-3 …          only these; none: all
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from conformance.command import Command, CommandSyntaxError, parse_command

KEYS = ("requirement", "title", "queue-types", "dialects")
QUEUE_TYPES = ("classic", "quorum", "stream")


class CommandFileError(Exception):
    """A command file cannot be read; the message says file, line and column."""


@dataclass(frozen=True, slots=True)
class CommandFile:
    """The commands of one file, for one queue type if it names any."""

    name: str
    commands: tuple[Command, ...]
    requirement: str | None = None
    title: str = ""
    queue_type: str | None = None
    dialects: tuple[str, ...] = ()


def read_command_file(path: Path) -> list[CommandFile]:
    """Read a file; one result for each queue type. Raises `CommandFileError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise CommandFileError(f"{path}: {reason}") from None
    return parse_command_file(text, str(path), path.stem)


def parse_command_file(text: str, where: str = "<text>", name: str = "text") -> list[CommandFile]:
    """Like `read_command_file`; `where` begins error messages, `name` is the name of the results."""
    said, types = _head(text, where)
    base = CommandFile(
        name,
        (),
        requirement=said.get("requirement"),
        title=said.get("title", ""),
        dialects=tuple(said.get("dialects", "").split()),
    )
    files = []
    for queue_type in types or (None,):
        commands = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.lstrip().startswith(("#", "@")):
                continue
            try:
                commands.append(parse_command(line.replace("$type", queue_type) if queue_type else line))
            except CommandSyntaxError as error:
                raise CommandFileError(f"{where}:{number}:{error.column}: {error.message}") from None
        files.append(replace(base, commands=tuple(commands), queue_type=queue_type))
    if not files[0].commands:
        raise CommandFileError(f"{where}:1:1: the file holds no command")
    return files


def _head(text: str, where: str) -> tuple[dict[str, str], list[str]]:
    said: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("@"):
            continue
        key, _, value = line[1:].partition(" ")
        if key not in KEYS:
            raise CommandFileError(f"{where}:{number}:2: @{key} is none of {', '.join('@' + k for k in KEYS)}")
        said[key] = value.strip()
    types = said.get("queue-types", "").split()
    for queue_type in types:
        if queue_type not in QUEUE_TYPES:
            raise CommandFileError(f"{where}:1:1: {queue_type!r} is not a queue type ({', '.join(QUEUE_TYPES)})")
    return said, types


def print_command_file(file: CommandFile) -> str:
    """The text of a file that gives these commands."""
    lines = []
    if file.requirement:
        lines.append(f"@requirement {file.requirement}")
    if file.title:
        lines.append(f"@title {file.title}")
    if file.dialects:
        lines.append(f"@dialects {' '.join(file.dialects)}")
    return "\n".join([*lines, *map(str, file.commands), ""])
