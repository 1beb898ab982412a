"""How much of a run says anything: what was judged to its end, what was not and why, and what is blocked by one cause.

These are the first lines of a report: who reads that little failed wants to know how much was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.conformance.verdicts.judgement import Cause, Extent, RunResult
from amqpspec.reports.text import plural

#: So many reasons for an early end are named.
MOST_REASONS = 3
#: So many rules that the search left alone; the page and the data have them all.
MOST_RULES = 6


def extent_lines(result: RunResult) -> list[str]:
    """Some lines, none where everything was judged to its end."""
    lines = [*_extent("scenarios", result.scenarios_extent), *_extent("sequences of the search", result.search_extent)]
    lines += [_blocked(cause) for cause in result.causes if not cause.is_habit]
    return lines + ([_left_alone(result)] if result.left_alone else [])


def _extent(what: str, extent: Extent) -> Iterator[str]:
    if extent.to_the_end != extent.sequences:
        reasons = [f"{_shown(reason)} ({times})" for reason, times in extent.ended_by[:MOST_REASONS]]
        others = sum(times for _, times in extent.ended_by[MOST_REASONS:])
        if others:
            reasons.append(f"something else ({others})")
        by_new = extent.by_something_new
        new = f"; {by_new} ended by a failure that was not reported before" if by_new else ""
        whole = f"{extent.to_the_end} of {extent.sequences} {what} were judged to their end"
        yield f"{whole}; what ended the others: {', '.join(reasons)}{new}"
    if extent.not_begun:
        yield f"{extent.not_begun} more {what} were not begun: the time was up"


def _blocked(cause: Cause) -> str:
    under = f"; {plural(len(cause.under), 'other failure')} of the same cause" if cause.under else ""
    blocked = plural(cause.blocked, "sequence")
    does = f"is refused ({cause.answer})" if cause.answer else "is never answered"
    return f"{cause.what} {does}, {_shown(cause.failure)}: {blocked} blocked by that{under}"


def _left_alone(result: RunResult) -> str:
    rules = sorted(rule for rule, _ in result.left_alone)
    more = len(rules) - MOST_RULES
    named = f"{', '.join(rules[:MOST_RULES])} and {more} more" if more > 1 else ", ".join(rules)
    return f"The search left alone what comes under {named}: the broker breaks that again and again"


def _shown(identity: str) -> str:
    return identity.replace("|", " / ")
