"""What has happened, told as facts: frozen records from which a failure is worded.

Those of late are kept, the newest last, in tuples. Nothing in them is changed once it is told, so explanations that
part share them: a fork copies none. No rule goes by them but one (`Queue.gone`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

#: As many are kept of each kind, of each queue or channel.
REMEMBERED = 64

Fact = TypeVar("Fact")


class DeliveryOver(NamedTuple):
    """The delivery of that number is over: whoever settles it again breaks that requirement."""

    tag: int
    again: str


class Routed(NamedTuple):
    """A message of that body went where that requirement says, or nowhere by it."""

    body: bytes
    requirement: str


def remember(latest: dict[str, str], name: str, requirement: str) -> None:
    """That what has this name ended by that requirement: of the latest ones only."""
    latest[name] = requirement
    if len(latest) > REMEMBERED:
        del latest[next(iter(latest))]


def told(facts: tuple[Fact, ...], *more: Fact) -> tuple[Fact, ...]:
    """With these after them; the oldest are forgotten."""
    return (*facts, *more)[-REMEMBERED:]
