"""Rules that a broker breaks again and again: the search leaves alone what comes under them, once that is known.

A failure after which nobody knows the broker's state ends its sequence. A habit that does so would end one sequence of
the search after the other, and hide the rest of the broker. So what scenarios and the search have shown is heeded by
what is made from then on. It goes by the order of the run: equal seeds against the same broker come to the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from amqpspec.conformance.verdicts.blame import IN_THE_TEXT
from amqpspec.conformance.verdicts.causes import Argument
from amqpspec.conformance.verdicts.judgement import SequenceJudgement

#: Sequences that a rule must have ended, of so many in which it made a difference: (least, one in). A scenario does
#: the same thing each time, so one is enough where the rule was kept in no more than two others.
_IN_SCENARIOS, _AT_ALL = (1, 3), (3, 10)

#: Rules that come with everything that an application does: to leave that alone is to search nothing.
_COMMON = frozenset(
    {"ACK-001", "CHAN-003", "CONN-001", "CONSUME-001", "GET-001", "PUBLISH-002", "PUBLISH-015", "QUEUE-001"}
)


class Learned(NamedTuple):
    """What is known of a target by now: arguments that it refuses, rules that it breaks again and again, and methods
    that end it.
    """

    refused: frozenset[Argument] = frozenset()
    avoided: frozenset[str] = frozenset()
    ends_it: frozenset[str] = frozenset()


class BrokenRules:
    """What was learned of a target so far. Show it each judgement of a run, in the order of the run."""

    def __init__(self) -> None:
        #: by scenarios (True) and search: sequences that a failure of the rule ended, and in which the rule was seen
        self._ended: Mapping[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self._seen: Mapping[bool, Counter[str]] = {True: Counter(), False: Counter()}
        #: by rule the identity that ended a sequence for the first time
        self._first: dict[str, str] = {}

    def note(self, judgement: SequenceJudgement, of_scenario: bool) -> None:
        self._seen[of_scenario].update(id for id, times in judgement.exercised.items() if times)
        ender = next((each for each in judgement.failures if each.identity == judgement.ended_by), None)
        if ender is None or ender.defect or ender.requirement in _COMMON:
            return
        self._ended[of_scenario][ender.requirement] += 1
        self._first.setdefault(ender.requirement, ender.identity)
        if not judgement.exercised.get(ender.requirement):
            self._seen[of_scenario][ender.requirement] += 1

    @property
    def avoided(self) -> Mapping[str, str]:
        """By rule that the search leaves alone the identity of the failure that is the reason."""
        found = {rule: first for rule, first in sorted(self._first.items()) if self._is_broken(rule)}
        found |= {other: found[rule] for other, rule in IN_THE_TEXT.items() if rule in found and other not in found}
        return MappingProxyType(found)

    def _is_broken(self, rule: str) -> bool:
        least, one_in = _IN_SCENARIOS
        if (ended := self._ended[True][rule]) >= least and ended * one_in >= self._seen[True][rule]:
            return True
        least, one_in = _AT_ALL
        ended = self._ended[True][rule] + self._ended[False][rule]
        return ended >= least and ended * one_in >= self._seen[True][rule] + self._seen[False][rule]
