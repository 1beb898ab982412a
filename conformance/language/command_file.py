"""Command files: scenarios, shrunk counterexamples and regressions, all in the command language.

Lines that begin with `@` say what the file is:

    @requirement ACK-002            the requirement that it is written for (scenarios); with @severity, an identifier of
                                    one's own
    @title …                        a sentence
    @severity stuck                 of a rule of one's own: what it does to an application if that is broken
    @queue-types classic quorum     run once for each, `$type` standing for it; none: run once
    @dialects rabbitmq-3 …          only these; none: all
    @judged-by amqp-0-9-1+…         of a failure: the dialect of that run, by which replay judges a product that is not
                                    known, unless it is told another one
    @own …                          it shows a way of RabbitMQ's own, this one: no other product is asked for it
    @waits                          spends its time waiting, so it runs beside others
    @alone                          changes the broker as a whole, so it runs beside no other (but those that begin
                                    with the same operator.configure)
    @rough                          sends what a broker may not survive, so it runs after the others
    @slow                           asks for what may take a sound broker long, so that it is always waited for as long
                                    as was said at first (conformance.session.patience)

A line `1..60: COMMAND` stands for sixty commands, in which `$n` is 1, 2, 3 and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from amqpspec.conformance.language.command import EXPECT, Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.command_parsing import CommandSyntaxError, parse_command
from amqpspec.model.promises.dialects import DIALECTS, UnknownDialect, dialect_named
from amqpspec.model.promises.registry import IDENTIFIER, requirements, suite_requirements
from amqpspec.model.promises.severity import Severity
from amqpspec.model.protocol.methods import OPERATOR, Content, event_of
from amqpspec.targets.codec.methods_codec import EncodingError, encode

KEYS = (
    "requirement", "title", "severity", "queue-types", "dialects", "judged-by", "own", "waits", "alone", "rough", "slow"
)  # fmt: skip
QUEUE_TYPES = ("classic", "quorum", "stream")
#: Most commands that one line stands for.
MOST_REPEATED = 1000
_REPEATED = re.compile(r"\s*([0-9]{1,9})\.\.([0-9]{1,9}):\s*")
_FLAGS = ("waits", "alone", "rough", "slow")
_CHOICES = {"queue-types": ("queue type", QUEUE_TYPES), "dialects": ("dialect", tuple(DIALECTS))}


class CommandFileError(Exception):
    """A command file cannot be read; the message says file, line and column."""


@dataclass(frozen=True, slots=True)
class CommandFile:
    """The commands of one file, for one queue type if it names any."""

    name: str
    commands: tuple[Command, ...]
    requirement: str | None = None
    title: str = ""
    #: of a rule of one's own (`model.promises.severity.Severity`); "": the requirement is one of the suite's
    severity: str = ""
    queue_type: str | None = None
    dialects: tuple[str, ...] = ()
    #: the dialect of the run that the file is a failure of; "": of none
    judged_by: str = ""
    #: the way of RabbitMQ's own that it shows; "": it can be carried out by any product
    own: str = ""
    #: it spends its time waiting, so it runs beside others; it changes the broker as a whole, so it runs beside none
    waits: bool = False
    alone: bool = False
    #: it sends what a broker may not survive, so it runs after the others
    rough: bool = False
    #: what it asks for may take a sound broker long
    slow: bool = False


def read_command_file(path: Path) -> list[CommandFile]:
    """Read a file; one result for each queue type. Raises `CommandFileError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of Windows put a mark at the beginning
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
        severity=said.get("severity", ""),
        dialects=tuple(said.get("dialects", "").split()),
        judged_by=said.get("judged-by", ""),
        own=said.get("own", ""),
        waits="waits" in said,
        alone="alone" in said,
        rough="rough" in said,
        slow="slow" in said,
    )
    files = []
    for queue_type in types or (None,):
        commands = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("@") or line.lstrip().startswith("#"):
                continue
            try:
                commands += _commands(line.replace("$type", queue_type) if queue_type else line)
            except CommandSyntaxError as error:
                column = _column(line, "$type", queue_type, error.column) if queue_type else error.column
                raise CommandFileError(f"{where}:{number}:{column}: {error.message}") from None
        files.append(replace(base, commands=tuple(commands), queue_type=queue_type))
    if not files[0].commands:
        raise CommandFileError(f"{where}:1:1: the file holds no command")
    return files


def judged_by(dialect: str) -> str:
    """The line of a file of a failure that was judged by that dialect; "": it is RabbitMQ's, and that of the target."""
    return "" if dialect_named(dialect).extensions else f"@judged-by {dialect}\n"


def _commands(line: str) -> list[Command]:
    """The command of a line, or those that it stands for."""
    repeated = _REPEATED.match(line)
    if repeated is None:
        return [_sendable(parse_command(line))]
    first, last = int(repeated[1]), int(repeated[2])
    if not first <= last < first + MOST_REPEATED:
        raise CommandSyntaxError(f"{first}..{last} is no range of 1 to {MOST_REPEATED} numbers", 1)
    behind = line[repeated.end() :]
    commands = []
    for number in map(str, range(first, last + 1)):
        try:
            commands.append(_sendable(parse_command(behind.replace("$n", number))))
        except CommandSyntaxError as error:
            column = _column(behind, "$n", number, error.column) + repeated.end()
            raise CommandSyntaxError(error.message, column) from None
    return commands


def _sendable(command: Command) -> Command:
    """The command, if it can be sent: else it would only be told when what stands before it was carried out."""
    if command.connection in (OPERATOR, EXPECT) or not command.channel:
        return command  # no frame is made of it, or one in which much is filled in
    properties = {} if command.content is None else dict(command.content.properties)
    if properties.get("headers") == LAST_HEADERS:
        del properties["headers"]  # they are what has come by then
    content = None if command.content is None else Content(properties, b"")
    name, channel = command.connection, command.channel
    try:
        encode(event_of(name, channel, command.method, dict(command.arguments), sent=True, content=content))
    except EncodingError as error:
        raise CommandSyntaxError(str(error), 1) from None
    return command


def _column(line: str, placeholder: str, value: str, column: int) -> int:
    """The column in `line` of one in the line as it was read, in which `value` stands for the placeholder.

    One within a value is that of the placeholder's first character.
    """
    # characters that are passed, of `line` and of the line as it was read
    written = read = 0
    for piece in line.split(placeholder)[:-1]:
        if column <= read + len(piece):
            break
        written, read = written + len(piece), read + len(piece)
        if column <= read + len(value):
            return written + 1
        written, read = written + len(placeholder), read + len(value)
    return column - read + written


def _head(text: str, where: str) -> tuple[dict[str, str], list[str]]:
    said: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("@"):
            continue
        key, _, value = line[1:].partition(" ")
        if key not in KEYS:
            raise CommandFileError(f"{where}:{number}:2: @{key} is none of {', '.join('@' + k for k in KEYS)}")
        if key in said:
            raise CommandFileError(f"{where}:{number}:1: @{key} is given twice")
        said[key] = value.strip()
        if key in _FLAGS and said[key]:
            raise CommandFileError(f"{where}:{number}:{len(key) + 3}: @{key} stands alone on its line")
        if key == "severity" and said[key] not in tuple(Severity):
            what = f"{said[key]!r} is not a severity ({', '.join(Severity)})"
            raise CommandFileError(f"{where}:{number}:{len(key) + 3}: {what}")
        if key == "judged-by":
            try:
                dialect_named(said[key])
            except UnknownDialect as error:
                raise CommandFileError(f"{where}:{number}:{len(key) + 3}: {error}") from None
        what, choices = _CHOICES.get(key, ("", ()))
        for word in said[key].split() if choices else ():
            if word not in choices:
                column = line.index(word, len(key) + 1) + 1
                raise CommandFileError(f"{where}:{number}:{column}: {word!r} is not a {what} ({', '.join(choices)})")
    if problem := _problem_of_requirement(said):
        lines = enumerate(text.splitlines(), 1)
        number, column = next(((n, 14) for n, line in lines if line.startswith("@requirement ")), (1, 1))
        raise CommandFileError(f"{where}:{number}:{column}: {problem}")
    types = said.get("queue-types", "").split()
    return said, types


def _problem_of_requirement(said: Mapping[str, str]) -> str:
    """What is wrong with the requirement that the file names; "": nothing is."""
    id, registered = said.get("requirement"), suite_requirements()
    if "severity" not in said:
        if id is None or id in requirements():
            return ""
        return f"{id!r} is no requirement (amqpspec requirements lists them; one of your own has a line @severity)"
    if id is None:
        return "@severity is of a rule of one's own, whose identifier @requirement gives"
    if not IDENTIFIER.fullmatch(id):
        return f"{id!r} is no identifier such as ORDERS-001"
    if not said.get("title"):
        return f"{id} is a rule of one's own, which has a line @title"
    area = id.rpartition("-")[0]
    if area in {each.rpartition("-")[0] for each in registered}:
        return f"{id}: {area} is an area of the suite; a rule of your own has another one"
    return ""
