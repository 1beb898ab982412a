"""Which of the explanations are followed on: those of known defects that may show later, and the least flawed ones."""

from __future__ import annotations

from collections import Counter

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dispatch import service_is_unknown
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.merging import Seen, merged_seen
from amqpspec.model.outputs.mismatch import Mismatches
from amqpspec.model.promises.queue_types import QueueType

#: Most known defects followed on beside what is lawful.
MOST_LATENT = 4

#: After how many more commands a crash may show although the broker was at rest without it.
MOST_RESTS_UNPREDICTABLE = 2


def _may_have_crashed(broker: Broker) -> bool:
    """Is something on its way to a queue that may crash over it, and that no barrier waits for (SAC-002)?"""
    return any(
        queue.unproven and queue.type is QueueType.CLASSIC and service_is_unknown(broker, queue)
        for queue in broker.queues.values()
    )


def _is_lately_unpredictable(explanation: Explanation) -> bool:
    """Not for long: it would explain whatever else is wrong."""
    return explanation.is_unpredictable and explanation.rests < MOST_RESTS_UNPREDICTABLE


def latent_beside(proven: list[Explanation], quiet: list[Explanation]) -> list[Explanation]:
    """Of those at rest, the ones of known defects that may show later, and do not come to what is lawful anyway."""
    if all(each.defect is None and not each.is_unpredictable for each in quiet):
        return []
    undecided = any(_may_have_crashed(explanation.broker) for explanation in proven)
    latent = [each for each in quiet if each.is_latent or (undecided and _is_lately_unpredictable(each))]
    lawful = list(map(Seen, proven)) if latent else []
    for explanation in latent:
        explanation.rests += 1
    others = [each for each in map(Seen, latent) if not any(map(each.is_in_state_of, lawful))]
    return _in_turns([each.explanation for each in merged_seen(others)])[:MOST_LATENT]


def _in_turns(latent: list[Explanation]) -> list[Explanation]:
    """By known defects in turns, so that one that may have taken place in many ways leaves room for others."""
    seen: Counter[str] = Counter()
    places: list[tuple[int, int]] = []
    for place, explanation in enumerate(latent):
        name = explanation.defect.name if explanation.defect is not None else ""
        places.append((seen[name], place))
        seen[name] += 1
    return [latent[place] for _, place in sorted(places)]


def least_flawed(flawed: list[tuple[Explanation, Mismatches]]) -> list[tuple[Explanation, Mismatches]]:
    """Those by which the least is wrong with the frame; what is known or used to be told wrong weighs less."""

    def weight(candidate: Explanation, mismatches: Mismatches) -> tuple[bool, int, int]:
        unknown = sum(not mismatch.defect and not mismatch.is_habit for mismatch in mismatches)
        return (candidate.defect is not None, unknown, len(mismatches))

    least = min(weight(*each) for each in flawed)
    return [each for each in flawed if weight(*each) == least]
