"""Reading from a trace which cells its commands have visited: the judge follows it, and its state is looked at."""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.conformance.coverage.cells import cells_of
from amqpspec.conformance.coverage.visits import Visits
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow, row_event
from amqpspec.conformance.verdicts.judge import SequenceJudge, judge_of


def read_visits(rows: Iterable[TraceRow], visits: Visits) -> None:
    """Add what the sequences of a trace have visited, whose rows may be mixed. Raises `TraceError`.

    The traffic of barriers is no command, and what was sent after the judging ended met a state that nobody knows.
    """
    judges: dict[str, SequenceJudge | None] = {}
    for row in rows:
        name = row["sequence"]
        if row["kind"] == "start":
            judge = judge_of(row)
            judges[name] = judge if isinstance(judge, SequenceJudge) else None
            if isinstance(judge, SequenceJudge):
                visits.sequences += 1
                visits.dialects.add(judge.acceptor.dialect)
            else:
                visits.left_out += 1
            continue
        if name not in judges:
            raise TraceError(f"a row of kind {row['kind']!r} of the sequence {name!r} comes before its start row")
        known = judges[name]
        if known is not None:
            _take(known, row, visits)


def _take(judge: SequenceJudge, row: TraceRow, visits: Visits) -> None:
    broker = judge.acceptor.broker
    try:
        is_sent = row["kind"] == "frame" and row["direction"] == "sent"
        if is_sent and broker.bookkeeping.counting and not judge.acceptor.finished:
            visits.note(cells_of(broker, row_event(row)), row["sequence"])
        judge.row(row)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = row.get("method") or row["kind"]
        why = f"{type(error).__name__}: {error}"
        raise TraceError(f"the sequence {row['sequence']!r} cannot be judged at its row {what}: {why}") from error
