"""The choices of the text of 0-9-1: where it is not RabbitMQ, and where it leaves a choice, with the values of each.

A value is right by the text, or it is a way of RabbitMQ's that a sentence forbids. Where several are right, any of them
is: the choice is open in the dialect that is the text, until it is settled (`model.promises.dialects.settled`), by the
profile of a broker or by who knows it. The first value is the usual one, which the embedded broker has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a choice. `does` is what such a broker does, for people; `like` are brokers that were seen so."""

    name: str
    does: str
    like: tuple[str, ...] = ()
    #: no sentence forbids it
    right: bool = True
    #: fields of `TextChoices`, and of `Dialect`, that it sets
    text: Mapping[str, Any] = field(default_factory=_nothing, hash=False)
    dialect: Mapping[str, Any] = field(default_factory=_nothing, hash=False)
    #: the one reply code of the choice's requirements that is right then
    code: int = 0
    #: nothing is seen of it in the commands that show the choice: it is named where nothing else fits
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class TextChoice:
    """One choice: what it is about, the sentence that leaves or makes it, and its values, the usual one first."""

    name: str
    about: str
    #: the text of 0-9-1: chapter and sentence
    sentence: str
    #: the first is to blame where no value fits
    requirements: tuple[str, ...]
    values: tuple[Value, ...]

    @property
    def right(self) -> tuple[Value, ...]:
        """The values that the text allows."""
        return tuple(each for each in self.values if each.right)

    @property
    def is_open(self) -> bool:
        """Does the text allow several?"""
        return len(self.right) > 1

    def value(self, name: str) -> Value | None:
        return next((each for each in self.values if each.name == name), None)
