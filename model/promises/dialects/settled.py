"""A dialect with choices that are not open any more, as a broker was seen to have made them, or says so: those that the
text leaves, or settings of RabbitMQ.

The name of such a dialect says all: `amqp-0-9-1+basic.nack;immediate=refused;ack-of-zero=ignored`, or
`rabbitmq-4.3;global-qos=permitted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import base_of, capabilities_of, choices_of, name_of
from amqpspec.model.promises.settings import SETTINGS
from amqpspec.model.promises.text_choices import TextChoices
from amqpspec.model.promises.text_contradictions import CONTRADICTIONS
from amqpspec.model.promises.text_freedoms import FREEDOMS
from amqpspec.model.promises.text_means import MEANS
from amqpspec.model.promises.text_values import TextChoice, Value

#: The choices of the text, by name.
TEXT_CHOICES: Mapping[str, TextChoice] = {each.name: each for each in (*MEANS, *CONTRADICTIONS, *FREEDOMS)}
#: These, and RabbitMQ's settings.
ALL_CHOICES: Mapping[str, TextChoice] = {**TEXT_CHOICES, **SETTINGS}


class UnknownChoice(ValueError):
    """There is no such choice, or it has no such value; the message names those that there are."""

    def __init__(self, choice: str, message: str) -> None:
        super().__init__(message)
        self.choice = choice


def with_choices(dialect: Dialect, choices: Mapping[str, str]) -> Dialect:
    """The dialect, one of the text, with these values of these choices beside those that it has settled already.

    Raises `UnknownChoice`.
    """
    settled = {**dict(dialect.text.settled), **choices}
    for name, value in choices.items():
        value_of(name, value)
    for name in TEXT_CHOICES:
        if name in choices:
            dialect = settle(dialect, name, choices[name])
    in_order = {name: settled[name] for name in TEXT_CHOICES if name in settled}
    number = len(in_order)
    return replace(
        dialect,
        name=name_of(base_of(dialect.name), capabilities_of(dialect.name), in_order),
        title=f"{dialect.title.partition(', with')[0]}, with {number} choice{'s' if number > 1 else ''} settled",
        text=replace(dialect.text, settled=tuple(in_order.items())),
    ) if number else dialect  # fmt: skip


def with_settings(dialect: Dialect, settings: Mapping[str, str]) -> Dialect:
    """The dialect, one of RabbitMQ's, where its operator has set this, beside what is set already. What the dialect has
    by itself is no part of its name. Raises `UnknownChoice`.
    """
    base = base_of(dialect.name)
    fields: dict[str, object] = {}
    for name, value in settings.items():
        if name in SETTINGS and base not in SETTINGS[name].brokers:
            raise UnknownChoice(name, f"{name} is no setting of {base}")
        fields |= value_of(name, value, SETTINGS).dialect
    together = {**choices_of(dialect.name), **settings}
    kept = {
        name: together[name]
        for name, setting in SETTINGS.items()
        if name in together and together[name] != setting.usual.get(base)
    }
    title = ", ".join((dialect.title.partition(", ")[0], *(f"{name} {value}" for name, value in kept.items())))
    return replace(dialect, name=name_of(base, [], kept), title=title, **fields)  # type: ignore[arg-type]


def value_of(name: str, value: str, choices: Mapping[str, TextChoice] = TEXT_CHOICES) -> Value:
    """That value of that choice. Raises `UnknownChoice`."""
    choice = choices.get(name)
    if choice is None:
        raise UnknownChoice(name, f"there is no choice {name!r}, but {', '.join(choices)}")
    found = choice.value(value)
    if found is None:
        raise UnknownChoice(name, f"{name} is never {value!r}, but {', '.join(each.name for each in choice.values)}")
    return found


@cache
def settle(dialect: Dialect, name: str, value: str) -> Dialect:
    """The dialect with that value of that choice. Its name stays what it was."""
    chosen = value_of(name, value)
    text = _settled(dialect.text, TEXT_CHOICES[name], chosen)
    return replace(dialect, text=text, **chosen.dialect)


def _settled(text: TextChoices, choice: TextChoice, value: Value) -> TextChoices:
    codes = dict(text.codes)
    if value.code:
        codes |= dict.fromkeys(choice.requirements, (value.code,))
    return replace(text, settled=(*text.settled, (choice.name, value.name)), codes=codes, **value.text)
