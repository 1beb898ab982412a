"""Explanations that are one: those of equal states, and those that come to each other by what is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.internal_events import (
    Input,
    InternalEvent,
    Lane,
    PossibleEvent,
)
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.stream_log import know_no_more_than, known_chunks
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.pending_inputs import next_inputs


def merged(explanations: list[Explanation]) -> list[Explanation]:
    """Without those that are equal to an earlier one. What is not known alike of the chunks of streams is not known; of
    known defects that have led to one state it is the one that is followed longest.
    """
    if len(explanations) < 2:
        return explanations
    rough = [_rough_key(explanation) for explanation in explanations]
    alike = Counter(rough)
    unique: dict[object, Explanation] = {}
    for explanation, key in zip(explanations, rough, strict=True):
        if alike[key] > 1:
            key = key, fingerprint(explanation.broker)
        first = unique.setdefault(key, explanation)
        if first is not explanation:
            know_no_more_than(first.broker, explanation.broker)
            if explanation.rests_left > first.rests_left:
                first.defect, first.rests = explanation.defect, explanation.rests
                first.defective_input = explanation.defective_input
    return list(unique.values())


def least_advanced(explanations: list[Explanation]) -> list[Explanation]:
    """Without those to which another one comes by processing its next input: they are among its points. So inputs of
    which no output tells whether they have been processed do not make explanations of their own.

    The explanations must be `merged`; those with most pending inputs come first.
    """
    if len(explanations) == 1:
        return explanations
    inputs = [_inputs(each.pending) for each in explanations]
    steps = [
        (place, index, behind)
        for place, each in enumerate(explanations)
        if each.defect is None
        for index in next_inputs(each.pending)
        if (behind := _inputs(each.pending, each.pending[index])) in inputs
    ]
    there = {behind for _, _, behind in steps}
    # where chunks begin may depend on what had been seen when the input was processed
    places = {
        (_key(each), known_chunks(each.broker)): place
        for place, each in enumerate(explanations)
        if inputs[place] in there
    }
    roughly = {key[0] for key, _ in places}
    reached: dict[int, set[int]] = {}
    for place, index, _ in steps:
        further = explanations[place].fork()
        further.process_pending(index)
        if _rough_key(further) in roughly:
            other = places.get((_key(further), known_chunks(further.broker)), place)
            reached.setdefault(place, set()).add(other)
    implied = {other for place, others in reached.items() for other in others if other != place}
    # of those that come to each other, as what has been done may be expected anew, the first
    left: set[int] = set()
    known: set[int] = set()
    for place in (*(each for each in range(len(explanations)) if each not in implied), *sorted(implied)):
        if place not in known:
            left.add(place)
            _follow(place, reached, known)
    return sorted((explanations[place] for place in sorted(left)), key=lambda explanation: -len(explanation.pending))


def _follow(place: int, reached: Mapping[int, set[int]], known: set[int]) -> None:
    """Adds to what is known all that is reached from there, in any number of steps."""
    ahead = [place]
    while ahead:
        place = ahead.pop()
        if place not in known:
            known.add(place)
            ahead += reached.get(place, ())


def _key(explanation: Explanation) -> tuple[object, object]:
    return _rough_key(explanation), fingerprint(explanation.broker)


def _rough_key(explanation: Explanation) -> object:
    """What is equal where the key is, and found at once."""
    broker = explanation.broker
    queues = [
        (name, *[message.content.body for message in queue.messages])
        for name, queue in broker.queues.items()
        if queue.messages
    ]
    queues.sort()
    channels = [
        (key, channel.next_tag, len(channel.unacknowledged), *map(_owed, channel.owed))
        for key, channel in broker.channels.items()
    ]
    channels.sort()
    inputs = explanation.pending
    possible = [each for each in inputs if isinstance(each, PossibleEvent)]
    if possible:
        inputs = [each for each in inputs if not isinstance(each, PossibleEvent)]
    return (
        tuple(map(_identity, inputs)),
        _in_lanes(possible) if possible else None,
        explanation.defect is None,
        # two that lead to one state are as good as one, but not before they have led there
        explanation.defect.name if explanation.defect is not None and explanation.defect_is_ahead else "",
        broker.is_unpredictable,
        tuple(queues),
        tuple(channels),
    )


def _owed(owed: Expected | PendingGet) -> str:
    return "" if isinstance(owed, PendingGet) else owed.method


def _inputs(pending: list[Input], processed: Input | None = None) -> tuple[int, ...]:
    """Those of clients, without that one; processing one adds none."""
    sent = [each for each in pending if not isinstance(each, InternalEvent)]
    return tuple([id(each) for each in sent if each is not processed])


def _in_lanes(possible: list[PossibleEvent]) -> object:
    """Of those that come about independently, the order says nothing."""
    lanes: dict[Lane, list[InternalEvent]] = {}
    for each in possible:
        lanes.setdefault(each.lane, []).append(each)
    return frozenset(map(tuple, lanes.values()))


def _identity(pending: Input) -> object:
    """Inputs are the same ones in all explanations; of what the broker may do by itself each has noted its own."""
    return pending if isinstance(pending, InternalEvent) else id(pending)
