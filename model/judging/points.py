"""The points at which a broker may be, by an explanation: some of what is under way is processed, or all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import (
    DeliveryTimeout,
    Input,
    MessageExpiry,
    kind_of,
    lane_of,
)
from amqpspec.model.broker.length_limits import has_length_limit
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.independence import asked_queue, is_all, is_before_publishes, is_elsewhere
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.judging.merging import merged
from amqpspec.model.judging.pending_inputs import next_inputs
from amqpspec.model.outputs.confirms import is_owed
from amqpspec.model.outputs.replies import CONFIRMS, is_unasked
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.internal_events import can_come_about

#: What comes about when a time is up.
TIMED = (MessageExpiry, DeliveryTimeout)


class TooManyExplanations(Exception):
    """The explanations are more than the bound."""


def points(
    explanation: Explanation, defects: DefectsFollowed, bound: int, reply: TraceEvent | None = None
) -> Iterator[Explanation]:
    """The points at which the broker may be: some first part of each channel's pending inputs is processed.

    The explanation is one of them, and no copy: whatever becomes of it takes its place. Raises `TooManyExplanations`
    where there are more than `bound` with the same number of inputs processed: what is left out might be the right one.
    `reply`: the frame that came. Lawful points at which no processed input has asked for it are left out.
    """
    explanation.begin_anew()
    frontier = [explanation]
    while frontier:
        found: list[Explanation] = []
        reached: list[Explanation] = []
        for point in frontier:
            steps = [
                (index, _applying(point, defects, point.pending[index]))
                for index in next_inputs(point.pending)
                if _is_due(point, index)
            ]
            is_left_out = (
                reply is not None
                and bool(steps)
                and point.defect is None
                and not any(applying for _, applying in steps)
                and is_unasked(point.broker, reply)
            )
            if is_left_out:
                steps = _that_matter(point, steps)
            elif reply is not None and steps and _may_suffice(point, reply, steps):
                # where this point explains the reply, each later one does so as well, and is not followed: none is made
                if _is_answer(reply) and not point.is_at_no_time(reply):
                    found.append(point)
                    continue
                tried = point.fork()
                tried.behind = point.behind
                yield tried
                if tried.is_kept:
                    continue
            else:
                found.append(point)
                if not any(applying for _, applying in steps) and _says_nothing_of_what_is_pending(point, reply):
                    continue
            for index, applying in steps:
                event = point.pending[index]
                # a point that is left out is not given to the caller, so the last one after it can be made of it
                is_taken = is_left_out and index == steps[-1][0] and not isinstance(event, TIMED)
                further = _process_one(point, index, applying, is_taken)
                # a point that is left out is no place to come from: what expires later may be dead-lettered otherwise
                is_lost = is_left_out and not _is_mere_expiry(point, index)
                reached += further if is_lost else _behind(point, event, further)
        reached = merged(reached)
        # the caller changes these points, and what comes after them has been made of them by now
        yield from found
        if len(reached) > bound:
            raise TooManyExplanations
        frontier = reached


def _that_matter(
    point: Explanation, steps: list[tuple[int, list[DefectTransition]]]
) -> list[tuple[int, list[DefectTransition]]]:
    """Without the messages that may as well expire after the inputs that are to be processed."""
    sent = [index for index, _ in steps if isinstance(point.pending[index], TraceEvent)]
    asked = [asked_queue(point.broker, point.pending[index]) for index in sent]
    queues = {queue for queue in asked if queue is not None}
    if None in asked or not asked:
        return steps
    others = {index: point.pending[index] for index, _ in steps if index not in sent}
    if all(is_elsewhere(point.broker, queues, each) for each in others.values()):
        return [step for step in steps if step[0] in sent]
    if not all(isinstance(each, MessageExpiry) and is_all(point.broker, each) for each in others.values()):
        return steps
    return [step for step in steps if step[0] in sent or not is_elsewhere(point.broker, queues, others[step[0]])]


def _is_answer(reply: TraceEvent) -> bool:
    """Was what it says settled when it was asked for?"""
    return reply.name.endswith("-ok") and reply.name != "basic.get-ok"


def _may_suffice(point: Explanation, reply: TraceEvent, steps: list[tuple[int, list[DefectTransition]]]) -> bool:
    """Does each later point explain the reply as this one does, if it does?"""
    if all(_is_mere_expiry(point, index) for index, _ in steps):
        return True
    if point.defect is not None or any(applying for _, applying in steps):
        return False
    return is_before_publishes(point.broker, point.pending, reply)


def _is_mere_expiry(point: Explanation, index: int) -> bool:
    event = point.pending[index]
    return isinstance(event, MessageExpiry) and is_all(point.broker, event)


def _says_nothing_of_what_is_pending(point: Explanation, reply: TraceEvent | None) -> bool:
    """Is it a confirm that is owed there, and nothing pending but later publishes of its channel? They are processed
    before it is sent, or after it: that is one and the same, whatever comes next.
    """
    if not isinstance(reply, Method) or reply.name not in CONFIRMS or point.defect is not None:
        return False
    key = (reply.connection, reply.channel)
    channel = point.broker.channels.get(key)
    return (
        channel is not None
        and all(kind_of(each) == "basic.publish" and lane_of(each) == key for each in point.pending)
        and is_owed(point.broker, channel, reply)
    )


def _applying(point: Explanation, defects: DefectsFollowed, event: Input) -> list[DefectTransition]:
    """The known defects as which the broker may process the input."""
    return [each for each in defects.of_kind(kind_of(event)) if point.may_be_defective(each, event)]


def _behind(before: Explanation, event: Input, reached: Iterator[Explanation]) -> Iterator[Explanation]:
    """What is reached by processing the input; if that is one more expiry, each notes from where it is reached."""
    may_be_later = isinstance(event, TIMED) and not _may_be_refused_later(before.broker, event)
    for further in reached:
        if may_be_later and further.defect is before.defect:
            further.behind = before
        yield further


def _may_be_refused_later(broker: Broker, event: Input) -> bool:
    """Is what expires dead-lettered, to an exchange that is there, and are there queues that may have room for it now
    and none later, or so?
    """
    queue = broker.queues.get(event.queue) if isinstance(event, MessageExpiry) else None
    if queue is None or queue.in_force.get(EXCHANGE) not in broker.exchanges:
        return False
    return any(has_length_limit(broker, other) for other in broker.queues.values() if other is not queue)


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
    further.behind = None  # what expired before this input may be in front no more after it, and does not expire then
    further.process_pending(index)
    yield further
    yield from others


def _is_due(point: Explanation, index: int) -> bool:
    event = point.pending[index]
    return not isinstance(event, TIMED) or can_come_about(point.broker, event)


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
        if lazily and explanation.is_settled and explanation.is_quiet:
            found.append(explanation)
            continue
        for point in points(explanation, defects, bound):
            if point.is_settled and not (finally_ and point.has_to_clean_up):
                if lazily and point.is_quiet and not point.keep():
                    continue
                found.append(point)
        if len(found) > bound:
            found = merged(found)
            if len(found) > bound:
                raise TooManyExplanations
    return merged(found)


def may_be_quiet(explanation: Explanation, defects: DefectsFollowed, bound: int) -> bool:
    """Is there a point at which all inputs are processed, lawfully, and nothing is owed?"""
    if explanation.is_settled and explanation.is_quiet:
        return True
    return bool(explanation.pending) and any(
        point.is_settled and point.defect is None and point.is_quiet
        for point in points(explanation, defects, bound)
    )
