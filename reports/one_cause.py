"""What failures have in common, in words; and those that a reader is shown together, as they come from one cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from amqpspec.conformance.verdicts.judgement import (
    IS_TAKEN,
    IS_WRONG,
    STREAM_ENDS,
    Cause,
    FoundFailure,
    RunResult,
    fails_a_run,
)
from amqpspec.reports.text import plural


@dataclass(frozen=True, slots=True)
class Together:
    """New failures of one cause. `first` is the gravest of them; the `others` are shown under it."""

    cause: Cause
    first: FoundFailure
    others: tuple[FoundFailure, ...]

    @property
    def in_words(self) -> str:
        """A sentence without its full stop, with the requirements of the others."""
        ids = dict.fromkeys(each.failure.requirement for each in self.others)
        return f"{in_words(self.cause)}, in {plural(len(self.others), 'other failure')} as well: {', '.join(ids)}"


def in_words(cause: Cause) -> str:
    if cause.answer == STREAM_ENDS:
        return f"the broker ends the TCP connection where it has to send {cause.what}"
    if cause.answer == IS_TAKEN:
        return f"the broker takes {cause.what}"
    if cause.answer == IS_WRONG:
        return f"the broker tells wrong {cause.what}"
    if cause.is_habit:
        return f"the broker sends {cause.answer} where it has to send {cause.what}"
    if cause.answer:
        return f"the broker answers {cause.what} by {cause.answer}"
    return f"the broker never answers {cause.what}"


def shown_together(result: RunResult) -> Iterator[Together]:
    """The failures that have a cause in common, each once. What is known, or fails no run, stays where such failures
    are shown.
    """
    new = {
        each.failure.identity: each for each in result.failures if fails_a_run(each) and not result.is_as_known(each)
    }
    for cause in result.causes:
        of_it = [each for identity in (cause.failure, *cause.under) if (each := new.get(identity)) is not None]
        if len(of_it) > 1:
            first, *others = sorted(of_it, key=lambda found: found.order)
            for each in of_it:
                del new[each.failure.identity]
            yield Together(cause, first, tuple(others))
