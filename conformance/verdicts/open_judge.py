"""Judging a sequence in the open world (`model.open_world`): what an application did, recorded by a proxy or a capture.

A start row whose `mode` is `open` asks for it; any other recording can be judged so as well.
"""

from __future__ import annotations

from collections.abc import Collection

from amqpspec.conformance.language.names import plain_failure
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow, row_event
from amqpspec.conformance.verdicts.ill_formed import raise_if_ill_formed
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, undecided
from amqpspec.model.open_world.judge import OpenJudge
from amqpspec.model.promises.dialects import UnknownDialect, dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import judged_version
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.drivers.application import is_of_application
from amqpspec.targets.suite_error import line_of


class OpenSequenceJudge:
    """The judge of the sequence that `start` begins. Raises `TraceError` for a dialect that does not exist."""

    def __init__(self, start: TraceRow) -> None:
        try:
            self._judge = OpenJudge(dialect_named(start["dialect"]))
        except UnknownDialect as error:
            raise TraceError(f"the sequence {start['sequence']!r}: {error}") from None
        self._start = start
        self._frames = 0
        #: an error of this suite, which ended the judging
        self._error: str | None = None

    def row(self, row: TraceRow) -> bool:
        """Take one row of the sequence after its start row; is it complete with that?"""
        if row["kind"] == "frame":
            event = row_event(row)
            try:
                self._events((event,))
            except Exception as error:  # noqa: BLE001 - whatever it is, it costs this sequence only
                raise_if_ill_formed(row["sequence"], event, error)
                self._error = line_of(error)
        return row["kind"] == "end"

    def events(self, events: Collection[TraceEvent]) -> None:
        """Take the frames of some rows."""
        try:
            self._events(events)
        except Exception as error:  # noqa: BLE001 - as above
            self._error = line_of(error)

    def _events(self, events: Collection[TraceEvent]) -> None:
        self._frames += len(events)
        if self._error is not None:
            return
        judged = self._judge.event
        for event in events:
            if not is_of_application(event.connection):
                judged(event)

    def judgement(self, complete: bool = True) -> SequenceJudgement:
        """What was found; a recording may end anywhere, so `complete` makes no difference."""
        try:
            return self._judgement()
        except Exception as error:  # noqa: BLE001 - as above
            return undecided(self._start, line_of(error), self._frames)

    def _judgement(self) -> SequenceJudgement:
        if self._error is None:
            self._judge.end()
        findings, start = self._judge.findings, self._start
        failures = tuple(map(plain_failure, findings.failures))
        return SequenceJudgement(
            sequence=start["sequence"],
            target=start["target"],
            dialect=start["dialect"],
            requirement=None,
            verdict=Verdict.FAIL if failures else Verdict.PASS if self._error is None else Verdict.INCONCLUSIVE,
            failures=failures,
            exercised=dict(sorted(findings.exercised.items())),
            reason=self._error,
            frames=self._frames,
            repeats=start.get("repeats"),
            product=start.get("product") or "",
            version=judged_version(start.get("product") or "", start.get("version") or "", start["dialect"]),
            ended_by=self._error,
            undecided=dict(sorted(findings.undecided.items())),
        )
