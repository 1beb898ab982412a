"""The command files that show a choice (`shows/`, named after it), an extension (`extensions/`), another meaning of one
(`meanings/`), what the suite looks by (`means_otherwise/`), a setting of RabbitMQ (`of_settings/`), a way of
RabbitMQ's own (`of_ways/`), or a feature that is not judged (`told/`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import CommandFile, read_command_file
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.protocol.methods import Table

#: Feature to the names of the arguments and properties that ask for it, where these are not its own.
_WORDS = {"streams": ("x-queue-type", "x-stream-offset"), "CC": ("headers",), "BCC": ("headers",)}
_DIRECTORY = Path(__file__).parent


@cache
def shows() -> Mapping[str, CommandFile]:
    """By the name of the choice."""
    return _read(_DIRECTORY / "shows")


@cache
def shows_of_extensions() -> Mapping[str, CommandFile]:
    """By the name of the capability."""
    return _read(_DIRECTORY / "extensions")


@cache
def shows_of_meanings() -> Mapping[str, CommandFile]:
    """By the name of the feature: what else a broker may mean by its word. From the queue `r` on it goes
    otherwise there
    than RabbitMQ has it.
    """
    return _read(_DIRECTORY / "meanings")


@cache
def means_otherwise() -> Mapping[str, CommandFile]:
    """By the name of the choice: what it is looked at by once more, where it is a means and its file shows nothing."""
    return _read(_DIRECTORY / "means_otherwise")


@cache
def shows_of_settings() -> Mapping[str, CommandFile]:
    """By the name of the setting (`model.promises.settings`)."""
    return _read(_DIRECTORY / "of_settings")


@cache
def shows_of_ways() -> Mapping[str, CommandFile]:
    """By a name of the way; its title says what it is about."""
    return _read(_DIRECTORY / "of_ways")


@cache
def shows_of_told() -> Mapping[str, CommandFile]:
    """By the name of a feature that is tried and told, and not judged (`model.promises.features.TOLD`)."""
    return _read(_DIRECTORY / "told")


@cache
def without_words(feature: str) -> CommandFile | None:
    """The commands that show the feature, and nothing in them that asks for it; None: they cannot do without."""
    file = shows_of_extensions()[feature]
    words = _WORDS.get(feature, (feature, feature.replace("-", "_")))
    commands = tuple(_without(command, words) for command in file.commands)
    return None if commands == file.commands else replace(file, commands=commands)


def _without(command: Command, words: Collection[str]) -> Command:
    """Without these arguments and properties, and with a queue of no meaning in place of that for direct replies."""

    def cleared(values: Mapping[str, Any]) -> Table:
        kept = {name: value for name, value in values.items() if name not in words}
        return {name: "replies" if value == REPLY_TO else value for name, value in kept.items()}

    arguments, content = cleared(command.arguments), command.content
    if table := arguments.get("arguments"):
        arguments["arguments"] = cleared(table)
    if content is not None:
        content = replace(content, properties=cleared(content.properties))
    return replace(command, arguments=arguments, content=content)


def gentle() -> list[str]:
    """The choices and capabilities that are shown by what every broker survives."""
    return [name for name, file in {**shows(), **shows_of_extensions(), **shows_of_told()}.items() if not file.rough]


def _read(directory: Path) -> Mapping[str, CommandFile]:
    return {path.stem: read_command_file(path)[0] for path in sorted(directory.glob("*.amqp"))}
