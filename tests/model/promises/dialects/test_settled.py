"""Choices of the text that are not open any more: the name of a dialect says them, and makes it again."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.dialect_names import base_of, capabilities_of, choices_of, in_short
from amqpspec.model.promises.dialects import UnknownDialect, dialect_named
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.extensions import text_with
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES, with_choices
from amqpspec.model.promises.registry import requirements

NAME = "amqp-0-9-1+basic.nack+publisher_confirms;immediate=refused;ack-of-zero=ignored"


def test_a_name_says_all() -> None:
    dialect = dialect_named(NAME)
    assert dialect.name == NAME
    assert dialect == with_choices(text_with(["basic.nack", "publisher_confirms"]), choices_of(NAME))
    assert dialect.has("basic.nack") and not dialect.has("consumer_priorities")
    assert dict(dialect.text.settled) == {"immediate": "refused", "ack-of-zero": "ignored"}
    assert base_of(NAME) == "amqp-0-9-1" and capabilities_of(NAME) == ["basic.nack", "publisher_confirms"]
    assert in_short(NAME) == "amqp-0-9-1, 2 extensions and 2 choices"
    assert in_short("amqp-0-9-1;immediate=refused") == "amqp-0-9-1 and 1 choice"


def test_the_order_of_choices_is_that_of_the_text() -> None:
    other = "amqp-0-9-1;ack-of-zero=ignored;immediate=refused"
    assert dialect_named(other).name == "amqp-0-9-1;immediate=refused;ack-of-zero=ignored"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("amqp-0-9-1;imediate=refused", "there is no choice 'imediate'"),
        ("amqp-0-9-1;immediate=lost", "immediate is never 'lost', but returned, refused"),
        ("amqp-0-9-1;immediate", "immediate is never ''"),
        ("rabbitmq-4.3;immediate=refused", "unknown dialect"),
    ],
)
def test_what_is_no_choice(name: str, message: str) -> None:
    with pytest.raises(UnknownDialect, match=message):
        dialect_named(name)


@pytest.mark.parametrize("name", TEXT_CHOICES)
def test_a_choice_is_whole(name: str) -> None:
    choice = TEXT_CHOICES[name]
    assert name == choice.name and set(choice.requirements) <= requirements().keys()
    assert len({each.name for each in choice.values}) == len(choice.values) > 1
    assert choice.right and choice.sentence
    # the first is the one that the text's dialect has
    usual = with_choices(AMQP_0_9_1, {name: choice.values[0].name})
    assert all(getattr(usual, field) == getattr(AMQP_0_9_1, field) for field in choice.values[0].dialect)
    assert all(getattr(usual.text, field) == getattr(AMQP_0_9_1.text, field) for field in choice.values[0].text) or (
        name == "return-text"
    )


def test_each_value_makes_another_dialect() -> None:
    for choice in TEXT_CHOICES.values():
        made = {with_choices(AMQP_0_9_1, {choice.name: each.name}) for each in choice.values}
        assert len(made) == len(choice.values)
