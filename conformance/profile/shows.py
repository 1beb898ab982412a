"""The command files that show a choice (`shows/`, named after it), an extension (`extensions/`), another meaning of one
(`meanings/`), a setting of RabbitMQ (`of_settings/`), or a way of RabbitMQ's own (`of_ways/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from amqpspec.conformance.language.command_file import CommandFile, read_command_file

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
def shows_of_settings() -> Mapping[str, CommandFile]:
    """By the name of the setting (`model.promises.settings`)."""
    return _read(_DIRECTORY / "of_settings")


@cache
def shows_of_ways() -> Mapping[str, CommandFile]:
    """By a name of the way; its title says what it is about."""
    return _read(_DIRECTORY / "of_ways")


def gentle() -> list[str]:
    """The choices and capabilities that are shown by what every broker survives."""
    return [name for name, file in {**shows(), **shows_of_extensions()}.items() if not file.rough]


def _read(directory: Path) -> Mapping[str, CommandFile]:
    return {path.stem: read_command_file(path)[0] for path in sorted(directory.glob("*.amqp"))}
