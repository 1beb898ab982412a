"""Known defects that were put to the test and did not show: the broker kept a promise that it is known to break.

A team that upgrades its broker wants to know that. That the requirement was exercised says little: a known defect
needs its own situation. So one counts as refuted only where the explanation that followed it was contradicted, while a
lawful one explains what came. Where both explain it the question stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amqpspec.model.judging.explanation import Explanation


def note_refuted(contradicted: Iterable[Explanation], survivors: Sequence[Explanation]) -> None:
    """Note, in the survivors, the known defects that only `contradicted` ones followed.

    Not those to which the broker may come yet, as the input that comes under them need not have been processed. Where
    only the contradicted one has not processed it, one that has is among the survivors, if it explains what came.
    """
    over = (each.defect for each in contradicted if each.defect is not None and _is_over(each, survivors))
    names = {defect.name for defect in over if defect.is_excuse}
    names -= {each.defect.name for each in survivors if each.defect is not None}
    if names:
        for survivor in survivors:
            survivor.broker.bookkeeping.refuted |= names


def _is_over(contradicted: Explanation, survivors: Sequence[Explanation]) -> bool:
    return not any(event is contradicted.defective_input for survivor in survivors for event in survivor.pending)
