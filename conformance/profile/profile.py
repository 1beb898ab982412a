"""A profile: what was seen of each choice and each extension, and the dialect that comes of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from amqpspec.conformance.verdicts.judgement import SeenWay, SuiteError
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import choices_of
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.dialects.settled import ALL_CHOICES, with_choices
from amqpspec.model.promises.features import FEATURES, TOLD
from amqpspec.model.promises.text_contradictions import RABBITMQ
from amqpspec.model.promises.text_means import MEANS
from amqpspec.model.promises.text_values import TextChoice, Value

#: What a profile is measured beside.
BASE = AMQP_0_9_1


@dataclass(frozen=True, slots=True)
class SeenChoice:
    """What was seen of one choice."""

    choice: TextChoice
    #: the values that explain all that came; none: nothing that is known does
    values: tuple[Value, ...]
    #: what came and no value explains; "": nothing
    observed: str = ""

    @property
    def value(self) -> Value | None:
        """The one that it was; None: none, or it cannot be told. What explains everything is named last."""
        certain = [each for each in self.values if not each.is_rest] or list(self.values)
        return certain[0] if len(certain) == 1 else None

    @property
    def is_right(self) -> bool:
        """Does the text allow what was seen?"""
        return any(each.right for each in self.values)


class Working(StrEnum):
    """What came of trying an extension."""

    WORKS = "works"
    #: it makes a difference, and not the one that it should
    IN_PART = "works in part"
    IGNORED = "is accepted and ignored"
    #: known of others as well: `conformance/profile/meanings`
    OTHER_MEANING = "means something else"
    REFUSED = "is refused"


_IN_SHORT = {
    Working.WORKS: "works",
    Working.IN_PART: "works in part",
    Working.IGNORED: "no effect",
    Working.OTHER_MEANING: "means something else",
    Working.REFUSED: "refused",
}


@dataclass(frozen=True, slots=True)
class SeenExtension:
    """What was seen of one extension."""

    capability: str
    announced: bool
    working: Working
    #: what came where it does not
    observed: str = ""

    @property
    def works(self) -> bool:
        return self.working is Working.WORKS

    @property
    def in_short(self) -> str:
        """What came of trying it, in a few words."""
        own = "; how a broker does it is RabbitMQ's way" if self.works and self.capability in TOLD else ""
        return f"{self.capability}: tried, {_IN_SHORT[self.working]}{own}"

    @property
    def is_judged(self) -> bool:
        """Is the broker held to it? What no capability tells of is there as soon as it makes a difference."""
        in_part = self.working is Working.IN_PART and self.capability in FEATURES
        return self.announced or self.works or in_part


@dataclass(frozen=True, slots=True)
class Profile:
    choices: tuple[SeenChoice, ...]
    extensions: tuple[SeenExtension, ...]
    #: what the broker announces and nobody can show, which it is held to all the same
    taken_at_its_word: tuple[str, ...] = ()
    #: of this suite: what was looked at in these sequences is not known
    errors: tuple[SuiteError, ...] = ()
    #: of RabbitMQ (`conformance.profile.settings`)
    settings: tuple[SeenChoice, ...] = ()
    #: RabbitMQ's own ways (`conformance.profile.ways`)
    ways: tuple[SeenWay, ...] = ()

    @property
    def base(self) -> str:
        """The name of the dialect that it is measured beside."""
        return BASE.name

    @property
    def held_to(self) -> tuple[str, ...]:
        """The extensions that it announces or shows."""
        seen = {each.capability for each in self.extensions if each.is_judged}
        # what rests on a feature that is not there cannot be told from what is not there
        seen -= {name for name in seen if not self._has_its_needs(name, seen)}
        return tuple(each for each in EXTENSIONS if each in seen or each in self.taken_at_its_word)

    def _has_its_needs(self, capability: str, seen: Collection[str]) -> bool:
        tried = {each.capability for each in self.extensions}
        needs = FEATURES[capability].needs if capability in FEATURES else ()
        return all(each in seen or each not in FEATURES or each not in tried for each in needs)

    @property
    def not_working(self) -> dict[str, str]:
        """What the broker is not held to of what was tried: to what came of it, in a few words."""
        return {each.capability: each.in_short for each in self.extensions if each.capability not in self.held_to}

    @property
    def compatibility(self) -> tuple[SeenWay, ...]:
        """What it does as RabbitMQ does and what otherwise, of all that was looked at."""
        features = tuple(
            SeenWay(
                each.capability, f"the extension {each.capability}", each.works, "works",
                "" if each.works else f"tried, {_IN_SHORT[each.working]}",
            )
            for each in self.extensions
        )  # fmt: skip
        choices = tuple(
            SeenWay(
                each.choice.name, each.choice.about, RABBITMQ in each.value.like, way.does,
                "" if RABBITMQ in each.value.like else each.value.does,
            )
            for each in self.choices
            if each.value is not None
            and (way := next((value for value in each.choice.values if RABBITMQ in value.like), None)) is not None
        )  # fmt: skip
        return features + choices + self.ways

    @property
    def settled(self) -> dict[str, str]:
        """Choice to value, of those that the text leaves open and that were seen to be made; and what the broker lacks
        of what the suite looks at it by (`model.promises.text_means`): else that would be all that is seen.
        """
        found: dict[str, str] = {}
        for each in self.choices:
            if each.value is None:
                continue
            if (each.choice.is_open and each.value.right) or (each.choice in MEANS and not each.value.right):
                found[each.choice.name] = each.value.name
        return found

    @property
    def dialect(self) -> Dialect:
        """The text, with what the broker announces or shows, and with the choices that the text leaves it. What the
        text does not allow is no part of it, but for what it lacks to be looked at.
        """
        return with_choices(text_with(self.held_to), self.settled)


def choices_in_words(dialect_name: str) -> list[str]:
    """One line for each choice and setting in the name of the dialect: what the broker does."""
    lines = []
    for name, value_name in choices_of(dialect_name).items():
        choice = ALL_CHOICES[name]
        value = choice.value(value_name)
        if value is not None:
            lines.append(f"{choice.about} {value.does}" + ("" if value.right else " (against the text)"))
    return lines
