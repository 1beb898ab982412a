"""How an output fits: what the explanations say of it at all points at which the broker may have sent it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.known_outputs import observe_as_known
from amqpspec.model.judging.points import TooManyExplanations, points
from amqpspec.model.outputs.mismatch import Mismatches
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.model.rules.extensions.message_expiry import fronts_were_seen

#: Most points that one frame may fit, for each explanation that may be kept: those that are reached from each other are
#: one explanation.
MOST_POINTS = 16

#: An explanation, and what is wrong with the frame by it.
Flawed = tuple[Explanation, Mismatches]


@dataclass(slots=True)
class Fit:
    #: by these the frame is right; all of them are of known defects where no lawful one is
    survivors: list[Explanation] = field(default_factory=list)
    #: lawful ones by which something is wrong with it that leaves no doubt about the state
    flawed: list[Flawed] = field(default_factory=list)
    #: those to say by what is wrong, where nothing fits, the likeliest first
    misfits: list[Flawed] = field(default_factory=list)
    #: of known defects, by which it is wrong
    contradicted: list[Explanation] = field(default_factory=list)

    @property
    def is_lawful(self) -> bool:
        """Is the frame right without any known defect?"""
        return any(explanation.defect is None for explanation in self.survivors)

    @property
    def is_known(self) -> bool:
        """Are there flaws that known defects explain altogether?"""
        return any(all(each.defect for each in mismatches) for _, mismatches in self.flawed)


def fit(explanations: Iterable[Explanation], event: TraceEvent, defects: DefectsFollowed, bound: int) -> Fit:
    """What each explanation says of the frame. Raises `TooManyExplanations`."""
    found = Fit()
    for explanation in explanations:
        for candidate in points(explanation, defects, bound, event):
            if candidate.is_at_no_time(event):
                continue
            mismatches = observe_as_known(candidate.broker, event, defects)
            if mismatches and candidate.defect is not None:
                found.contradicted.append(candidate)
            if not mismatches:
                fronts_were_seen(candidate.broker, event.time)
                if candidate.keep():
                    found.survivors.append(candidate)
            elif candidate.defect is None and not any(each.fatal for each in mismatches):
                # a known defect explains all of a frame, or it does not explain it
                if len(found.flawed) < bound:
                    found.flawed.append((candidate, mismatches))
            elif not any(_doubt(candidate)):
                found.misfits.insert(0, (candidate, mismatches))
            elif len(found.misfits) < bound:
                found.misfits.append((candidate, mismatches))
            if len(found.survivors) > MOST_POINTS * bound:
                raise TooManyExplanations
    found.misfits.sort(key=lambda misfit: _doubt(misfit[0]))
    if found.flawed and found.is_lawful:
        ways = {each.is_unusual for each in found.survivors}
        others = [(each, mismatches) for each, mismatches in found.flawed if each.is_unusual not in ways]
        found.survivors += _right_but_for_numbers(others)
    return found


def _doubt(explanation: Explanation) -> tuple[bool, bool, bool]:
    """How little it is the one to blame by: what is left of what was sent may explain the frame as well."""
    return explanation.defect is not None, explanation.is_unusual, bool(explanation.pending)


def _right_but_for_numbers(flawed: Iterable[Flawed]) -> list[Explanation]:
    """Those by which the broker does what brokers do, and only tells something wrongly that is known to be told so: as
    likely as those by which it does what is right and rare. What a broker always tells so, it tells in either way.
    """
    return [
        candidate
        for candidate, mismatches in flawed
        if all(each.is_habit or (each.defect and not candidate.is_unusual) for each in mismatches) and candidate.keep()
    ]


def least_flawed(flawed: list[Flawed]) -> list[Flawed]:
    """Those by which the least is wrong with the frame; what is known or used to be told wrong weighs less."""

    def weight(candidate: Explanation, mismatches: Mismatches) -> tuple[bool, int, int]:
        unknown = sum(not mismatch.defect and not mismatch.is_habit for mismatch in mismatches)
        return (candidate.defect is not None, unknown, len(mismatches))

    least = min(weight(*each) for each in flawed)
    return [each for each in flawed if weight(*each) == least]
