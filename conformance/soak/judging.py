"""Judges the trace of a soak: each connection in the open world, and all messages by the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from amqpspec.conformance.soak.findings import Finding, What
from amqpspec.conformance.soak.ledger import PATIENCE, Ledger
from amqpspec.conformance.soak.tally import Tally
from amqpspec.conformance.soak.windows import Window
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.every_connection import is_judged_elsewhere
from amqpspec.conformance.verdicts.open_judge import OpenSequenceJudge
from amqpspec.model.promises.verdict import Failure, Shape

#: connection-forced: by which a broker ends a connection that has done nothing wrong; the requirement that it stays
_FORCED, _PAUSED = 320, "DURABLE-014"


@dataclass(slots=True)
class ConnectionFailure:
    """What is wrong on single connections: on so many, the first of which is named."""

    failure: Failure
    sequence: str
    line: int
    connections: int = 1


@dataclass(slots=True)
class SoakJudgement:
    """What the trace of a soak says. `undecided`: queue or requirement -> why."""

    findings: list[Finding] = field(default_factory=list)
    wrong: Counter[What] = field(default_factory=Counter)
    allowed: Counter[tuple[What, str]] = field(default_factory=Counter)
    #: what is wrong by second of the trace
    wrong_seconds: Counter[int] = field(default_factory=Counter)
    failures: list[ConnectionFailure] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    windows: list[Window] = field(default_factory=list)
    exercised: Counter[str] = field(default_factory=Counter)
    undecided: dict[str, str] = field(default_factory=dict)
    #: of queues: those that nobody found empty at the end
    unknown_queues: dict[str, str] = field(default_factory=dict)
    queue_types: dict[str, str] = field(default_factory=dict)
    limited_queues: frozenset[str] = frozenset()
    #: when queues were declared
    declared: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    frames: int = 0
    connections: int = 0
    seconds: float = 0.0

    def gravest_first(self) -> list[tuple[What, int]]:
        """What is wrong, and how often, in the order of `What`."""
        return [(what, self.wrong[what]) for what in What if self.wrong[what]]


class Judging:
    """Fed the rows of a trace in their order."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.ledger = Ledger(patience)
        self._found = SoakJudgement()
        self._open: dict[str, tuple[TraceRow, OpenSequenceJudge]] = {}
        self._failures: dict[str, ConnectionFailure] = {}
        #: of what is wrong, how much there was by now
        self.frames = 0

    def row(self, row: TraceRow, line: int) -> None:
        """Take a row; `line` is its number in the trace. Raises `TraceError`."""
        sequence = row["sequence"]
        if row["kind"] == "start":
            self._open[sequence] = row, OpenSequenceJudge(row)
            return
        known = self._open.get(sequence)
        if known is None:
            return
        self.frames += row["kind"] == "frame"
        self.ledger.row(row, line)
        if row["kind"] == "frame" and row["method"] == "connection.close" and row["direction"] == "received":
            self._closed(row, line)
        if known[1].row(row):
            del self._open[sequence]
            self._over(*known, line)

    def _over(self, start: TraceRow, judge: OpenSequenceJudge, line: int) -> None:
        judged = judge.judgement()
        found = self._found
        found.connections += 1
        found.exercised.update(judged.exercised)
        for requirement, reason in judged.undecided.items():
            found.undecided.setdefault(requirement, reason)
        if judged.reason:
            found.errors.append(f"{judged.sequence}: {judged.reason}")
        for failure in judged.failures:
            if is_judged_elsewhere(start, failure):
                continue
            self._failed(failure, judged.sequence, line)

    def _failed(self, failure: Failure, sequence: str, line: int) -> None:
        known = self._failures.get(failure.identity)
        if known is None:
            self._failures[failure.identity] = ConnectionFailure(failure, sequence, line)
        else:
            known.connections += 1

    def _closed(self, row: TraceRow, line: int) -> None:
        """A broker that is neither killed nor stopped has no reason to end a connection as if it were. In a cluster a
        node may stop by itself (`cluster_partition_handling`).
        """
        windows, text = self.ledger.windows, row["arguments"].get("reply_text", "")
        if row["arguments"].get("reply_code") != _FORCED or windows.is_down(row["time"]) or windows.are_of_nodes:
            return
        said = f"connection.close reply-code={_FORCED} reply-text={text}"
        self._failed(Failure(_PAUSED, Shape.UNEXPECTED, "connection.close", "", said, (), ()), row["sequence"], line)

    @property
    def wrong(self) -> int:
        """How much is wrong by now."""
        return sum(self.ledger.findings.wrong.values()) + len(self._failures)

    def end(self, *, is_cut_short: bool = False) -> SoakJudgement:
        """Nothing more comes; or nothing more of it is judged."""
        for start, judge in self._open.values():
            self._over(start, judge, 0)
        self._open.clear()
        ledger, found = self.ledger, self._found
        if is_cut_short:
            found.errors.append(f"what came after {ledger.time:.0f} s was not judged")
        ledger.end()
        found.findings, found.wrong, found.allowed = (
            ledger.findings.told, ledger.findings.wrong, ledger.findings.allowed,
        )  # fmt: skip
        found.wrong_seconds = ledger.findings.seconds
        found.failures = list(self._failures.values())
        found.tally, found.windows = ledger.tally, ledger.windows.all
        found.unknown_queues, found.queue_types = ledger.undecided(), ledger.topology.types
        found.limited_queues, found.declared = frozenset(ledger.topology.limited), ledger.topology.declared
        found.frames, found.seconds = self.frames, ledger.time
        return found


def judged(rows: Any, patience: float = PATIENCE) -> SoakJudgement:
    """The judgement of a whole trace."""
    judging = Judging(patience)
    for line, row in enumerate(rows, 1):
        judging.row(row, line)
    return judging.end()
