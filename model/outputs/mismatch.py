"""How an observed frame differs from what the state permits."""

from __future__ import annotations

from dataclasses import dataclass

from amqpspec.model.promises.verdict import Shape


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference. `fatal`: the model cannot say in what state the broker is now, and judging ends here."""

    requirement: str
    shape: Shape
    detail: str
    fatal: bool = True
    #: what would have been right in place of the wrong argument
    allowed: str = ""
    #: name of the known defect that explains it
    defect: str = ""


Mismatches = tuple[Mismatch, ...]

#: The observation was right.
NONE: Mismatches = ()


def unexpected(requirement: str, detail: str) -> Mismatches:
    return (Mismatch(requirement, Shape.UNEXPECTED, detail),)
