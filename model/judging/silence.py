"""Silence: nothing comes any more, and by every lawful explanation something should have come."""

from __future__ import annotations

from collections.abc import Sequence
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


def missed(explanations: Sequence[Explanation], prove: bool) -> Missed | None:
    """The first of it; None: only of what nobody has asked for more is open. `prove`: also what only numbers show."""
    quiet = [explanation for explanation in explanations if explanation.is_quiet]
    lawful = [explanation for explanation in quiet if explanation.defect is None]
    defective = [explanation for explanation in quiet if explanation.defect is not None]
    first = next((each for each in (*lawful, *explanations) if each.defect is None), explanations[0])
    open_by_defect: set[str] = set()
    if lawful:
        # what should be there by now and is not: a known defect has to do better than that, if not than what is
        # open by both, of which nobody has asked
        defective = [each for each in defective if prove and _open(each) < _open(first)]
        open_by_defect = _open(defective[0]) if defective else set()
    owed = (debt for debt in first.unproven() if debt.detail not in open_by_defect)
    debt = next(debts(first.broker), None) or next(owed, None)
    return Missed(debt, first, defective) if debt is not None else None


def _open(explanation: Explanation) -> set[str]:
    """What should have come by that explanation, and no count has shown."""
    return {debt.detail for debt in explanation.unproven()}
