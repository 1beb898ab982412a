"""One cause, once: a broker that ends in one way what it has to end in another. It ends the TCP stream without a word
where it owes channel.close or connection.close, or it closes the channel where it has to close the connection.

Each requirement that owes an exception shows that as a failure of its own. They stay what they are, for the gate and in
all data; a reader is shown the one habit behind them. An end in place of a reply that is owed otherwise may be a crash
of its own, and is left alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from amqpspec.conformance.verdicts.judgement import ENDS, Cause, FoundFailure
from amqpspec.model.promises.verdict import Shape

#: Requirements that show it before it is taken for a habit.
ENOUGH = 3

_ANSWER = "|".join(map(re.escape, ENDS))
_IN_PLACE_OF = re.compile(rf"(?P<answer>{_ANSWER}) in place of (?P<owed>(?:channel|connection)\.close)$")


def wrong_ends(failures: Iterable[FoundFailure]) -> tuple[Cause, ...]:
    """The causes, each reported under the gravest of its failures. What is as RabbitMQ does is
    left alone.
    """
    by_habit: defaultdict[tuple[str, str], list[FoundFailure]] = defaultdict(list)
    for found in sorted(failures, key=lambda found: found.order):
        failure = found.failure
        in_place = _IN_PLACE_OF.match(failure.detail)
        if in_place is not None and failure.shape is Shape.UNEXPECTED and not (failure.defect or failure.like):
            by_habit[in_place["owed"], in_place["answer"]].append(found)
    return tuple(
        Cause(
            failure=shown[0].failure.identity,
            what=owed,
            answer=answer,
            blocked=0,
            under=tuple(each.failure.identity for each in shown[1:]),
        )
        for (owed, answer), shown in sorted(by_habit.items())
        if len({each.failure.requirement for each in shown}) >= ENOUGH
    )
