"""What has happened, told as facts: frozen records that the words of a failure read, and never a rule.

Those of late are kept, the newest last, in tuples. Nothing in them is changed once it is told, so explanations that
part share them: a fork copies none.
"""

from __future__ import annotations

from typing import TypeVar

#: As many are kept of each kind, of each queue or channel.
REMEMBERED = 64

Fact = TypeVar("Fact")


def told(facts: tuple[Fact, ...], *more: Fact) -> tuple[Fact, ...]:
    """With these after them; the oldest are forgotten."""
    return (*facts, *more)[-REMEMBERED:]
