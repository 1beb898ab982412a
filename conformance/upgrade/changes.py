"""The changes between two dialects: one for each choice in which they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from amqpspec.conformance.upgrade.links import Link, links_of
from amqpspec.conformance.upgrade.sentences import SENTENCES
from amqpspec.conformance.verdicts.deviations import CHANGES, OF_CHANGE
from amqpspec.model.judging.free_choice import with_value
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.differences import Difference, DifferenceClass
from amqpspec.model.promises.differences_of_choices import ARGUMENTS, CHOICES
from amqpspec.model.promises.queue_arguments import KnownArguments
from amqpspec.model.promises.versions import VERIFIED, Version

#: What is no choice of its own: names, and what is there with another of these.
_NO_CHOICES = ("name", "title", "text", "announced", "extensions", "queue_arguments")
_OF_ARGUMENTS = "queue_arguments."
_ARGUMENTS = tuple(_OF_ARGUMENTS + each for each in ("classic", "quorum", "stream"))


@dataclass(frozen=True, slots=True)
class Change:
    """A choice that two dialects make in another way."""

    choice: str
    before: Any
    now: Any
    #: the newest version that was seen to be as before; None: none is known, or it is no upgrade
    later_than: Version | None = None

    @property
    def difference(self) -> Difference:
        """Its class and its source."""
        name = self.choice.removeprefix(_OF_ARGUMENTS)
        return CHOICES[name] if name == self.choice else ARGUMENTS[name]

    @property
    def kind(self) -> DifferenceClass:
        return self.difference.kind

    @property
    def title(self) -> str:
        return SENTENCES[self.choice].title if self.choice in SENTENCES else self.choice

    @property
    def was(self) -> str:
        """What the broker did, in a sentence."""
        return self._sentence(self.before, self.now)

    @property
    def becomes(self) -> str:
        """What it does now."""
        return self._sentence(self.now, self.before)

    def _sentence(self, value: Any, other: Any) -> str:
        if self.choice in _ARGUMENTS:
            # what both know is no change
            known = tuple(each for each in value if each not in other)
            unknown = tuple(each for each in other if each not in value)
            ignored = f"These are ignored: {', '.join(unknown)}." if unknown else ""
            return " ".join(filter(None, (SENTENCES[self.choice].of(known) if known else "", ignored)))
        return SENTENCES[self.choice].of(value) if self.choice in SENTENCES else f"{value}."

    @property
    def within(self) -> str:
        """Where in the range of a dialect's versions it changed, if not with the first: "4.2.0: routable"."""
        return self.difference.within

    @property
    def links(self) -> tuple[Link, ...]:
        """Release notes, guides and source files that say so."""
        return links_of(self.difference.source, self.later_than)

    @property
    def name(self) -> str:
        """What it is called where a person names it, such as "channel-prefetch"."""
        return CHANGES[self.choice]

    @property
    def identity(self) -> str:
        """As a deviation file has it."""
        return f"{OF_CHANGE}{self.name}"

    def made_in(self, dialect: Dialect) -> Dialect:
        """The dialect, with this change only. Its name stays what it was."""
        return with_value(dialect, self.choice, self.now)

    def unmade_in(self, dialect: Dialect) -> Dialect:
        """The dialect, without this change."""
        return with_value(dialect, self.choice, self.before)


@cache
def changes_between(one: Dialect, other: Dialect) -> tuple[Change, ...]:
    """Those that an application meets which goes from one to the other, in the order of `Dialect`."""
    seen, goal = VERIFIED.get(base_of(one.name)), VERIFIED.get(base_of(other.name))
    later_than = seen.last if seen is not None and goal is not None and seen.first < goal.first else None
    return tuple(
        Change(name, before, now, later_than)
        for (name, before), (_, now) in zip(_choices(one), _choices(other), strict=True)
        if before != now
    )


def _choices(dialect: Dialect) -> Iterator[tuple[str, Any]]:
    for each in fields(Dialect):
        if each.name not in _NO_CHOICES:
            yield each.name, getattr(dialect, each.name)
    for each in fields(KnownArguments):
        yield _OF_ARGUMENTS + each.name, getattr(dialect.queue_arguments, each.name)
