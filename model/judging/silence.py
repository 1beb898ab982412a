"""Silence: nothing comes any more, and by every lawful explanation something should have come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.outputs.debts import Debt, debts


@dataclass(frozen=True, slots=True)
class Missed:
    """What should have come."""

    debt: Debt
    #: the explanation that says so
    by: Explanation
    #: explanations of known defects, by which nothing need have come
    defective: Sequence[Explanation]


def missed(explanations: Sequence[Explanation], prove: bool) -> list[Missed]:
    """The first of it by each explanation that may be the one to blame by; []: only of what nobody has asked for more
    is open. `prove`: also what only numbers show.
    """
    quiet = [explanation for explanation in explanations if explanation.is_quiet]
    lawful = [explanation for explanation in quiet if explanation.defect is None]
    defective = [explanation for explanation in quiet if explanation.defect is not None]
    by = lawful or [each for each in explanations if each.defect is None] or explanations[:1]
    open_by_defect: set[str] = set()
    if lawful:
        # what should be there by now and is not: a known defect has to do better than that, if not than what is
        # open by both, of which nobody has asked
        defective = [each for each in defective if prove and _open(each) < _open(lawful[0])]
        open_by_defect = _open(defective[0]) if defective else set()
    owed = [(next(_owed(each, open_by_defect), None), each) for each in by]
    if owed[0][0] is None:
        return []
    return [Missed(debt, each, defective) for debt, each in owed if debt is not None]


def _owed(explanation: Explanation, open_by_defect: set[str]) -> Iterator[Debt]:
    yield from debts(explanation.broker)
    yield from (debt for debt in explanation.unproven() if debt.detail not in open_by_defect)


def _open(explanation: Explanation) -> set[str]:
    """What should have come by that explanation, and no count has shown."""
    return {debt.detail for debt in explanation.unproven()}
