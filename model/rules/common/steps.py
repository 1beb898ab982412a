"""Steps that a chapter of 0-9-1 offers: places with a name at which RabbitMQ's extensions take part.

A chapter makes the step, says when it comes, and calls it there. Nothing comes of it where nobody takes part. Who does
is listed in `model.rules.table`, for all chapters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Step(Generic[P]):
    """Extensions are called one after another; each may raise `ProtocolError`, as a rule does."""

    def __init__(self) -> None:
        self.taking_part: tuple[Callable[P, None], ...] = ()

    def taken_by(self, *those: Callable[P, None]) -> None:
        """These take part from now on, and nobody else."""
        self.taking_part = those

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for each in self.taking_part:
            each(*args, **kwargs)


class Question(Generic[P, R]):
    """Extensions are asked one after another; the first answer that is not None counts."""

    def __init__(self) -> None:
        self.taking_part: tuple[Callable[P, R | None], ...] = ()

    def taken_by(self, *those: Callable[P, R | None]) -> None:
        """These are asked from now on, and nobody else."""
        self.taking_part = those

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        for each in self.taking_part:
            answer = each(*args, **kwargs)
            if answer is not None:
                return answer
        return None
