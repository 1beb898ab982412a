"""Values that the broker may choose: what an expectation holds where no single value is right."""

from __future__ import annotations

from dataclasses import dataclass
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
    """A name that the broker makes up: `prefix` and at least one more character."""

    prefix: str
    serial: int

    def matches(self, value: Any) -> bool:
        return isinstance(value, str) and value.startswith(self.prefix) and len(value) > len(self.prefix)

    def choose(self) -> str:
        # as long as RabbitMQ's, so that clients which look at the shape are content
        return f"{self.prefix}{self.serial:022d}"

    def __str__(self) -> str:
        return f"{self.prefix}…"


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
