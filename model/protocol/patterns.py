"""Values that the broker may choose: what an expectation holds where no single value is right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any


class Pattern:
    """A set of right values. `choose` gives the one that the embedded broker sends."""

    def matches(self, value: Any) -> bool:
        raise NotImplementedError

    def choose(self) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Anything(Pattern):
    """Any value at all; `example` is what the embedded broker sends."""

    example: Any = ""

    def matches(self, value: Any) -> bool:
        return True

    def choose(self) -> Any:
        return self.example

    def __str__(self) -> str:
        return "anything"


@dataclass(frozen=True, slots=True)
class OneOf(Pattern):
    """One of several values, the first of which the embedded broker sends."""

    values: tuple[Any, ...]

    def matches(self, value: Any) -> bool:
        return value in self.values

    def choose(self) -> Any:
        return self.values[0]

    def __str__(self) -> str:
        return " or ".join(map(str, self.values))


@dataclass(frozen=True, slots=True)
class Between(Pattern):
    """A whole number from `low` to `high`, both included."""

    low: int
    high: int

    def matches(self, value: Any) -> bool:
        return isinstance(value, int) and self.low <= value <= self.high

    def choose(self) -> int:
        return self.high

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class Generated(Pattern):
    """A name that the broker makes up: `prefix` and at least one more character, and none of those that are `taken`."""

    prefix: str
    serial: int
    taken: tuple[str, ...] = ()

    def matches(self, value: Any) -> bool:
        is_name = isinstance(value, str) and value.startswith(self.prefix) and len(value) > len(self.prefix)
        return is_name and value not in self.taken

    def choose(self) -> str:
        # as long as RabbitMQ's, so that clients which look at the shape are content
        names = (f"{self.prefix}{serial:022d}" for serial in count(self.serial))
        return next(name for name in names if name not in self.taken)

    def __str__(self) -> str:
        return f"{self.prefix}…"


@dataclass(frozen=True, slots=True)
class Printed(Pattern):
    """A text that shows octets as the broker's language prints them: only what stands around them is fixed.

    White space does not count, as Erlang breaks long lines (io_lib's ~p). `example` is what the embedded broker sends.
    """

    before: str
    after: str
    example: str = ""

    def matches(self, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        before, after, squeezed = (re.sub(r"\s", "", text) for text in (self.before, self.after, value))
        return len(squeezed) >= len(before) + len(after) and squeezed.startswith(before) and squeezed.endswith(after)

    def choose(self) -> str:
        return self.example

    def __str__(self) -> str:
        return f"{self.before}…{self.after}"


@dataclass(frozen=True, slots=True)
class AnyMoment(Pattern):
    """Any time stamp."""

    def matches(self, value: Any) -> bool:
        return isinstance(value, datetime)

    def choose(self) -> datetime:
        return datetime(2000, 1, 1, tzinfo=UTC)

    def __str__(self) -> str:
        return "any time"


def between(low: int, high: int) -> int | Between:
    """`Between`, or the plain number where only one is right."""
    return low if low == high else Between(low, high)


def matches(expected: Any, value: Any) -> bool:
    """Is the observed value right for what was expected, a pattern or a plain value?"""
    if isinstance(expected, Pattern):
        return expected.matches(value)
    return bool(expected == value)


def choose(expected: Any) -> Any:
    """The value that the embedded broker sends for what is expected."""
    return expected.choose() if isinstance(expected, Pattern) else expected


#: Begins the name in the model of a queue that the broker named, until its reply has told the name.
UNKNOWN_NAME = "amq.gen-?"
