"""Names of dialects: the name of one that is listed, or that of the text with the extensions that a broker has and the
choices that it made after it, such as `amqp-0-9-1+basic.nack+publisher_confirms;immediate=refused`.

Behind the name of a dialect of RabbitMQ stand settings of its operator (`model.promises.settings`). Such a name says
all (`model.promises.dialects.extensions`, `settled`): a trace that has it can be judged again.
"""

from __future__ import annotations

from collections.abc import Mapping

SEPARATOR = "+"
#: Begins a choice, and stands between it and its value.
CHOICE, IS = ";", "="


def base_of(name: str) -> str:
    """The listed dialect that the name begins with."""
    return _without_choices(name).partition(SEPARATOR)[0]


def capabilities_of(name: str) -> list[str]:
    """The capabilities that stand behind it."""
    return _without_choices(name).split(SEPARATOR)[1:]


def choices_of(name: str) -> dict[str, str]:
    """The choices that stand behind it, with their values; "" where there is none."""
    return {choice: value for choice, _, value in (each.partition(IS) for each in name.split(CHOICE)[1:])}


def name_of(base: str, capabilities: list[str], choices: Mapping[str, str]) -> str:
    """The name that says all this."""
    return "".join((SEPARATOR.join((base, *capabilities)), *(f"{CHOICE}{name}{IS}{choices[name]}" for name in choices)))


def in_short(name: str) -> str:
    """The name where there is one line for it: "amqp-0-9-1, 7 extensions and 12 choices"."""
    counts = ((len(capabilities_of(name)), "extension"), (len(choices_of(name)), "choice"))
    more = [f"{number} {what}{'s' if number > 1 else ''}" for number, what in counts if number]
    *first, last = [base_of(name), *more]
    return f"{', '.join(first)} and {last}" if first else last


def _without_choices(name: str) -> str:
    return name.partition(CHOICE)[0]
