"""The compliance table: requirement × target × verdict, with how many sequences said so.

It is made of judgements, one after the other, in memory that depends on the number of distinct rows only.
Parts made in several places (the partitions of a Spark job) are merged by the same code that adds up in one
process, so both ways give the same table.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace, sequences
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.conformance.verdicts.judgement import (
    SequenceJudgement,
    failure_from_json,
    failure_to_json,
    requirement_verdicts,
)
from amqpspec.conformance.verdicts.known_behaviour import defects_tested
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.reports.accuracy import Accuracy, added_up
from amqpspec.reports.text import visible

#: What `Part.key` is.
Key = tuple[str, str, str, str, str, str]

SEEN, REFUTED = "seen", "refuted"
REPEATED = "repeated"
EXPECTED, UNEXPECTED = "expected", "unexpected"

#: Judges the rows of one sequence. Must be importable by name to be used by Spark.
Judge = Callable[[Iterable[TraceRow]], SequenceJudgement]


@dataclass(frozen=True, slots=True, order=True)
class TableRow:
    """So many sequences ended in `verdict` for `requirement` on `target`; "" for searches that did not end.

    `as_known` is their verdict against the broker as it is known: "pass" where every failure is a known defect.
    `exercised` is how often the rule made a difference in these sequences; `reason` is an example for
    verdicts that need one (inconclusive, not applicable), else "".
    """

    requirement: str
    target: str
    dialect: str
    verdict: str
    as_known: str
    sequences: int
    exercised: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TableFailure:
    """A distinct failure on a target: the number of sequences that showed it, and the name of one of them."""

    target: str
    dialect: str
    failure: Failure
    sequences: int
    sequence: str


@dataclass(frozen=True, slots=True, order=True)
class TableDefect:
    """A known defect on a target: the sequences that showed it, and those that would have and did not."""

    target: str
    dialect: str
    defect: str
    seen: int
    refuted: int


@dataclass(frozen=True, slots=True)
class TableAccuracy:
    """How late a target was where a time was up, to the millisecond."""

    target: str
    dialect: str
    accuracy: Accuracy


@dataclass(frozen=True, slots=True)
class ComplianceTable:
    """What any number of traces say. Rows, failures and known defects are in the order of their texts."""

    rows: tuple[TableRow, ...]
    failures: tuple[TableFailure, ...]
    sequences: int
    frames: int
    #: sequences that repeated or shortened others, which are judged and not counted; `frames` has theirs as well
    repeats: int = 0
    #: those only that some sequence put to the test
    defects: tuple[TableDefect, ...] = ()
    #: those targets only on which a time was up
    accuracies: tuple[TableAccuracy, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if a requirement failed, else 4 if a sequence was inconclusive, else 0. Against the promise: that a
        known defect is known makes nothing green.
        """
        verdicts = {row.verdict for row in self.rows}
        return 1 if Verdict.FAIL in verdicts else 4 if Verdict.INCONCLUSIVE in verdicts else 0


@dataclass(slots=True)
class Part:
    """What is known of one row or one failure of the table; parts of the same `key` can be merged.

    `kind` is "verdict", "failure", "known defect", "measurement" or "total"; `name` is the verdict, the failure's
    identity, the known defect's name, the milliseconds by which something was late, or for "total" whether the
    sequences only repeated others; `as_known` is the second verdict, whether the known defect was "seen" or "refuted",
    or the lateness "expected" or "unexpected". `sequences` is a number of measurements for these. `example` and `text`
    go
    together: the sequence whose name is the first, and its failure (JSON) or reason.
    """

    kind: str
    requirement: str
    target: str
    dialect: str
    name: str
    sequences: int
    exercised: int
    frames: int
    example: str
    text: str
    as_known: str = ""

    @property
    def key(self) -> Key:
        return self.kind, self.requirement, self.target, self.dialect, self.name, self.as_known


class TableBuilder:
    """Adds up judgements and parts."""

    def __init__(self) -> None:
        self._parts: dict[Key, Part] = {}

    def add(self, judgement: SequenceJudgement) -> None:
        """Takes one sequence into account."""
        target, dialect, sequence = judgement.target, judgement.dialect, judgement.sequence
        of = REPEATED if judgement.repeats is not None else ""
        self.merge(Part("total", "", target, dialect, of, 1, 0, judgement.frames, sequence, ""))
        if of:
            return
        for id, (verdict, as_known, exercised) in requirement_verdicts(judgement).items():
            explained = verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)
            text = (judgement.reason or "no reason was recorded") if explained else ""
            self.merge(
                Part("verdict", id, target, dialect, str(verdict), 1, exercised, 0, sequence, text, str(as_known))
            )
        for name, seen in defects_tested(judgement.failures, judgement.refuted, dialect).items():
            outcome = SEEN if seen else REFUTED
            self.merge(Part("known_defect", "", target, dialect, name, 1, 0, 0, sequence, "", outcome))
        for measured in judgement.measurements:
            late = str(round(measured.most * 1000))
            outcome = EXPECTED if measured.is_expected else UNEXPECTED
            self.merge(Part("measurement", "", target, dialect, late, 1, 0, 0, sequence, "", outcome))
        distinct = {failure.identity: failure for failure in reversed(judgement.failures)}
        for identity, failure in distinct.items():
            text = json.dumps(failure_to_json(failure))
            self.merge(Part("failure", failure.requirement, target, dialect, identity, 1, 0, 0, sequence, text))

    def merge(self, part: Part) -> None:
        """Takes a part into account that was made here or elsewhere."""
        known = self._parts.get(part.key)
        if known is None:
            self._parts[part.key] = part
            return
        known.sequences += part.sequences
        known.exercised += part.exercised
        known.frames += part.frames
        # The smallest example, not the first: so the table does not depend on the order of judging.
        if (part.example, part.text) < (known.example, known.text):
            known.example, known.text = part.example, part.text

    def parts(self) -> list[Part]:
        """All parts so far, for another builder to merge."""
        return list(self._parts.values())

    def table(self) -> ComplianceTable:
        """The table of all that was added."""
        by_kind: defaultdict[str, list[Part]] = defaultdict(list)
        for part in sorted(self._parts.values(), key=lambda part: part.key):
            by_kind[part.kind].append(part)
        rows = tuple(
            TableRow(
                part.requirement,
                part.target,
                part.dialect,
                part.name,
                part.as_known,
                part.sequences,
                part.exercised,
                part.text,
            )
            for part in by_kind["verdict"]
        )
        failures = tuple(
            TableFailure(
                part.target, part.dialect, failure_from_json(json.loads(part.text)), part.sequences, part.example
            )
            for part in by_kind["failure"]
        )
        totals = by_kind["total"]
        return ComplianceTable(
            rows,
            failures,
            sum(part.sequences for part in totals if part.name != REPEATED),
            sum(part.frames for part in totals),
            sum(part.sequences for part in totals if part.name == REPEATED),
            _defects(by_kind["known_defect"]),
            _accuracies(by_kind["measurement"]),
        )


def _defects(parts: Iterable[Part]) -> tuple[TableDefect, ...]:
    counts: dict[tuple[str, str, str], dict[str, int]] = {}
    for part in parts:
        counts.setdefault((part.target, part.dialect, part.name), {})[part.as_known] = part.sequences
    return tuple(sorted(TableDefect(*key, n.get(SEEN, 0), n.get(REFUTED, 0)) for key, n in counts.items()))


def _accuracies(parts: Iterable[Part]) -> tuple[TableAccuracy, ...]:
    late: defaultdict[tuple[str, str], Counter[float]] = defaultdict(Counter)
    unexpected: Counter[tuple[str, str]] = Counter()
    for part in parts:
        key = part.target, part.dialect
        late[key][int(part.name) / 1000] += part.sequences
        unexpected[key] += part.sequences * (part.as_known == UNEXPECTED)
    return tuple(TableAccuracy(*key, added_up(late[key], unexpected[key])) for key in sorted(late))


def judge_traces(paths: Iterable[Path | str], judge: Judge | None = None) -> Iterator[SequenceJudgement]:
    """Judges every sequence of every trace, in this process. Raises `TraceError`.

    Without a `judge` it is the suite's, which needs no more memory for a long sequence than for a short one.
    """
    for path in paths:
        rows = read_trace(path)
        try:
            yield from judge_all(rows) if judge is None else map(judge, sequences(rows))
        except TraceError as error:
            # Errors of single rows name their file already.
            raise error if str(error).startswith(str(path)) else TraceError(f"{path}: {error}") from error


def check_in_process(paths: Iterable[Path | str], judge: Judge | None = None) -> ComplianceTable:
    """The compliance table of some traces, made in this process; `judge` as for `judge_traces`. Raises `TraceError`."""
    builder = TableBuilder()
    for judgement in judge_traces(paths, judge):
        builder.add(judgement)
    return builder.table()


def table_view(table: ComplianceTable) -> Table:
    """The rows for a terminal."""
    view = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("requirement", "target", "dialect", "verdict", "as known"):
        view.add_column(name, overflow="fold")
    view.add_column("sequences", justify="right")
    view.add_column("exercised", justify="right")
    view.add_column("reason", overflow="fold")
    for row in table.rows:
        as_known = "" if row.as_known == row.verdict else row.as_known
        texts = (row.requirement or "(search)", row.target, row.dialect, row.verdict, as_known)
        numbers = (f"{row.sequences:,}", f"{row.exercised:,}" if row.exercised else "", row.reason)
        view.add_row(*(Text(visible(text)) for text in (*texts, *numbers)))
    return view
