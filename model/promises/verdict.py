"""What judging can end in, and what a failure is.

The identity of a failure is defined here once: shrinking, grouping, the deviation file, replay and reports all
use `Failure.identity`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The five outcomes, for a sequence and for a requirement."""

    PASS = "pass"
    FAIL = "fail"
    #: could not decide; always comes with a reason; outranks pass
    INCONCLUSIVE = "inconclusive"
    #: the rule does not hold in this dialect, or a capability is absent
    NOT_APPLICABLE = "not applicable"
    #: nothing went wrong, but the rule never made a difference
    NOT_EXERCISED = "not exercised"


_RANK = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that stands for several: fail, then inconclusive, then pass; `NOT_EXERCISED` for none."""
    return min(verdicts, key=_RANK.index, default=Verdict.NOT_EXERCISED)


class Shape(StrEnum):
    """How an observation differs from what the model allows."""

    UNEXPECTED = "unexpected frame"
    MISSING = "missing frame"
    WRONG_ARGUMENT = "wrong argument"


@dataclass(frozen=True, slots=True)
class Failure:
    """One difference between the target and the model.

    `requirement` is the identifier that is broken; `command` the command that was last sent before the
    difference showed (canonical text, "" if none); `detail` narrows the shape ("basic.deliver redelivered").
    `observed` is the described frame ("nothing" for a missing one), `allowed` the described frames that would
    have been right, `state` the lines of the model's state that matter.
    """

    requirement: str
    shape: Shape
    detail: str
    command: str
    observed: str
    allowed: tuple[str, ...]
    state: tuple[str, ...]
    #: the known defect of the broker that explains it, "" for none
    defect: str = ""
    #: the dialect of RabbitMQ by which it is none: the broker does what RabbitMQ does; "": there is none
    like: str = ""

    @property
    def identity(self) -> str:
        """Equal for failures that are the same defect: requirement, and known defect, or else shape and detail."""
        return f"{self.requirement}|{self.defect or f'{self.shape}|{self.detail}'}"
