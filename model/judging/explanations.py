"""Explanations: the ways in which a broker may have come to what was seen, and the points at which it may be now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.dispatch import service_is_unknown
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.internal_events import (
    DeliveryTimeout,
    Input,
    InternalEvent,
    Lane,
    MessageExpiry,
    PossibleEvent,
    Teardown,
    kind_of,
    lane_of,
)
from amqpspec.model.broker.overflow import is_limited
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.stream_log import know_no_more_than, known_chunks
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.known_defect import DefectsFollowed, DefectTransition
from amqpspec.model.outputs.mismatch import Mismatches
from amqpspec.model.outputs.replies import is_unasked
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.model.rules.internal_events import can_come_about

#: What comes about when a time is up.
TIMED = (MessageExpiry, DeliveryTimeout)

#: Most known defects followed on beside what is lawful.
MOST_LATENT = 4

#: Behind how many more commands a crash may show that the broker was at rest without.
MOST_RESTS_UNPREDICTABLE = 2


class TooManyExplanations(Exception):
    """The explanations are more than the bound."""


def points(
    explanation: Explanation, defects: DefectsFollowed, bound: int, reply: TraceEvent | None = None
) -> Iterator[Explanation]:
    """The points at which the broker may be: some first part of each channel's pending inputs is processed.

    The explanation is one of them, and no copy: whatever becomes of it takes its place. Raises `TooManyExplanations`
    where there are more than `bound` with the same number of inputs processed: what is left out might be the right one.
    `reply`: what came, for which lawful points are left out at which nobody has asked for it yet.
    """
    explanation.forget_if_unpredictable()
    explanation.begin_anew()
    frontier = [explanation]
    while frontier:
        found: list[Explanation] = []
        reached: list[Explanation] = []
        for point in frontier:
            steps = [
                (index, _applying(point, defects, point.pending[index]))
                for index in _next_inputs(point.pending)
                if _is_due(point, index)
            ]
            is_left_out = (
                reply is not None
                and bool(steps)
                and point.defect is None
                and not any(applying for _, applying in steps)
                and is_unasked(point.broker, reply)
            )
            if not is_left_out:
                found.append(point)
            for index, applying in steps:
                event = point.pending[index]
                # nobody looks at a point that is left out, so that the last one behind it can be made of it
                is_taken = is_left_out and index == steps[-1][0] and not isinstance(event, TIMED)
                reached += _behind(point, event, _process_one(point, index, applying, is_taken))
        reached = merged(reached)
        # what is behind them has been made of them: they are changed by whoever is given them
        yield from found
        if len(reached) > bound:
            raise TooManyExplanations
        frontier = reached


def _applying(point: Explanation, defects: DefectsFollowed, event: Input) -> list[DefectTransition]:
    """The known defects as which the broker may process the input."""
    return [each for each in defects.asked(point.broker, kind_of(event)) if point.may_be_defective(each, event)]


def _behind(before: Explanation, event: Input, reached: Iterator[Explanation]) -> Iterator[Explanation]:
    """Note of what is reached by processing the input, if it is one more message that expires, from where it is."""
    may_be_later = isinstance(event, TIMED) and not _may_be_refused_later(before.broker, event)
    for further in reached:
        if may_be_later and further.defect is before.defect:
            further.behind = before
        yield further


def _may_be_refused_later(broker: Broker, event: Input) -> bool:
    """Is what expires dead-lettered, and are there queues that may have room for it now and none later, or so?"""
    queue = broker.queues.get(event.queue) if isinstance(event, MessageExpiry) else None
    if queue is None or EXCHANGE not in queue.arguments:
        return False
    return any(is_limited(broker, other) for other in broker.queues.values() if other is not queue)


def _process_one(
    point: Explanation, index: int, applying: Sequence[DefectTransition], is_taken: bool
) -> Iterator[Explanation]:
    """Copies of the point with that input processed: lawfully, and as each known defect that applies has it.

    `is_taken`: the first of them is the point itself.
    """
    event = point.pending[index]
    others = point.alternatives(event) if event is not point.defective_input else []
    for defect in applying:
        defective = point.fork()
        defective.defect, defective.defective_input = defect, event
        defective.process_pending(index)
        others.append(defective)
    further = point if is_taken else point.fork()
    further.process_pending(index)
    further.decline(applying)
    yield further
    yield from others


def _is_due(point: Explanation, index: int) -> bool:
    event = point.pending[index]
    return not isinstance(event, TIMED) or can_come_about(point.broker, event)


def _next_inputs(pending: list[Input]) -> Iterator[int]:
    """Places of the inputs that may be processed next: the first of each channel.

    What ends channels may come ahead of what they were sent: that is not processed any more then.
    """
    seen: set[tuple[object, int, bool]] = set()
    for index, event in enumerate(pending):
        is_end = isinstance(event, Teardown)
        name, number = lane_of(event)
        if number == 0 and any(other == name and (by_end or not is_end) for other, _, by_end in seen):
            continue  # the connection's own methods come after all that was sent on its channels before
        lane = (name, number, is_end)
        if lane in seen or (name, 0, False) in seen:
            continue
        seen.add(lane)
        yield index


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
        for index in _next_inputs(each.pending)
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


def settled(
    explanations: list[Explanation],
    defects: DefectsFollowed,
    bound: int,
    finally_: bool = False,
    lazily: bool = False,
) -> list[Explanation]:
    """The explanations with all inputs processed. `finally_`: and with everything done that the broker had to do.

    `lazily`: where nothing is owed, what the broker may do by itself stays open. Raises `TooManyExplanations`.
    """
    found: list[Explanation] = []
    for explanation in explanations:
        if lazily and explanation.is_settled and explanation.broker.quiet:
            found.append(explanation)
            continue
        for point in points(explanation, defects, bound):
            if point.is_settled and not (finally_ and point.has_to_clean_up):
                if lazily and point.broker.quiet and not point.keep():
                    continue
                found.append(point)
        if len(found) > bound:
            found = merged(found)
            if len(found) > bound:
                raise TooManyExplanations
    return merged(found)


def may_be_quiet(explanation: Explanation, defects: DefectsFollowed, bound: int) -> bool:
    """Is there a point at which all inputs are processed, lawfully, and nothing is owed?"""
    if explanation.is_settled and explanation.broker.quiet:
        return True
    return bool(explanation.pending) and any(
        point.is_settled and point.defect is None and point.broker.quiet
        for point in points(explanation, defects, bound)
    )


def _may_have_crashed(broker: Broker) -> bool:
    """Is something on its way to a queue that may crash over it, and that no barrier waits for (SAC-002)?"""
    return any(
        queue.unproven and queue.type is QueueType.CLASSIC and service_is_unknown(broker, queue)
        for queue in broker.queues.values()
    )


def _is_lately_unpredictable(explanation: Explanation) -> bool:
    """Not for long: it would explain whatever else is wrong."""
    return explanation.broker.is_unpredictable and explanation.rests < MOST_RESTS_UNPREDICTABLE


def latent_beside(proven: list[Explanation], quiet: list[Explanation]) -> list[Explanation]:
    """Of those at rest, the ones of known defects that may show later, and do not come to what is lawful anyway."""
    if all(each.defect is None and not each.broker.is_unpredictable for each in quiet):
        return []
    undecided = any(_may_have_crashed(explanation.broker) for explanation in proven)
    latent = [each for each in quiet if each.is_latent or (undecided and _is_lately_unpredictable(each))]
    lawful = {fingerprint(explanation.broker) for explanation in proven} if latent else set()
    for explanation in latent:
        explanation.rests += 1
    return _in_turns(merged([each for each in latent if fingerprint(each.broker) not in lawful]))[:MOST_LATENT]


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
    """Those by which the least is wrong with the frame; what is known to be told wrong weighs less."""

    def weight(candidate: Explanation, mismatches: Mismatches) -> tuple[bool, int, int]:
        unknown = sum(not mismatch.defect for mismatch in mismatches)
        return (candidate.defect is not None, unknown, len(mismatches))

    least = min(weight(*each) for each in flawed)
    return [each for each in flawed if weight(*each) == least]
