"""Explanations that permit nothing beyond another one: equal but for a number that is owed, which lies within its own.

How many messages a queue has that is deleted while publishes cross it differs with the moment of the deletion, and with
each confirm that has come until then. Of such numbers the widest says it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.merging import Seen, all_alike
from amqpspec.model.protocol.patterns import Between

#: Up to so many explanations the search is not worth its time.
FEW = 32

#: What is owed: the lowest number and the highest, in the order in which they are owed.
_Numbers = tuple[tuple[int, int], ...]


def without_narrower(explanations: list[Explanation]) -> list[Explanation]:
    """Without those that another one includes, in their order."""
    if len(explanations) <= FEW:
        return explanations
    numbers = [_numbers(each) for each in explanations]
    if not any(numbers):
        return explanations
    seen = [Seen(_without_numbers(each)) for each in explanations]
    places = {id(each): place for place, each in enumerate(seen)}
    left: set[int] = set()
    for group in all_alike(seen):
        widest: list[int] = []
        # the widest come first: one that includes another is at least as wide
        for place in sorted((places[id(each)] for each in group), key=lambda place: _breadth(numbers[place])):
            if not any(_includes(numbers[other], numbers[place]) for other in widest):
                widest.append(place)
        left.update(widest)
    return [each for place, each in enumerate(explanations) if place in left]


def _numbers(explanation: Explanation) -> _Numbers:
    return tuple(
        (number.low, number.high) if isinstance(number, Between) else (number, number)
        for channel in _owing(explanation)
        for owed in channel.owed
        if isinstance(owed, Expected) and isinstance(number := owed.arguments.get("message_count"), int | Between)
    )


def _owing(explanation: Explanation) -> Iterator[Channel]:
    channels = explanation.broker.channels
    return (channels[key] for key in sorted(explanation.broker.debtors) if key[1])


def _without_numbers(explanation: Explanation) -> Explanation:
    """A copy that owes each number as any number."""
    copy = explanation.fork()
    for channel in _owing(copy):
        channel.owed = [
            replace(owed, arguments={**owed.arguments, "message_count": None})
            if isinstance(owed, Expected) and "message_count" in owed.arguments
            else owed
            for owed in channel.owed
        ]
    return copy


def _breadth(numbers: _Numbers) -> int:
    return -sum(high - low for low, high in numbers)


def _includes(wide: _Numbers, numbers: _Numbers) -> bool:
    both = zip(wide, numbers, strict=True)
    return all(least <= low and high <= most for (least, most), (low, high) in both)
