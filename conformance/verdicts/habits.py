"""One cause, once: what a broker does wrong in the same way wherever it comes up. It ends in one way what it has to end
in another, takes any delivery tag, or tells wrong numbers of messages.

Each requirement that is about such a thing shows it as a failure of its own. They stay what they are, for the gate and
in all data; a reader is shown the one habit behind them. A TCP stream that ends in place of an answer may be a crash of
its own: it comes under the habit of ending the stream, where a broker has that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from amqpspec.conformance.verdicts.judgement import ENDS, IS_TAKEN, IS_WRONG, STREAM_ENDS, Cause, FoundFailure
from amqpspec.model.promises.verdict import Failure, Shape

#: Requirements that show it before it is taken for a habit.
ENOUGH = 3

_ANSWER = "|".join(map(re.escape, ENDS))
_IN_PLACE_OF = re.compile(rf"(?P<answer>{_ANSWER}) in place of (?P<owed>(?:channel|connection)\.close)$")
_STREAM_ENDS = re.compile(rf"{re.escape(STREAM_ENDS)}(?: in place of (?P<owed>.+))?$")
_UNKNOWN_TAG = re.compile(r"channel\.close for basic\.(?:ack|nack|reject)$")
#: Not of a purge, where a wrong number is a loss.
_COUNT = re.compile(r"(?:queue\.(?:declare|delete)|basic\.get)-ok message-count( .+)?$")
_TAGS, _COUNTS = "delivery tags that are not outstanding", "numbers of messages"


def habits(failures: Iterable[FoundFailure]) -> tuple[Cause, ...]:
    """The causes, each reported under the gravest of its failures. What is as RabbitMQ does is left alone."""
    by_habit: defaultdict[tuple[str, str], list[FoundFailure]] = defaultdict(list)
    crashes: list[FoundFailure] = []
    ordered = sorted(failures, key=lambda found: found.order)
    for found in ordered:
        failure = found.failure
        if failure.defect or failure.like:
            continue
        habit = _habit(failure)
        if habit is not None:
            by_habit[habit].append(found)
        elif failure.shape is Shape.UNEXPECTED and _STREAM_ENDS.match(failure.detail):
            crashes.append(found)
    proven = {habit: shown for habit, shown in sorted(by_habit.items()) if _requirements(shown) >= ENOUGH}
    return tuple(_causes(proven, crashes))


def _causes(proven: dict[tuple[str, str], list[FoundFailure]], crashes: list[FoundFailure]) -> Iterator[Cause]:
    for (what, answer), shown in proven.items():
        if answer == STREAM_ENDS:
            shown = sorted([*shown, *crashes], key=lambda found: found.order)
            owed = {_owed(each.failure) for each in shown}
            *names, last = (name for name in (*ENDS[:2], "an answer") if name in owed)
            what = f"{', '.join(names)} or {last}" if names else last
        identities = [each.failure.identity for each in shown]
        yield Cause(failure=identities[0], what=what, answer=answer, blocked=0, under=tuple(identities[1:]))


def _habit(failure: Failure) -> tuple[str, str] | None:
    """What is owed, taken or told, and the answer; None: it is no habit."""
    if failure.shape is Shape.UNEXPECTED and (found := _IN_PLACE_OF.match(failure.detail)):
        return "" if found["answer"] == STREAM_ENDS else found["owed"], found["answer"]
    if failure.shape is Shape.MISSING and _UNKNOWN_TAG.match(failure.detail):
        return _TAGS, IS_TAKEN
    if failure.shape is Shape.WRONG_ARGUMENT and _COUNT.match(failure.detail):
        return _COUNTS, IS_WRONG
    return None


def _owed(failure: Failure) -> str:
    """What is owed where the stream ends."""
    found = _STREAM_ENDS.match(failure.detail)
    return found["owed"] if found is not None and found["owed"] in ENDS else "an answer"


def _requirements(shown: Iterable[FoundFailure]) -> int:
    return len({each.failure.requirement for each in shown})
