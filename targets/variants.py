"""Variants of the embedded broker that are right by the text of 0-9-1 and other than RabbitMQ: one choice each.

They measure the suite as the faulty ones do (`targets.faults`): it must find nothing wrong with them, and a profile
must tell what each does. A variant is the embedded broker that serves the text with that value of the choice; it is
named after both: `amqpspec run embedded:immediate=returned --dialect amqp-0-9-1`. `embedded:otherwise` has them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import IS
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES, with_choices
from amqpspec.model.promises.text_contradictions import RABBITMQ

#: The variant that has all values at once, the last of each choice.
OTHERWISE = "otherwise"


@dataclass(frozen=True, slots=True)
class Variant:
    """`sentence` is the text's, `does` what this one does by it."""

    name: str
    sentence: str
    does: str
    #: choice to value
    choices: Mapping[str, str]

    @property
    def dialect(self) -> Dialect:
        """What it serves."""
        return with_choices(AMQP_0_9_1, self.choices)


def _single() -> Iterator[Variant]:
    for choice in TEXT_CHOICES.values():
        for value in choice.right:
            if RABBITMQ not in value.like:
                name = f"{choice.name}{IS}{value.name}"
                yield Variant(name, choice.sentence, f"{choice.about} {value.does}", {choice.name: value.name})


def _all() -> dict[str, Variant]:
    single = {each.name: each for each in _single()}
    choices = {name: value for each in single.values() for name, value in each.choices.items()}
    return {**single, OTHERWISE: Variant(OTHERWISE, "all of these", "each of these", choices)}


#: Name to variant, in the order of the text.
VARIANTS: Mapping[str, Variant] = MappingProxyType(_all())
