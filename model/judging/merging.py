"""Explanations that are one: those of equal states, and those that come to each other by what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from amqpspec.model.broker.fingerprint import parts_of_fingerprint
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


class Seen:
    """Keeps the parts of an explanation's fingerprint that were looked at, until the explanation changes."""

    __slots__ = ("_looks", "_parts", "explanation")

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        self._parts: dict[int, object] = {}
        self._looks = parts_of_fingerprint(explanation.broker)

    def part(self, number: int) -> object:
        """The part of that number; 0 is what is found at once."""
        parts = self._parts
        if number not in parts:
            broker = self.explanation.broker
            parts[number] = self._looks[number - 1](broker, broker) if number else _rough_key(self.explanation)
        return parts[number]

    @property
    def parts(self) -> range:
        """The numbers of all parts."""
        return range(len(self._looks) + 1)

    def is_like(self, other: Seen) -> bool:
        """Are they one in all parts?"""
        return self.part(0) == other.part(0) and self.is_in_state_of(other)

    def is_in_state_of(self, other: Seen) -> bool:
        """Are their fingerprints equal?"""
        return all(self.part(number) == other.part(number) for number in self.parts[1:])


#: The part by which explanations were told apart last: what differs now differs most often when they are seen again.
_LOOKED_AT_FIRST = [0]


def merged(explanations: list[Explanation]) -> list[Explanation]:
    """Without those that are equal to an earlier one (`merged_seen`)."""
    if len(explanations) < 2:
        return explanations
    return [each.explanation for each in merged_seen(list(map(Seen, explanations)))]


def merged_seen(explanations: list[Seen]) -> list[Seen]:
    """Without those that are equal to an earlier one. What is not known alike of the chunks of streams is not known."""
    if len(explanations) < 2:
        return explanations
    unequal = all_alike(explanations)
    if len(unequal) == len(explanations):
        return explanations
    for first, *others in unequal:
        for other in others:
            _take_over(first.explanation, other.explanation)
    firsts = {id(alike[0]) for alike in unequal}
    return [each for each in explanations if id(each) in firsts]


def all_alike(explanations: list[Seen]) -> list[list[Seen]]:
    """Those that are one in all parts, together; each group in their order."""
    unequal = [explanations]
    latest = _LOOKED_AT_FIRST[0]
    for number in (latest, *(each for each in explanations[0].parts if each != latest)):
        unequal = [alike for each in unequal for alike in _told_apart(each, number)]
        if len(unequal) == len(explanations):
            _LOOKED_AT_FIRST[0] = number
            break
    return unequal


def _told_apart(alike: list[Seen], number: int) -> Iterable[list[Seen]]:
    """The same by what the part of that number says, each in their order."""
    if len(alike) == 1:
        return (alike,)
    found: dict[object, list[Seen]] = {}
    for each in alike:
        found.setdefault(each.part(number), []).append(each)
    return found.values()


def _take_over(first: Explanation, other: Explanation) -> None:
    know_no_more_than(first.broker, other.broker)
    first.is_unusual = first.is_unusual and other.is_unusual
    first.armed |= other.armed


def least_advanced(seen: list[Seen]) -> list[Explanation]:
    """Without those to which another one comes by processing its next input: they are among its points. So inputs of
    which no output tells whether they have been processed do not make explanations of their own.

    The explanations must be `merged`; those with most pending inputs come first.
    """
    explanations = [each.explanation for each in seen]
    if len(explanations) == 1:
        return explanations
    inputs = [_inputs(each.pending) for each in explanations]
    steps = [
        (place, index, behind)
        for place, each in enumerate(explanations)
        if each.defect is None or each.defect_took_place
        for index in next_inputs(each.pending)
        if (behind := _inputs(each.pending, each.pending[index])) in inputs
    ]
    there = {behind for _, _, behind in steps}
    roughly: dict[object, list[int]] = {}
    for place, each in enumerate(seen):
        if inputs[place] in there:
            roughly.setdefault(each.part(0), []).append(place)
    reached: dict[int, set[int]] = {}
    for place, index, _ in steps:
        further = Seen(explanations[place].fork())
        further.explanation.process_pending(index)
        if further.part(0) in roughly:
            others = (other for other in roughly[further.part(0)] if _is_one(further, seen[other]))
            reached.setdefault(place, set()).add(next(others, place))
    implied = {other for place, others in reached.items() for other in others if other != place}
    # of those that come to each other, as what has been done may be expected anew, the first
    left: set[int] = set()
    known: set[int] = set()
    for place in (*(each for each in range(len(explanations)) if each not in implied), *sorted(implied)):
        if place not in known:
            left.add(place)
            _follow(place, reached, known)
    return sorted((explanations[place] for place in sorted(left)), key=lambda explanation: -len(explanation.pending))


def _is_one(further: Seen, there: Seen) -> bool:
    """Where chunks begin may depend on what had been seen when the input was processed."""
    if known_chunks(further.explanation.broker) != known_chunks(there.explanation.broker):
        return False
    return further.is_like(there)


def _follow(place: int, reached: Mapping[int, set[int]], known: set[int]) -> None:
    """Adds to what is known all that is reached from there, in any number of steps."""
    ahead = [place]
    while ahead:
        place = ahead.pop()
        if place not in known:
            known.add(place)
            ahead += reached.get(place, ())


def _rough_key(explanation: Explanation) -> object:
    """A key that is found at once: explanations with different keys are not equal, those with equal keys may be."""
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
        tuple(map(_identity, explanation.stalled)),
        _in_lanes(possible) if possible else None,
        explanation.defect is None,
        # two that lead to one state are as good as one, but not before they have led there
        explanation.defect.name if explanation.defect is not None and explanation.defect_is_ahead else "",
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
