"""What a barrier has to ask about while it is not known what the broker has done by itself (messages that expire).

At one of the points at which the broker may be, everything is as it shall be: else something must be asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from model.broker import Broker
from model.departure import Departure
from model.explanations import Explanation, TooManyExplanations, points


def unproven_queues(
    explanations: Iterable[Explanation], departures: Mapping[str, tuple[Departure, ...]], bound: int
) -> list[str]:
    """Names of the queues that something may be on its way to; none if at some point everything is proven."""
    names: dict[str, None] = {}
    for broker in _at_rest(explanations, departures, bound):
        unproven = [name for name, queue in broker.queues.items() if queue.unproven]
        if not unproven:
            return []
        names.update(dict.fromkeys(unproven))
    return list(names)


def may_be_proven(
    name: str, explanations: Iterable[Explanation], departures: Mapping[str, tuple[Departure, ...]], bound: int
) -> bool:
    """Is the queue as it shall be at some point?"""
    for broker in _at_rest(explanations, departures, bound):
        queue = broker.queues.get(name)
        if queue is None or not (queue.unproven or queue.dropping or queue.leaving):
            return True
    return False


def _at_rest(
    explanations: Iterable[Explanation], departures: Mapping[str, tuple[Departure, ...]], bound: int
) -> Iterator[Broker]:
    """The lawful points at which all inputs are processed and nothing is owed; as many as are looked at."""
    try:
        for explanation in explanations:
            for point in points(explanation, departures, bound):
                if point.is_settled and point.departure is None and point.broker.quiet:
                    yield point.broker
    except TooManyExplanations:
        return
