"""How an observed frame differs from what the state permits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amqpspec.model.promises.verdict import Shape


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference. `fatal`: the rules say of no state that it is the broker's now. Judging ends there, unless a
    known defect or `model.outputs.going_on` gives the state.
    """

    requirement: str
    shape: Shape
    detail: str
    fatal: bool = True
    #: what would have been right in place of the wrong argument
    allowed: str = ""
    #: the argument that is wrong, the value that would have been right, and whose it is: the owed frame's, or that of
    #: a message of this queue
    argument: str = ""
    right: Any = None
    about: Any = None
    #: name of the known defect that explains it, for those who know any (`model.judging.known_outputs`)
    defect: str = ""
    #: the broker makes this mistake each time: an explanation is no less likely by it
    is_habit: bool = False


Mismatches = tuple[Mismatch, ...]

#: The observation was right.
NONE: Mismatches = ()


def unexpected(requirement: str, detail: str) -> Mismatches:
    return (Mismatch(requirement, Shape.UNEXPECTED, detail),)
