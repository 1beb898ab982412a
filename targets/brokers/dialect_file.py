"""A dialect in a file: the text of 0-9-1 with what a broker has beside it, and the choices that it made.

`amqpspec profile TARGET --toml FILE` writes such a file, `--dialect FILE` takes it, and so does the file of an in-house
broker. It is for people to read and to change:

base = "amqp-0-9-1"                                  # or a dialect of RabbitMQ, whose choices are its settings
extensions = ["basic.nack", "publisher_confirms"]    # optional, as the choices

[choices]
immediate = "refused"
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.dialects.settled import ALL_CHOICES, UnknownChoice, with_choices, with_settings

_KEYS = ("base", "extensions", "choices")


class DialectFileError(ValueError):
    """The file cannot be used: one line that names it, the line where that is known, and what is wrong."""


class _Wrong(ValueError):
    """What is wrong with the value of a key. `key` is looked for in the file, to name its line."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def read_dialect_file(path: Path) -> Dialect:
    """The dialect that the file describes; its name says all. Raises `DialectFileError`."""
    try:
        text = path.read_text(encoding="utf-8")
        return _dialect(tomllib.loads(text))
    except (OSError, UnicodeDecodeError) as error:
        raise DialectFileError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise DialectFileError(f"{path}: {error}") from None
    except _Wrong as error:
        raise DialectFileError(f"{path}:{_line_of(error.key, text)}: {error}") from None


def _line_of(key: str, text: str) -> int:
    """The first line that begins with the key or its table; 1 where nothing does."""
    begins = (key, f'"{key}"', f"'{key}'", f"[{key}]")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if line.strip().startswith(begins)), 1)


def _dialect(table: dict[str, Any]) -> Dialect:
    """Raises `_Wrong`."""
    if not table:
        raise _Wrong("base", f"the file says nothing: it needs one of {', '.join(_KEYS)}")
    if unknown := [key for key in table if key not in _KEYS]:
        raise _Wrong(unknown[0], f"{unknown[0]!r} is none of {', '.join(_KEYS)}")
    base = table.get("base", AMQP_0_9_1.name)
    if not isinstance(base, str) or base not in DIALECTS:
        raise _Wrong("base", f"base is {base!r}, and none of {', '.join(DIALECTS)}")
    extensions, choices = table.get("extensions", []), table.get("choices", {})
    if not isinstance(extensions, list) or not all(isinstance(each, str) for each in extensions):
        raise _Wrong("extensions", "extensions is no list of texts")
    if not isinstance(choices, dict):
        raise _Wrong("choices", "choices is no table")
    if base != AMQP_0_9_1.name and extensions:
        raise _Wrong("extensions", f"extensions are for the base {AMQP_0_9_1.name}: {base} has its own")
    if unknown := [each for each in extensions if each not in EXTENSIONS]:
        raise _Wrong("extensions", f"extensions has {unknown[0]!r}, which is none of {', '.join(EXTENSIONS)}")
    try:
        if base != AMQP_0_9_1.name:
            return with_settings(DIALECTS[base], _checked(choices))
        return with_choices(text_with(extensions), _checked(choices))
    except UnknownChoice as error:
        raise _Wrong(error.choice, str(error)) from None


def _checked(choices: Mapping[str, object]) -> Mapping[str, str]:
    for name, value in choices.items():
        if not isinstance(value, str):
            raise _Wrong(name, f"{name} is no text")
    return {name: str(value) for name, value in choices.items()}


def dialect_file(base: str, extensions: Collection[str], choices: Mapping[str, str], title: str) -> str:
    """The text of such a file. `title`: whose dialect it is, one line."""
    lines = [f"# {' '.join(title.split())}", f'base = "{base}"']
    if extensions:
        lines.append(f"extensions = [{', '.join(f'{each!r}' for each in sorted(extensions))}]".replace("'", '"'))
    if choices:
        lines += ["", "[choices]"]
        for name, value in choices.items():
            choice = ALL_CHOICES[name]
            does = next(each.does for each in choice.values if each.name == value)
            lines += [f"# {choice.about}: {does}", f'{name} = "{value}"']
    return "\n".join(lines) + "\n"


def dialect_in(text: str, directory: Path = Path()) -> Dialect:
    """The dialect of that name, or the one in that file if it ends in .toml. Raises `UnknownDialect`,
    `DialectFileError`.
    """
    return read_dialect_file(directory / text) if text.endswith(".toml") else dialect_named(text)
