"""Which change explains what the second target does otherwise: its trace is judged by the first one's dialect with that
change only. Where it takes several, the one without which the second one's dialect does not allow the frame either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.upgrade.changes import Change, changes_between
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.verdict import Failure


class Causes:
    """The changes between two dialects, and which of them explain what. Judging is by the same rules as ever."""

    def __init__(self, one: Dialect, other: Dialect) -> None:
        self._one, self._other = one, other
        self._changes = changes_between(one, other)
        #: the changes that have explained failures of an identity: it is mostly the same again
        self._found: dict[str, Change] = {}

    def of(self, rows: Sequence[TraceRow], failure: Failure) -> Change | None:
        """What explains the failure of that sequence by the first dialect; None: no change between the two does."""
        listed = sorted(self._changes, key=lambda change: self._rank(change, failure))
        ended_by = _judged(rows, self._one, self._one).ended_by
        for change in listed:
            judged = _judged(rows, self._one, change.made_in(self._one))
            # where another thing ends the judging, it may not have come as far as that
            if not _shows(judged, failure) and judged.ended_by in (None, ended_by):
                self._found[failure.identity] = change
                return change
        for change in listed:
            if _shows(_judged(rows, self._other, change.unmade_in(self._other)), failure):
                return change
        return None

    def _rank(self, change: Change, failure: Failure) -> tuple[bool, bool]:
        return change != self._found.get(failure.identity), failure.requirement not in change.difference.requirements


def _shows(judgement: SequenceJudgement, failure: Failure) -> bool:
    """Is it there, or something else that is wrong with the same frame?"""
    return any(
        each.identity == failure.identity
        or (each.observed == failure.observed != "nothing" and each.command == failure.command)
        for each in judgement.failures
    )


def _judged(rows: Sequence[TraceRow], named: Dialect, dialect: Dialect) -> SequenceJudgement:
    """The rows of one sequence by a dialect that has no name of its own. `named`: the one whose name it has."""

    def start(row: TraceRow) -> TraceRow:
        return TraceRow(**{**row, "dialect": named.name}) if row["kind"] == "start" else row

    return next(judge_all(map(start, rows), partial(_acceptor, dialect)))


def _acceptor(dialect: Dialect, named: Dialect, **words: str) -> Acceptor:
    make: Callable[..., Acceptor] = acceptor_for
    return make(dialect, **words)
