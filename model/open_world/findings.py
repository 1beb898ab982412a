"""What judging in the open world finds: failures, what was put to the test, and what could not be decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import OCTETS_BEHIND, TraceEvent

#: Failures of an identity that are kept, for the case that the first ones are withdrawn.
_MOST_KEPT = 20


class Findings:
    """Of any number of connections. `failures` holds one for each identity: the first that stands."""

    def __init__(self) -> None:
        self.exercised: Counter[str] = Counter()
        #: requirement: why it could not be decided
        self.undecided: dict[str, str] = {}
        #: the last frame that a client sent, for failures
        self.last_sent: TraceEvent | None = None
        self._failures: dict[str, list[Failure]] = {}

    @property
    def failures(self) -> list[Failure]:
        return [found[0] for found in self._failures.values()]

    def kept(self, requirement: str) -> None:
        """The rule made a difference, and was kept."""
        self.exercised[requirement] += 1

    def undecidable(self, requirement: str, reason: str) -> None:
        """The rule was concerned, and this recording does not tell whether it was kept."""
        self.undecided.setdefault(requirement, reason)

    def unexpected(self, requirement: str, event: TraceEvent, *allowed: str, detail: str = "") -> None:
        """The broker sent what it may not."""
        self._fail(requirement, Shape.UNEXPECTED, detail or event.name, str(event), allowed)

    def wrong(self, requirement: str, event: TraceEvent, argument: str, *allowed: str) -> Failure | None:
        """The frame may come, but not with that argument, unless its octets are wrong themselves. Gives the failure."""
        if OCTETS_BEHIND in event.arguments:
            return None
        return self._fail(requirement, Shape.WRONG_ARGUMENT, f"{event.name} {argument}", str(event), allowed)

    def withdraw(self, failure: Failure, reason: str) -> None:
        """What came later shows that the recording does not tell whether the rule was kept."""
        kept = self._failures.get(failure.identity, [])
        left = [each for each in kept if each is not failure]
        if len(left) < len(kept):
            self.exercised[failure.requirement] -= 1
            self.undecidable(failure.requirement, reason)
        if left:
            self._failures[failure.identity] = left
        else:
            self._failures.pop(failure.identity, None)

    def missing(self, requirement: str, event: TraceEvent, missing: str) -> None:
        """Something had to come before this frame."""
        self._fail(requirement, Shape.MISSING, missing, f"{event} before it", (missing,))

    def _fail(self, requirement: str, shape: Shape, detail: str, observed: str, allowed: Iterable[str]) -> Failure:
        last = "" if self.last_sent is None else str(self.last_sent)
        failure = Failure(requirement, shape, detail, last, observed, tuple(allowed), ())
        self.exercised[requirement] += 1
        kept = self._failures.setdefault(failure.identity, [])
        if len(kept) < _MOST_KEPT:
            kept.append(failure)
        return failure
