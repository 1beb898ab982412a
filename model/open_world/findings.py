"""What judging in the open world finds: failures, what was put to the test, and what could not be decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import OCTETS_BEHIND, TraceEvent


class Findings:
    """Of any number of connections. `failures` holds one for each identity: the first."""

    def __init__(self) -> None:
        self.exercised: Counter[str] = Counter()
        #: requirement: why it could not be decided
        self.undecided: dict[str, str] = {}
        #: the last frame that a client sent, for failures
        self.last_sent: TraceEvent | None = None
        self._failures: dict[str, Failure] = {}

    @property
    def failures(self) -> list[Failure]:
        return list(self._failures.values())

    def kept(self, requirement: str) -> None:
        """The rule made a difference, and was kept."""
        self.exercised[requirement] += 1

    def undecidable(self, requirement: str, reason: str) -> None:
        """The rule was concerned, and this recording does not tell whether it was kept."""
        self.undecided.setdefault(requirement, reason)

    def unexpected(self, requirement: str, event: TraceEvent, *allowed: str, detail: str = "") -> None:
        """The broker sent what it may not."""
        self._fail(requirement, Shape.UNEXPECTED, detail or event.name, str(event), allowed)

    def wrong(self, requirement: str, event: TraceEvent, argument: str, *allowed: str) -> None:
        """The frame may come, but not with that argument, unless its octets are wrong themselves."""
        if OCTETS_BEHIND not in event.arguments:
            self._fail(requirement, Shape.WRONG_ARGUMENT, f"{event.name} {argument}", str(event), allowed)

    def missing(self, requirement: str, event: TraceEvent, missing: str) -> None:
        """Something had to come before this frame."""
        self._fail(requirement, Shape.MISSING, missing, f"{event} before it", (missing,))

    def _fail(self, requirement: str, shape: Shape, detail: str, observed: str, allowed: Iterable[str]) -> None:
        last = "" if self.last_sent is None else str(self.last_sent)
        failure = Failure(requirement, shape, detail, last, observed, tuple(allowed), ())
        self.exercised[requirement] += 1
        self._failures.setdefault(failure.identity, failure)
