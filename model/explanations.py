"""Explanations: the ways in which a broker may have come to what was seen, and the points at which it may be now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from model.alphabet import CRASH, TEARDOWN, TEARDOWNS, Frame
from model.alternatives import alternatives_to
from model.broker import Broker
from model.copying import copy_broker
from model.departure import Departure
from model.fingerprint import fingerprint
from model.inputs import process
from model.mismatch import Mismatches
from model.overflow import is_limited
from model.queues import QueueType
from model.rules.closing import CLEAN_UP
from model.rules.consumer_timeout import TIME_OUT, TIME_OUT_IS_OVER
from model.rules.dead_letter import EXCHANGE
from model.rules.expiry import expiries
from model.rules.happenings import can_come_about, is_happening
from model.rules.message_expiry import AHEAD, EXPIRE, message_expiries, tell_of_expiries
from model.rules.timeouts import certain_timeouts, tell_of_timeouts, timeouts
from model.state import ConnectionState, Expected
from model.stream_log import know_no_more_than, known_chunks

#: What comes about when a time is up.
TIMED = (EXPIRE, TIME_OUT)

#: Most departures followed on beside what is lawful.
MOST_LATENT = 4

#: Behind how many more commands a crash may show that the broker was at rest without.
MOST_RESTS_ASTRAY = 2


class TooManyExplanations(Exception):
    """The explanations are more than the bound."""


@dataclass(slots=True)
class Explanation:
    """One way in which the broker may have come to what was seen."""

    broker: Broker
    #: sent, not processed; in the order of sending, which is that of processing within a channel
    pending: list[Frame] = field(default_factory=list)
    #: a known departure that this explanation follows, and the pending input that comes under it
    departure: Departure | None = None
    departing: Frame | None = None
    #: inputs of barriers: judged, but no exercise of anything; shared by all explanations
    uncounted: list[Frame] = field(default_factory=list)
    #: some input was processed in another way than the usual one (`model.alternatives`): not the one to blame by
    is_unusual: bool = False
    #: how often the broker has been at rest since the departure
    rests: int = 0
    #: names of steady departures (`Departure.is_steady`) that this explanation could have followed and did not, as
    #: long as another one follows them
    declined: frozenset[str] = frozenset()
    #: the point that this one is the same as, but that one more message has expired, which may as well happen later;
    #: whether that point explains what came, so that this one need not be followed
    behind: Explanation | None = None
    is_kept: bool = False

    @property
    def is_foreseen(self) -> bool:
        """Is it reached from another one that is kept? Then that is enough."""
        self.is_kept = True
        before, self.behind = self.behind, None
        return before is not None and before.is_kept

    def fork(self) -> Explanation:
        return Explanation(
            copy_broker(self.broker), list(self.pending), self.departure, self.departing, self.uncounted,
            self.is_unusual, self.rests, self.declined,
        )  # fmt: skip

    def alternatives(self, frame: Frame) -> Iterator[Explanation]:
        """Copies in which the input, pending or new, has been processed in another way that is right as well."""
        for alternative in alternatives_to(self.broker, frame):
            other = self.fork()
            other.is_unusual = True
            other.pending = [pending for pending in self.pending if pending is not frame]
            alternative.process(other.broker, frame)
            other.expect_teardowns()
            yield other

    def process_pending(self, index: int) -> None:
        """Process one of the pending inputs; the one that comes under the departure as the departure says."""
        frame = self.pending.pop(index)
        counting = self.broker.counting
        self.broker.counting = not any(frame is other for other in self.uncounted)
        self.process(frame)
        self.broker.counting = counting
        if self.broker.ageing:
            tell_of_expiries(self.broker)
        if self.broker.next_timeout <= self.broker.foreseen:
            tell_of_timeouts(self.broker)
        self.expect_teardowns()
        self.forget_if_astray()

    def forget_if_astray(self) -> None:
        """Where anything is explained it makes no difference any more what has been processed."""
        if self.broker.is_astray:
            self.pending.clear()

    def process(self, frame: Frame) -> None:
        """Process an input as the broker does that this explanation supposes: a defect that it has it always has."""
        departure = self.departure
        if departure is None or not (frame is self.departing or self._departs_again(departure, frame)):
            process(self.broker, frame)
        else:
            departure.process(self.broker, frame)

    def _departs_again(self, departure: Departure, frame: Frame) -> bool:
        return self.is_latent and frame.method in departure.methods and departure.applies(self.broker, frame)

    def may_depart(self, departure: Departure, frame: Frame) -> bool:
        """May the broker process the input as that departure says, for all that it has done so far?"""
        if departure.name in self.declined or not (self.departure is None or self.is_latent):
            return False
        return departure.applies(self.broker, frame)

    def decline(self, departures: Iterable[Departure]) -> None:
        """The input has been processed in another way."""
        self.declined |= {departure.name for departure in departures if departure.is_steady}

    @property
    def has_to_depart(self) -> bool:
        """The input that comes under the departure is not processed yet."""
        return any(frame is self.departing for frame in self.pending)

    @property
    def is_latent(self) -> bool:
        """The departure has taken place, and need not have shown by the time that the broker is at rest."""
        return self.has_departed and self.departure is not None and self.rests < self.departure.shows_within

    @property
    def has_departed(self) -> bool:
        """The departure has taken place."""
        return self.departure is not None and not self.has_to_depart and not self.broker.is_astray

    def time_passes(self, now: float) -> None:
        """It is `now`: what that brings about comes about, or may (`model.rules.expiry`, `message_expiry`)."""
        if self.broker.expiring or self.broker.ageing:
            expiries(self.broker, now, is_certain=self.is_settled)
            message_expiries(self.broker, now, is_certain=self.is_settled and self.broker.quiet, ahead=AHEAD)
            self.expect_teardowns()
        if self.broker.next_timeout <= now + AHEAD:
            timeouts(self.broker, now, is_certain=self.is_settled and self.broker.quiet, ahead=AHEAD)
            self.expect_teardowns()
        if self.pending:
            # what came about in another way, or not at all, is no longer expected
            self.pending = [f for f in self.pending if not is_happening(f) or can_come_about(self.broker, f)]

    def overlooking(self, now: float, departures: Mapping[str, tuple[Departure, ...]]) -> Iterator[Explanation]:
        """It is `now`: copies in which by a known departure something has not timed out that must have."""
        known = departures.get(TIME_OUT_IS_OVER, ())
        if not known or self.broker.next_timeout > now or not (self.is_settled and self.broker.quiet):
            return
        for frame in certain_timeouts(self.broker, now):
            for departure in known:
                if self.may_depart(departure, frame):
                    other = self.fork()
                    other.departure, other.departing = departure, frame
                    departure.process(other.broker, frame)
                    yield other

    def is_observed(self, now: float) -> None:
        """Something came `now`: messages may have expired before it that could not when the last input was sent."""
        self.broker.foreseen = now
        if self.broker.ageing:
            message_expiries(self.broker, now, is_certain=False)
            self.expect_teardowns()
        if self.broker.next_timeout <= now:
            timeouts(self.broker, now, is_certain=False)
            self.expect_teardowns()

    def is_tearing_down(self, frame: Frame) -> bool:
        """Does the frame close a connection whose channels have to end before (rabbit_reader:terminate_channels)?"""
        if frame.method != "connection.close" or not self.pending:
            return False
        ending = any(each.method in TEARDOWNS and each.connection == frame.connection for each in self.pending)
        return ending and self.broker.connections[frame.connection].state is ConnectionState.OPEN

    @property
    def is_settled(self) -> bool:
        """No input is under way; what the broker may do by itself is none."""
        return all(map(is_happening, self.pending))

    @property
    def is_at_rest(self) -> bool:
        """Nothing is under way, and the broker may send nothing: the next input is processed when it is sent."""
        return self.is_settled and (self.departure is None or self.is_latent) and self.broker.quiet

    @property
    def patience(self) -> float:
        """Seconds beyond the usual deadline that something may take of what is owed on connections."""
        connections = (self.broker.connections[name] for name, channel in self.broker.debtors if not channel)
        owed = (owed for connection in connections for owed in connection.owed if isinstance(owed, Expected))
        return max((each.patience for each in owed), default=0.0)

    @property
    def has_to_clean_up(self) -> bool:
        """The broker has something to do yet behind a client that is gone (CONN-021)."""
        return any(frame.method == CLEAN_UP for frame in self.pending)

    def expect_teardowns(self) -> None:
        """What the broker will do by itself, at a moment of its choice, is pending like an input."""
        for connection, channel in self.broker.teardowns:
            self.pending.append(Frame(connection, channel, CRASH if channel else TEARDOWN, {}, sent=True))
        self.broker.teardowns.clear()
        for happening in self.broker.happenings:
            if happening not in self.pending:
                self.pending.append(happening)
        self.broker.happenings.clear()


def points(
    explanation: Explanation, departures: Mapping[str, tuple[Departure, ...]], bound: int
) -> Iterator[Explanation]:
    """The points at which the broker may be: some first part of each channel's pending inputs is processed.

    Raises `TooManyExplanations`: what is left out might be the right one.
    """
    explanation.forget_if_astray()
    if not explanation.pending:
        # no copy: whatever becomes of it takes its place
        yield explanation
        return
    shown = {id(explanation): explanation.fork()}
    yield shown[id(explanation)]
    frontier = [explanation]
    count = 0
    while frontier:
        reached = merged(
            [
                further
                for point in frontier
                for index in _next_inputs(point.pending)
                if point.pending[index].method not in TIMED or can_come_about(point.broker, point.pending[index])
                for further in _behind(
                    shown.get(id(point)), point.pending[index], _process_one(point, departures, index)
                )
            ]
        )
        count += len(reached)
        if count > bound:
            raise TooManyExplanations
        frontier = [further for further in reached if further.pending]
        shown = {id(further): further.fork() for further in frontier}
        for further in reached:
            point_shown = shown.get(id(further), further)
            point_shown.behind = further.behind
            yield point_shown


def _behind(before: Explanation | None, frame: Frame, reached: Iterator[Explanation]) -> Iterator[Explanation]:
    """Note of what is reached by processing the frame, if it is one more message that expires, from where it is."""
    may_be_later = frame.method in TIMED and before is not None and not _may_be_refused_later(before.broker, frame)
    for further in reached:
        if may_be_later and before is not None and further.departure is before.departure:
            further.behind = before
        yield further


def _may_be_refused_later(broker: Broker, frame: Frame) -> bool:
    """Is what expires dead-lettered, and are there queues that may have room for it now and none later, or so?"""
    queue = broker.queues.get(frame.arguments.get("queue", "")) if frame.method == EXPIRE else None
    if queue is None or EXCHANGE not in queue.arguments:
        return False
    return any(is_limited(broker, other) for other in broker.queues.values() if other is not queue)


def _process_one(
    point: Explanation, departures: Mapping[str, tuple[Departure, ...]], index: int
) -> Iterator[Explanation]:
    """Copies of the point with that input processed: lawfully, and as each known departure that applies has it."""
    frame = point.pending[index]
    applying = [each for each in departures.get(frame.method, ()) if point.may_depart(each, frame)]
    further = point.fork()
    further.process_pending(index)
    further.decline(applying)
    yield further
    if frame is not point.departing:
        yield from point.alternatives(frame)
    for departure in applying:
        departed = point.fork()
        departed.departure, departed.departing = departure, frame
        departed.process_pending(index)
        yield departed


def _next_inputs(pending: list[Frame]) -> Iterator[int]:
    """Places of the inputs that may be processed next: the first of each channel.

    What ends channels may come ahead of what they were sent: that is not processed any more then.
    """
    seen: set[tuple[str, int, bool]] = set()
    for index, frame in enumerate(pending):
        is_end = frame.method in TEARDOWNS
        if frame.channel == 0 and any(
            connection == frame.connection and (by_end or not is_end) for connection, _, by_end in seen
        ):
            continue  # the connection's own methods come after all that was sent on its channels before
        lane = (frame.connection, frame.channel, is_end)
        if lane in seen or (frame.connection, 0, False) in seen:
            continue
        seen.add(lane)
        yield index


def merged(explanations: list[Explanation]) -> list[Explanation]:
    """Without those that are equal to an earlier one. What is not known alike of the chunks of streams is not known."""
    unique: dict[object, Explanation] = {}
    for explanation in explanations:
        first = unique.setdefault(_key(explanation), explanation)
        if first is not explanation:
            know_no_more_than(first.broker, explanation.broker)
    return list(unique.values())


def least_advanced(explanations: list[Explanation]) -> list[Explanation]:
    """Without those to which another one comes by processing its next input: they are among its points. So inputs of
    which no output tells whether they have been processed do not make explanations of their own.

    The explanations must be `merged`; those with most pending inputs come first.
    """
    if len(explanations) == 1:
        return explanations
    # where chunks begin may depend on what had been seen when the input was processed
    implied: set[object] = set()
    for explanation in explanations:
        if explanation.departure is None:
            for index in _next_inputs(explanation.pending):
                further = explanation.fork()
                further.process_pending(index)
                implied.add((_key(further), known_chunks(further.broker)))
    left = [each for each in explanations if (_key(each), known_chunks(each.broker)) not in implied]
    return sorted(left, key=lambda explanation: -len(explanation.pending))


def _key(explanation: Explanation) -> object:
    return (
        fingerprint(explanation.broker),
        tuple(map(_identity, explanation.pending)),
        explanation.departure is None,
        # two that lead to one state are as good as one, but not before they have led there
        explanation.departure.name if explanation.departure is not None and explanation.has_to_depart else "",
    )


def _identity(pending: Frame) -> object:
    """Inputs are the same ones in all explanations; of what the broker may do by itself each has noted its own."""
    return str(pending) if is_happening(pending) or pending.method in TEARDOWNS else id(pending)


def settled(
    explanations: list[Explanation],
    departures: Mapping[str, tuple[Departure, ...]],
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
        for point in points(explanation, departures, bound):
            if point.is_settled and not (finally_ and point.has_to_clean_up):
                if lazily and point.broker.quiet and point.is_foreseen:
                    continue
                found.append(point)
        if len(found) > bound:
            found = merged(found)
            if len(found) > bound:
                raise TooManyExplanations
    return merged(found)


def may_be_quiet(explanation: Explanation, departures: Mapping[str, tuple[Departure, ...]], bound: int) -> bool:
    """Is there a point at which all inputs are processed, lawfully, and nothing is owed?"""
    if explanation.is_settled and explanation.broker.quiet:
        return True
    return bool(explanation.pending) and any(
        point.is_settled and point.departure is None and point.broker.quiet
        for point in points(explanation, departures, bound)
    )


def _may_have_crashed(broker: Broker) -> bool:
    """Is something on its way to a queue that may crash over it, and that no barrier waits for (SAC-002)?"""
    return any(
        queue.unproven and queue.seat.is_stalled and queue.type is QueueType.CLASSIC for queue in broker.queues.values()
    )


def _is_lately_astray(explanation: Explanation) -> bool:
    """Not for long: it would explain whatever else is wrong."""
    return explanation.broker.is_astray and explanation.rests < MOST_RESTS_ASTRAY


def latent_beside(proven: list[Explanation], quiet: list[Explanation]) -> list[Explanation]:
    """Of those at rest, the ones of departures that may show later, and do not come to what is lawful anyway."""
    undecided = any(_may_have_crashed(explanation.broker) for explanation in proven)
    latent = [each for each in quiet if each.is_latent or (undecided and _is_lately_astray(each))]
    lawful = {fingerprint(explanation.broker) for explanation in proven} if latent else set()
    for explanation in latent:
        explanation.rests += 1
    return _in_turns(merged([each for each in latent if fingerprint(each.broker) not in lawful]))[:MOST_LATENT]


def _in_turns(latent: list[Explanation]) -> list[Explanation]:
    """By departures in turns, so that one that may have taken place in many ways leaves room for others."""
    seen: Counter[str] = Counter()
    places: list[tuple[int, int]] = []
    for place, explanation in enumerate(latent):
        name = explanation.departure.name if explanation.departure is not None else ""
        places.append((seen[name], place))
        seen[name] += 1
    return [latent[place] for _, place in sorted(places)]


def least_flawed(flawed: list[tuple[Explanation, Mismatches]]) -> list[tuple[Explanation, Mismatches]]:
    """Those by which the least is wrong with the frame; what is known to be told wrong weighs less."""

    def weight(candidate: Explanation, mismatches: Mismatches) -> tuple[bool, int, int]:
        unknown = sum(not mismatch.departure for mismatch in mismatches)
        return (candidate.departure is not None, unknown, len(mismatches))

    least = min(weight(*each) for each in flawed)
    return [each for each in flawed if weight(*each) == least]
