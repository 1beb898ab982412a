"""What a barrier has to ask about while it is not known what the broker has done by itself (messages that expire).

At one of the points at which the broker may be, everything is as it shall be: else something must be asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dispatch import service_is_unknown
from amqpspec.model.broker.internal_events import DeliveryLimitExcess, Teardown
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.points import TooManyExplanations, points
from amqpspec.model.protocol.methods import ChannelKey, TraceEvent


def unprocessed(explanations: Iterable[Explanation]) -> list[ChannelKey]:
    """Channels on which something was sent that some lawful explanation has not processed: what that one owes, or what
    it touches, the others do not tell.
    """
    lawful = (explanation for explanation in explanations if explanation.defect is None)
    pending = (event for explanation in lawful for event in explanation.pending)
    sent = (event for event in pending if isinstance(event, TraceEvent | Teardown))
    return list(dict.fromkeys((event.connection, event.channel) for event in sent if event.channel))


def may_give_up(explanations: Iterable[Explanation]) -> bool:
    """May a queue have given up a message because of deliveries that nobody saw, which then is on its way to others?"""
    pending = (event for explanation in explanations for event in explanation.pending)
    return any(isinstance(event, DeliveryLimitExcess) for event in pending)


def unproven_queues(
    explanations: Iterable[Explanation], defects: DefectsFollowed, bound: int
) -> list[str]:
    """Names of the queues that something may be on its way to; none if at some point everything is proven."""
    names: dict[str, None] = {}
    for broker in _at_rest(explanations, defects, bound):
        # one that owes nothing will not say
        queues = broker.queues.items()
        unproven = [name for name, queue in queues if queue.unproven and not service_is_unknown(broker, queue)]
        if not unproven:
            return []
        names.update(dict.fromkeys(unproven))
    return list(names)


def may_be_proven(
    name: str, explanations: Iterable[Explanation], defects: DefectsFollowed, bound: int
) -> bool:
    """Is the queue as it shall be at some point?"""
    for broker in _at_rest(explanations, defects, bound):
        queue = broker.queues.get(name)
        if queue is None or not (queue.unproven or queue.dropping or queue.still_counted):
            return True
    return False


def _at_rest(
    explanations: Iterable[Explanation], defects: DefectsFollowed, bound: int
) -> Iterator[Broker]:
    """The lawful points at which all inputs are processed and nothing is owed; as many as are looked at."""
    try:
        for explanation in explanations:
            for point in points(explanation, defects, bound):
                if point.is_settled and point.defect is None and point.is_quiet:
                    yield point.broker
    except TooManyExplanations:
        return
