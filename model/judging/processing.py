"""How explanations process an input that need not wait: lawfully, as known defects have it, and in each other way."""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.internal_events import Input, kind_of
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.independence import is_independent
from amqpspec.model.judging.merging import merged
from amqpspec.model.judging.points import TIMED, settled
from amqpspec.model.protocol.methods import TraceEvent


def process_in(explanation: Explanation, event: Input, defects: DefectsFollowed) -> list[Explanation]:
    """The explanation processes the input. Gives those that part from it there.

    Where a known defect applies, that is followed as well: there the input stays pending, as nothing that the lawful
    explanation owes says when it is processed.
    """
    broker = explanation.broker
    parting: list[Explanation] = []
    for defect in defects.of_kind(kind_of(event)):
        if explanation.may_be_defective(defect, event):
            defective = explanation.fork()
            defective.pending.append(event)
            defective.defect, defective.defective_input = defect, event
            parting.append(defective)
    others = explanation.alternatives(event)
    explanation.process(event)
    if broker.teardowns or broker.internal_events:
        explanation.expect_internal_events()
    return parting + others


def processed(explanations: Iterable[Explanation], event: Input, defects: DefectsFollowed) -> list[Explanation]:
    """All of them with the input processed, and those that part from them there."""
    known = list(explanations)
    parting = [other for explanation in known for other in process_in(explanation, event, defects)]
    return known + parting


def processed_at_rest(
    explanations: list[Explanation], event: TraceEvent, defects: DefectsFollowed, bound: int
) -> list[Explanation]:
    """Explanations of a broker at rest, after the input. Raises `TooManyExplanations`.

    Only what the broker may do by itself is open: it has been done before the input, or not.
    """
    if any(isinstance(pending, TIMED) for each in explanations for pending in each.pending):
        return _processed_or_waiting(explanations, event, defects)
    if any(each.pending for each in explanations):
        explanations = settled(explanations, defects, bound)
    behind = processed(explanations, event, defects)
    # else those that are equal now are merged with the next output, or when all is at rest
    return merged(behind) if len(behind) > len(explanations) else behind


def _processed_or_waiting(
    explanations: list[Explanation], event: TraceEvent, defects: DefectsFollowed
) -> list[Explanation]:
    """Messages may expire before the broker comes to the input, which takes its time: it stays pending as well, where
    that makes a difference.
    """
    waiting = [each.fork() for each in explanations if not is_independent(each.broker, event, each.pending)]
    if waiting and not explanations[0].broker.bookkeeping.counting:
        explanations[0].uncounted.append(event)
    for explanation in waiting:
        explanation.pending.append(event)
    return merged(processed(explanations, event, defects)) + waiting
